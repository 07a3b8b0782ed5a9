"""A stand-in for GitHub on loopback: REST, GraphQL, git and webhooks over state that changes."""

from bot.demo.github.server import GitHubServer

__all__ = ["GitHubServer"]
