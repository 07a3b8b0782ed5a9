"""Counting usage by response and model, and finding the reset of a usage limit."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from lifecycle.model.facts import Usage
from runtimes.agents.shared.usage import UsageCounter, limit_reset

AT = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached. Please try again in 6m0s. Visit", 360),
        ("try again in 1h2m3.5s", 3723.5),
        ("Please retry in 20ms.", 0.02),
        ("Suggested retry after 7200s.", 7200),
    ],
)
def test_a_time_span_counts_from_the_message(message: str, seconds: float) -> None:
    assert limit_reset(message, AT) == AT + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "message",
    [
        "Please try again later.",
        "try again in a while",
        "it resets at 13:00 PM UTC",
        "try again at Nov 25th, 2026 2:19 AM.",
        "it resets at 2:75 PM UTC",
        "retry in 99999999999s",
    ],
)
def test_a_message_without_a_time_has_no_reset(message: str) -> None:
    assert limit_reset(message, AT) is None
    assert limit_reset("retry in 1s", None) is None


@pytest.mark.parametrize(
    ("message", "until"),
    [
        ("2:09 PM UTC", datetime(2026, 11, 21, 14, 10, tzinfo=UTC)),
        ("12:00 PM UTC", datetime(2026, 11, 21, 12, 1, tzinfo=UTC)),
        ("11:59 AM UTC", datetime(2026, 11, 22, 12, 0, tzinfo=UTC)),
        ("12:30 AM UTC", datetime(2026, 11, 22, 0, 31, tzinfo=UTC)),
    ],
)
def test_a_time_of_day_is_the_next_one_at_the_end_of_its_minute(
    message: str, until: datetime
) -> None:
    assert limit_reset(f"Access resets at {message}.", AT) == until


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Somewhere-5:30")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
def test_a_time_without_utc_is_local() -> None:
    assert limit_reset("Access resets at 8:00 PM GMT+5:30", AT) == datetime(
        2026, 11, 21, 14, 31, tzinfo=UTC
    )
    assert limit_reset("or try again at 8:00 PM.", AT) == datetime(2026, 11, 21, 14, 31, tzinfo=UTC)
    assert limit_reset("Access resets at 2:00 PM UTC", AT) == datetime(
        2026, 11, 21, 14, 1, tzinfo=UTC
    )


def test_usage_without_a_model_counts_in_the_total_only() -> None:
    counter = UsageCounter()
    counter.count("first", "", Usage(input=1))
    counter.count("second", "gpt", Usage(input=2))
    assert counter.usage() == Usage(input=3, models={"gpt": Usage(input=2)})


def test_a_later_record_of_a_response_replaces_the_earlier_one() -> None:
    counter = UsageCounter()
    counter.count("first", "gpt", Usage(input=1, cost_usd=0.5))
    counter.count("first", "gpt", Usage(input=2, output=1, cost_usd=0.75))
    used = Usage(input=2, output=1, cost_usd=0.75)
    assert counter.usage() == Usage(input=2, output=1, cost_usd=0.75, models={"gpt": used})


def test_the_total_has_a_cost_only_if_every_model_has_one() -> None:
    counter = UsageCounter()
    counter.count("r1", "priced", Usage(input=1, cost_usd=2.0))
    assert counter.usage().cost_usd == 2.0
    counter.count("r2", "unpriced", Usage(input=1))
    assert counter.usage().cost_usd is None
    assert counter.usage().models["priced"].cost_usd == 2.0
