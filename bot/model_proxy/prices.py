"""Computes the cost of usage that was reported without cost, from configured and built-in prices.

Prices are applied to usage from agents' own files and from the model proxy; `bot.store.usage`
chooses between both.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec.structs import replace

from config.prices import shipped_prices
from config.settings import ModelPrice
from lifecycle.model.facts import Usage

_MILLION = 1_000_000


class Prices:
    """Adds costs to usage. Thread-safe."""

    def __init__(self, table: Mapping[str, ModelPrice]) -> None:
        """Take the configured prices, by model name or pattern; they precede the built-in ones."""
        self._tables = (table, shipped_prices())

    def __call__(self, usage: Usage) -> Usage:
        """Return the usage with its cost in US dollars and its number of unpriced tokens.

        The cost is None if no price is known. Costs that the program reported are kept, even if it
        reported them for some models only.
        """
        if usage.cost_usd is not None or usage == Usage():
            return usage
        models = {
            name: replace(used, cost_usd=self._cost(name, used))
            for name, used in (usage.models or {"": usage}).items()
        }
        costs = [used.cost_usd for used in models.values() if used.cost_usd is not None]
        return replace(
            usage,
            cost_usd=round(sum(costs), 6) if costs else None,
            unpriced=sum(used.tokens for used in models.values() if used.cost_usd is None),
            models=models if usage.models else {},
        )

    def of(self, model: str) -> ModelPrice | None:
        """Return a model's price by its name or the first matching pattern; None if unknown."""
        return next((price for table in self._tables if (price := _find(table, model))), None)

    def _cost(self, model: str, used: Usage) -> float | None:
        price = self.of(model) if used.cost_usd is None and model else None
        if price is None:
            return used.cost_usd
        read = price.input if price.cache_read is None else price.cache_read
        write = price.input if price.cache_write is None else price.cache_write
        dollars = (
            used.input * price.input
            + (used.output + used.reasoning) * price.output
            + used.cache_read * read
            + used.cache_write * write
        )
        return round(dollars / _MILLION, 6)


def _find(table: Mapping[str, ModelPrice], model: str) -> ModelPrice | None:
    if model in table:
        return table[model]
    return next((one for name, one in table.items() if fnmatchcase(model, name)), None)
