"""The end of a log."""

import pytest

from bot.github.check_logs import tail


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
def test_nothing_but_text_is_left(printed: str, shown: str) -> None:
    assert tail(printed) == shown


def test_the_last_fifty_lines_are_kept() -> None:
    shown = tail("\n".join(f"line {number}" for number in range(1000)))
    assert shown.split("\n") == [f"line {number}" for number in range(950, 1000)]


def test_a_long_line_is_cut_and_the_whole_never_exceeds_its_length() -> None:
    assert tail("x" * 5000) == "x" * 400
    shown = tail("\n".join(f"{number} " + "x" * 500 for number in range(50)))
    assert len(shown) == 8000
    assert "\n49 xxx" in shown
