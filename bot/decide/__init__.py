"""Decisions: reconciles sessions, and knows policies, capacity and assignments."""
