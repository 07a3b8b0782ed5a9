"""Reading a time from a number or a text never fails, whatever the number or text."""

from datetime import UTC, datetime

import pytest

from lifecycle.model.times import EARLIEST, LATEST, from_seconds, from_text

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize("at", [EARLIEST, NOON, LATEST])
def test_plausible_times_are_read_exactly(at: datetime) -> None:
    assert from_seconds(at.timestamp()) == at
    assert from_text(at.isoformat()) == at


@pytest.mark.parametrize(
    ("seconds", "at"),
    [
        *((seconds, LATEST) for seconds in (4.2e9, 253402300800.0, 1e300, float("inf"), 10**400)),
        *((seconds, EARLIEST) for seconds in (-1, -1e300, float("-inf"), float("nan"), -(10**400))),
    ],
)
def test_a_number_beyond_plausible_times_is_the_nearest_one(seconds: float, at: datetime) -> None:
    assert from_seconds(seconds) == at


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "2026-11-21", "2026-11-21T12:00:00", "9999-99-99T99:99:99Z"),
        *("9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00", "1969-12-31T23:59:59Z"),
    ],
)
def test_a_text_without_a_plausible_time_and_zone_has_none(text: str) -> None:
    assert from_text(text) is None
