"""Pages of a run's output."""

from functools import partial

import pytest

from bot.show import run_log
from bot.show.run_log import LogPage, log_page

TEXT = b"one\r\n\x1b[31mtwo\x1b[0m\n10%\r100%\nsecret\nunfinished"


def read(data: bytes, start: int, end: int) -> bytes:
    return data[start:end]


def page(
    start: int | None = 0, most: int = 100, *, data: bytes = TEXT, ended: bool = False
) -> LogPage:
    def redact(text: str) -> str:
        return text.replace("secret", "***")

    return log_page(partial(read, data), len(data), start, most, redact, ended=ended)


def test_lines_are_what_a_terminal_shows_without_secrets() -> None:
    assert page().lines == ("one", "two", "100%", "***")


def test_an_unfinished_line_is_left_for_the_next_page() -> None:
    first = page()
    assert TEXT[first.cursor :] == b"unfinished"
    assert page(first.cursor) == LogPage(lines=(), cursor=first.cursor, more=False)
    assert page(first.cursor, data=TEXT + b" no more\n").lines == ("unfinished no more",)
    assert page(first.cursor, ended=True).lines == ("unfinished",)


@pytest.mark.parametrize("chunk", [1, 3, 7, 1000])
@pytest.mark.parametrize("most", [1, 2, 3, 10])
def test_pages_follow_each_other(monkeypatch: pytest.MonkeyPatch, chunk: int, most: int) -> None:
    monkeypatch.setattr(run_log, "_CHUNK_BYTES", chunk)
    lines, cursor, more = list[str](), 0, True
    while more:
        found = page(cursor, most, ended=True)
        assert len(found.lines) <= most
        lines, cursor, more = [*lines, *found.lines], found.cursor, found.more
    assert lines == ["one", "two", "100%", "***", "unfinished"]
    assert cursor == len(TEXT)


def test_without_a_place_the_last_lines_are_returned() -> None:
    last = page(None, 2)
    assert last.lines == ("100%", "***")
    assert page(last.cursor, ended=True).lines == ("unfinished",)
    assert page(None, 2, ended=True).lines == ("***", "unfinished")
    assert page(None, data=b"").lines == ()


def test_a_line_that_begins_before_the_part_that_is_read_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_log, "_LINE_BYTES", 12)
    assert page(None, data=b"a long line\nend\n").lines == ("end",)


def test_a_line_without_an_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_log, "_CHUNK_BYTES", 4)
    monkeypatch.setattr(run_log, "_LINE_BYTES", 8)
    assert page(0, data=b"x" * 10 + b"\n").lines == ("x" * 8, "xx")


def test_a_place_beyond_the_end_has_no_lines() -> None:
    assert page(10**6) == LogPage(lines=(), cursor=len(TEXT), more=False)
