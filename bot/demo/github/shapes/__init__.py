"""The shapes of GitHub's REST responses and webhooks: one function per type of object."""
