"""Carries out actions: the outbox, and the only writers to GitHub, agents and workspaces."""
