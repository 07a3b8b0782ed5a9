"""Observers, which read agents and GitHub and record facts."""
