"""Growing files are read once, also after truncation and replacement."""

import os
from pathlib import Path

import pytest

from runtimes.agents.shared.files import LineTail


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_each_complete_line_is_returned_once(log: Path) -> None:
    lines = LineTail(log)
    assert lines.new() == []
    append(log, "one\ntw")
    assert lines.new() == ["one"]
    assert lines.new() == []
    append(log, "o\nthree\n")
    assert lines.new() == ["two", "three"]


def test_the_modification_time_is_known_while_the_file_exists(log: Path) -> None:
    lines = LineTail(log)
    append(log, "one\n")
    os.utime(log, (9, 9))
    lines.new()
    assert lines.modified == 9
    log.unlink()
    lines.new()
    assert lines.modified is None


def test_a_truncated_file_is_read_from_its_beginning(log: Path) -> None:
    lines = LineTail(log)
    append(log, "one\ntwo\nha")
    lines.new()
    log.write_text("new\n")
    assert lines.new() == ["new"]


def test_a_file_replaced_by_a_longer_one_is_read_from_its_beginning(log: Path) -> None:
    lines = LineTail(log)
    append(log, "one\n")
    lines.new()
    other = log.with_name("other")
    other.write_text("first\nsecond\n")
    other.replace(log)
    assert lines.new() == ["first", "second"]


def test_a_line_without_an_end_does_not_fill_the_memory(log: Path) -> None:
    lines = LineTail(log, most=10)
    append(log, "x" * 25)
    for _ in range(4):
        assert lines.new() == []
    append(log, "xx\nshort\n")
    assert lines.new() + lines.new() == ["short"]


def test_the_length_of_a_skipped_line_is_known(log: Path) -> None:
    lines = LineTail(log, most=10)
    append(log, "x" * 25 + "\nshort\n" + "y" * 9 + "\n")
    reads = [(lines.new(), lines.skipped_bytes) for _ in range(6)]
    assert [one for one in reads if any(one)] == [
        ([], 25),
        (["short"], 0),
        (["y" * 9], 0),
    ]


def test_to_end_reads_the_whole_file(log: Path) -> None:
    lines = LineTail(log, most=10)
    assert list(lines.to_end()) == []
    append(log, "one\n" * 7 + "x" * 25 + "\ntwo\nha")
    assert list(lines.to_end()) == ["one"] * 7 + ["two"]
    append(log, "lf\n")
    assert list(lines.to_end()) == ["half"]


def test_lines_written_during_to_end_are_left_for_the_next_call(log: Path) -> None:
    lines = LineTail(log, most=10)
    append(log, "one\n" * 5)
    for _ in lines.to_end():
        append(log, "another\n" * 3)
    assert lines.offset <= 40


def test_invalid_utf8_is_replaced(log: Path) -> None:
    log.write_bytes(b"\xff\xfe\nfine\n")
    assert LineTail(log).new()[1] == "fine"


def test_a_pipe_or_a_link_is_not_opened(log: Path, tmp_path: Path) -> None:
    os.mkfifo(log)
    assert LineTail(log).new() == []
    log.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("secret\n")
    log.symlink_to(elsewhere)
    assert LineTail(log).new() == []
