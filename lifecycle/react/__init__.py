"""Derives the actions from the status."""
