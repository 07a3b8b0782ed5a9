"""What GitHub's REST answers and webhooks look like: one function a kind of object."""
