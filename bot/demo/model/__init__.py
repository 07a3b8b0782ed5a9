"""A scripted stand-in for a model, which carries out the commands in the prompt."""

from bot.demo.model.server import ModelServer

__all__ = ["ModelServer"]
