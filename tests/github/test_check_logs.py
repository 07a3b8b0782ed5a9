"""The log of a failed step, and the end of a log."""

from datetime import UTC, datetime

import pytest

from bot.github.check_logs import failed_step_log, tail
from bot.github.rest import JobStep

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
        pytest.param(
            log((3.0, "one")) + "\n2026-99-99T09:00:09.0000000Z two",
            [FAILED],
            "one\ntwo",
            id="a line with a time that is none",
        ),
        pytest.param("\ufeff" + log((3.0, "one")), [FAILED], "one", id="the mark of a byte order"),
    ],
)
def test_a_log_is_cut_to_the_failed_step(printed: str, steps: list[JobStep], shown: str) -> None:
    assert failed_step_log(printed, steps) == shown


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        pytest.param("\x1b[31;1mred\x1b[0m", "red", id="colours"),
        pytest.param("\x9b31mred", "red", id="colours in one byte"),
        pytest.param("\x1b]8;;http://x\x07link\x1b]8;;\x1b\\", "link", id="hyperlinks"),
        pytest.param("\x1b(Bplain\x1b=", "plain", id="character sets"),
        pytest.param("a\x1b[201~b\x1b", "ab", id="the end of a paste, and a lone escape"),
        pytest.param("10 %\r50 %\r100 %", "100 %", id="a progress bar"),
        pytest.param("one\r\ntwo\r\n", "one\ntwo", id="carriage returns"),
        pytest.param("a\tb\x00\x07\x85\u2028\ufeffc", "a\tbc", id="control characters"),
        pytest.param("Prüfung ✓", "Prüfung ✓", id="other languages"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_control_characters_are_removed(printed: str, shown: str) -> None:
    assert tail(printed) == shown


def test_the_last_fifty_lines_are_kept() -> None:
    shown = tail("\n".join(f"line {number}" for number in range(1000)))
    assert shown.split("\n") == [f"line {number}" for number in range(950, 1000)]


def test_a_long_line_is_cut_and_the_whole_never_exceeds_its_length() -> None:
    assert tail("x" * 5000) == "x" * 400
    shown = tail("\n".join(f"{number} " + "x" * 500 for number in range(50)))
    assert len(shown) == 8000
    assert "\n49 xxx" in shown
