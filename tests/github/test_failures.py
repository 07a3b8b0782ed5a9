"""The log of a job: what its failed step printed, and not what cleaned up after it."""

from datetime import UTC, datetime

import pytest

from bot.github.check_logs import JobStep, failed_step_log

FAILED = JobStep(
    "failure",
    datetime(2026, 11, 21, 9, 0, 2, tzinfo=UTC),
    datetime(2026, 11, 21, 9, 0, 4, tzinfo=UTC),
)
FINE = JobStep("success", FAILED.started_at, FAILED.completed_at)
LATER = JobStep(
    "failure",
    datetime(2026, 11, 21, 9, 0, 9, tzinfo=UTC),
    datetime(2026, 11, 21, 9, 0, 9, tzinfo=UTC),
)


def log(*lines: tuple[float, str]) -> str:
    return "\n".join(f"2026-11-21T09:00:{second:010.7f}Z {line}" for second, line in lines)


PRINTED = log((1.0, "set up"), (2.5, "one"), (4.9, "two"), (5.0, "clean up"), (9.0, "more"))


@pytest.mark.parametrize(
    ("printed", "steps", "shown"),
    [
        pytest.param(PRINTED, [FAILED], "one\ntwo", id="between its times"),
        pytest.param(PRINTED, [FINE, FAILED, LATER], "one\ntwo", id="the first that failed"),
        pytest.param(PRINTED, [FINE], "set up\none\ntwo\nclean up\nmore", id="none failed"),
        pytest.param(log((1.0, "set up")), [FAILED], "set up", id="other times than its lines"),
        pytest.param(
            log((2.0, "one"), (4.1, "##[error]exit 1"), (4.2, "clean up")),
            [FAILED],
            "one\n##[error]exit 1",
            id="another begins in the same second",
        ),
        pytest.param(
            log((1.0, "set up"), (3.0, "one")) + "\nand its second line",
            [FAILED],
            "one\nand its second line",
            id="a line without a time",
        ),
        pytest.param("\ufeff" + log((3.0, "one")), [FAILED], "one", id="the mark of a byte order"),
    ],
)
def test_a_log_is_cut_to_the_failed_step(printed: str, steps: list[JobStep], shown: str) -> None:
    assert failed_step_log(printed, steps) == shown
