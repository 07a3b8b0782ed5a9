"""Decisions about sessions: the reconciler, policies, agent assignment and opening sessions."""
