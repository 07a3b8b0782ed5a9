"""What the agent adapters share: their base classes, files, hooks, dialogs, messages and usage."""
