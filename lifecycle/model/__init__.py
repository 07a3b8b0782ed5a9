"""The data model: facts, statuses, actions, policy and keys."""
