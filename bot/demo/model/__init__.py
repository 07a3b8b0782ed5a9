"""A scripted stand-in for a model: it does what the prompt spells out."""

from bot.demo.model.server import ModelServer

__all__ = ["ModelServer"]
