"""The words: facts, statuses, actions, policy and keys."""
