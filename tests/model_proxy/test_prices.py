"""Prices of usage that programs report without a cost."""

from datetime import date
from fnmatch import fnmatchcase

import pytest

from bot.model_proxy.prices import Prices
from config.prices import shipped_prices
from config.settings import ModelPrice
from lifecycle.model.facts import Usage

DAY = date(2026, 11, 21)
PRICES = Prices(
    {
        "big-*": ModelPrice(input=2.0, output=10.0, cache_read=0.5, cache_write=2.5, as_of=DAY),
        "big-1": ModelPrice(input=1.0, output=5.0, as_of=DAY),
        "big-1*": ModelPrice(input=9.0, output=9.0, as_of=DAY),
    }
)
USED = Usage(
    input=1_000_000,
    output=100_000,
    reasoning=100_000,
    cache_read=2_000_000,
    cache_write=1_000_000,
)


def by(**models: Usage) -> Usage:
    """A run's usage: a million input tokens, and `models` by name, with `-` instead of `_`."""
    return Usage(input=1_000_000, models={name.replace("_", "-"): u for name, u in models.items()})


def test_every_kind_of_token_has_its_price() -> None:
    assert PRICES(by(big_2=USED)).cost_usd == 2.0 + 2.0 + 1.0 + 2.5


def test_cache_prices_default_to_the_price_of_input() -> None:
    assert PRICES(by(big_1=USED)).cost_usd == 1.0 + 1.0 + 2.0 + 1.0


@pytest.mark.parametrize(
    ("model", "price"), [("big-1", 1.0), ("big-12", 2.0), ("Big-1", None), ("small", None)]
)
def test_an_exact_name_takes_precedence_over_patterns(model: str, price: float | None) -> None:
    found = PRICES.of(model)
    assert (found.input if found else None) == price


def test_usage_without_a_price_is_counted_as_unpriced() -> None:
    used = PRICES(by(big_1=Usage(input=1_000_000), odd=Usage(output=7, cache_read=9)))
    assert (used.cost_usd, used.unpriced) == (1.0, 7)
    assert [used.models[name].cost_usd for name in ("big-1", "odd")] == [1.0, None]
    alone = PRICES(by(odd=Usage(output=7)))
    assert (alone.cost_usd, alone.unpriced) == (None, 7)


def test_usage_without_a_model_has_no_price() -> None:
    assert PRICES(Usage(input=5, output=7)) == Usage(input=5, output=7, unpriced=12)
    assert PRICES(Usage()) == Usage()


def test_costs_reported_by_the_program_take_precedence() -> None:
    own = Usage(input=5, cost_usd=0.25, models={"big-1": Usage(input=5)})
    assert PRICES(own) == own
    some = by(big_1=Usage(input=1_000_000), odd=Usage(output=7, cost_usd=0.5))
    assert (PRICES(some).cost_usd, PRICES(some).unpriced) == (1.5, 0)
    assert PRICES(by(big_1=Usage(input=9, cost_usd=0.5))).cost_usd == 0.5


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("gpt-5-codex", 1.25 + 2.0 + 0.25 + 1.25),
        ("gpt-5.1-codex-mini", 0.25 + 0.4 + 0.05 + 0.25),
        ("gpt-5.4-2026-03-05", 2.5 + 3.0 + 0.5 + 2.5),
        ("gemini-2.5-pro", 1.25 + 2.0 + 0.25 + 1.25),
        ("gemini-3-pro-preview", 2.0 + 2.4 + 4.0 + 2.0),
    ],
)
def test_common_models_have_a_dated_price_out_of_the_box(model: str, dollars: float) -> None:
    used = Prices({})(Usage(input=1_000_000, models={model: USED}))
    assert used.cost_usd == pytest.approx(dollars)
    assert used.unpriced == 0
    price = Prices({}).of(model)
    assert price is not None
    assert price.as_of >= date(2026, 11, 22)


def test_a_configured_price_takes_precedence_over_the_shipped_one() -> None:
    own = ModelPrice(input=0.0, output=0.0, as_of=DAY)
    assert Prices({"gpt-*": own}).of("gpt-5-codex") is own
    assert Prices({}).of("unknown") is None


def test_a_shipped_pattern_is_not_hidden_by_one_before_it() -> None:
    names = list(shipped_prices())
    for place, name in enumerate(names):
        model = name.replace("*", "")
        earlier = [one for one in names[:place] if fnmatchcase(model, one)]
        assert not earlier, f"{name} is hidden by {earlier}"
