"""A model to stand in for the real ones: it does what the prompt tells it, and thinks nothing."""

from bot.demo.model.server import ModelServer

__all__ = ["ModelServer"]
