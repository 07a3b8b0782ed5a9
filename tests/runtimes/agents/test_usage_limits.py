"""When a usage limit resets, as programs and providers say it in words."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from runtimes.agents.shared.usage import limit_reset

AT = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Rate limit reached. Please try again in 6m0s. Visit", 360),
        ("try again in 1h2m3.5s", 3723.5),
        ("Please retry in 20ms.", 0.02),
        ("Suggested retry after 7200s.", 7200),
    ],
)
def test_a_span_is_counted_from_when_it_was_said(said: str, seconds: float) -> None:
    assert limit_reset(said, AT) == AT + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "said",
    [
        "Please try again later.",
        "try again in a while",
        "it resets at 13:00 PM UTC",
        "try again at Nov 25th, 2026 2:19 AM.",
        "it resets at 2:75 PM UTC",
        "retry in 99999999999s",
    ],
)
def test_where_no_time_is_named_none_is_known(said: str) -> None:
    assert limit_reset(said, AT) is None
    assert limit_reset("retry in 1s", None) is None


@pytest.mark.parametrize(
    ("said", "until"),
    [
        ("2:09 PM UTC", datetime(2026, 11, 21, 14, 10, tzinfo=UTC)),
        ("12:00 PM UTC", datetime(2026, 11, 21, 12, 1, tzinfo=UTC)),
        ("11:59 AM UTC", datetime(2026, 11, 22, 12, 0, tzinfo=UTC)),
        ("12:30 AM UTC", datetime(2026, 11, 22, 0, 31, tzinfo=UTC)),
    ],
)
def test_a_time_of_day_is_the_next_one_and_its_minute_is_waited_for(
    said: str, until: datetime
) -> None:
    assert limit_reset(f"Access resets at {said}.", AT) == until


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Somewhere-5:30")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("elsewhere")
def test_a_time_of_another_zone_is_this_machines() -> None:
    assert limit_reset("Access resets at 8:00 PM GMT+5:30", AT) == datetime(
        2026, 11, 21, 14, 31, tzinfo=UTC
    )
    assert limit_reset("or try again at 8:00 PM.", AT) == datetime(2026, 11, 21, 14, 31, tzinfo=UTC)
    assert limit_reset("Access resets at 2:00 PM UTC", AT) == datetime(
        2026, 11, 21, 14, 1, tzinfo=UTC
    )
