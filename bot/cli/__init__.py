"""The `mergewright` command."""

from bot.cli.program import main

__all__ = ["main"]
