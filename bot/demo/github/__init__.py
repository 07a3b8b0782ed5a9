"""A stand-in for GitHub: state, not canned answers; REST, GraphQL, git and webhooks on loopback."""

from bot.demo.github.server import GitHubServer

__all__ = ["GitHubServer"]
