"""Code that several agent adapters share: files, hooks, dialogs, messages, usage, launching."""
