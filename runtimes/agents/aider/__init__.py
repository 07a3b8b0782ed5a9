"""The adapter of Aider."""
