"""The observers: they read agents and GitHub and turn what they see into facts."""
