"""Reading and writing files in folders where agents may have put anything."""

import os
from pathlib import Path

import pytest
from msgspec import Struct

from runtimes.agents.shared.files import (
    WatchedFile,
    contains,
    decode_lines,
    last_line_with,
)
from runtimes.files import open_regular, read_text, write_private


def test_links_and_pipes_are_not_opened_as_files(tmp_path: Path) -> None:
    pipe, link, target = (tmp_path / name for name in ("pipe", "link", "target"))
    os.mkfifo(pipe)
    target.write_text("secret\n")
    link.symlink_to(target)
    with os.fdopen(os.open(pipe, os.O_RDWR), "w+b", buffering=0) as end:
        end.write(b"secret\n")
        for path in (pipe, link, tmp_path / "missing"):
            assert not contains(path, "secret")
            assert (read_text(path), last_line_with(path, "secret")) == ("", "")
        with pytest.raises(OSError, match="not a regular file"), open_regular(pipe):
            pass


def test_a_key_is_found_anywhere_in_a_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert not contains(log, "mw-1")
    log.write_text("")
    assert not contains(log, "mw-1")
    log.write_text("a\nb mw-1 c")
    assert contains(log, "mw-1")
    assert not contains(log, "mw-2")


def test_the_last_complete_line_with_a_text_is_found(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x 1\nx 2\ny\nx 3")
    assert last_line_with(log, "x") == "x 2"
    assert last_line_with(log, "z") == ""
    log.write_text("x 1\n")
    assert last_line_with(log, "x") == "x 1"


def test_the_last_line_of_a_long_file_is_found_before_earlier_ones(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x 1\n" + ("." * 1_023 + "\n") * (8 * 1024 + 4) + "x 2\n")
    assert last_line_with(log, "x") == "x 2"


def test_a_line_across_two_steps_of_the_search_is_found_whole(tmp_path: Path) -> None:
    log, line = tmp_path / "log", "begin " + "-" * 3_000 + " x " + "-" * 3_000 + " end"
    log.write_text(f"first\n{line}\n" + ("." * 1_023 + "\n") * (4 * 1024 - 4))
    assert last_line_with(log, "x") == line


def test_private_files_are_written_for_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    write_private(path, "a")
    path.with_name("file.new").write_text("left by a crash")
    write_private(path, "b")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("b", 0o600)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert list(path.parent.iterdir()) == [path]


class _Status(Struct):
    status: str


def write_status(path: Path, status: str, age: float) -> None:
    """Rewrite a file in place with text of the same length."""
    path.write_text(f'{{"status": "{status}"}}')
    at = path.stat().st_mtime - age
    os.utime(path, (at, at))


def test_a_watched_file_is_decoded_again_after_a_change(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    watched = WatchedFile(path, _Status)
    assert watched.read() is None
    write_status(path, "busy", age=60)
    assert (watched.read(), watched.changed) == (_Status("busy"), True)
    assert (watched.read(), watched.changed) == (_Status("busy"), False)
    write_status(path, "idle", age=30)
    assert watched.read() == _Status("idle")
    path.write_text("half")
    assert watched.read() is None
    path.unlink()
    assert watched.read() is None


def test_a_watched_file_is_not_read_again_while_size_and_time_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    watched = WatchedFile(path, _Status)
    write_status(path, "busy", age=60)
    before = path.stat()
    assert watched.read() == _Status("busy")
    path.write_text('{"status": "idle"}')
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert watched.read() == _Status("busy")


def test_a_recent_change_is_read_again_within_the_timestamps_resolution(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    watched = WatchedFile(path, _Status)
    write_status(path, "busy", age=0)
    before = path.stat()
    assert watched.read() == _Status("busy")
    path.write_text('{"status": "idle"}')
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert watched.read() == _Status("idle")


def test_malformed_lines_are_left_out() -> None:
    lines = ['{"status": "busy"}', "half", "7", "[" * 100_000, '{"status": "idle"}']
    assert [*decode_lines(lines, _Status)] == [_Status("busy"), _Status("idle")]
