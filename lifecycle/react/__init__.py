"""From a status to actions."""
