"""Observers, which read the state of agents and of GitHub and record it as facts."""
