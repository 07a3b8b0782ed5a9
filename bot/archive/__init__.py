"""Copies of what agents wrote, and how long everything is kept."""
