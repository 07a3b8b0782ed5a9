"""What several agent adapters share: files, hooks, dialogs, messages, usage and starting."""
