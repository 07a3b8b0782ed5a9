"""No value of a fact makes a decision fail: the ends of the calendar, huge numbers, odd texts."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import asdict, replace

from lifecycle.decide import decide
from lifecycle.model.facts import Facts
from lifecycle.model.key import Key
from tests.lifecycle.troubles import every_session
from tests.lifecycle.universe import NOW, POLICIES, command

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
TIMES = (FIRST, LAST, LAST - timedelta(seconds=1), FIRST + timedelta(days=1), NOW, None)
NUMBERS = (0, -1, 1, 2**31, 2**63, -(2**70), 10**30)
AMOUNTS = (0.0, -1.0, 1e308, float("inf"), float("nan"))
TEXTS = ("", "{why}", "\x00", "\ud800", "%s {0}", "a" * 5000)
COMMANDS = ("merge", "budget", "tell", "restart", "update", "review", "cancel", "allow", "pause")


def odd(value: Any, chance: random.Random) -> Any:
    """The same value with some of its parts replaced by odd ones of their type."""
    if isinstance(value, Key | Enum | bool):
        return value
    if isinstance(value, Struct):
        return replace(value, **{name: odd(part, chance) for name, part in asdict(value).items()})
    if isinstance(value, tuple):
        return tuple(odd(part, chance) for part in value)
    if isinstance(value, Mapping):
        return {key: odd(part, chance) for key, part in value.items()}
    kinds: tuple[tuple[type, tuple[Any, ...]], ...] = (
        *((datetime, TIMES[:-1]), (int, NUMBERS), (float, AMOUNTS), (str, TEXTS)),
    )
    for kind, values in kinds:
        if isinstance(value, kind) and chance.random() < 0.15:
            return chance.choice(values)
    return value


@pytest.mark.parametrize("policy", ["merge", "strict"])
def test_no_fact_makes_a_decision_fail(policy: str) -> None:
    chance, sessions = random.Random(16), every_session()
    for round_ in range(1500):
        session: Facts = odd(chance.choice(sessions), chance)
        words = odd(command(chance.choice(COMMANDS), text=chance.choice(TEXTS)), chance)
        session = replace(session, commands=(words,) if round_ % 2 else ())
        now = chance.choice((NOW, LAST, FIRST))
        odd_policy = odd(POLICIES[policy], chance) if round_ % 3 else POLICIES[policy]
        decided = decide(session, odd_policy, now)
        assert decided.recheck_at is None or decided.recheck_at >= FIRST
