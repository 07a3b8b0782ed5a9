"""The adapter of any other command."""
