"""Tests reading and writing files that an agent may have replaced by links or pipes."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct

from runtimes import files as safe_files
from runtimes.agents.claude.files import started_at
from runtimes.agents.shared.files import LineTail, WatchedFile, contains, last_line_with
from runtimes.agents.shared.messages import LineMessageReader
from runtimes.agents.shell import Shell
from runtimes.files import (
    matching,
    open_regular,
    read_bytes,
    read_text,
    replacing,
    walk,
    write_private,
)

SECRET = '{"secret": "of another session", "timestamp": "2026-11-21T12:00:00Z", "type": "user"}'


class _Secret(Struct):
    secret: str


#: What lies at a place that a reader opens, given the place and another session's file.
ATTACKS: dict[str, Callable[[Path, Path], object]] = {
    "nothing": lambda place, victim: None,
    "a link": lambda place, victim: place.symlink_to(victim),
    "a hard link": lambda place, victim: place.hardlink_to(victim),
    "a link to nothing": lambda place, victim: place.symlink_to("gone"),
    "a link to itself": lambda place, victim: place.symlink_to(place),
    "a named pipe": lambda place, victim: os.mkfifo(place),
    "a folder": lambda place, victim: place.mkdir(),
    "a link to a device": lambda place, victim: place.symlink_to("/dev/zero"),
    "a magic link": lambda place, victim: place.symlink_to(f"/proc/self/root{victim}"),
    "a linked folder": lambda place, victim: _replace(place.parent, victim.parent),
    "a linked folder above": lambda place, victim: _replace(
        place.parent.parent, victim.parent.parent
    ),
    "a file as a folder": lambda place, victim: _replace(place.parent, None),
}
#: Every way to read one file, and what it returns for a file that cannot be read.
READERS: dict[str, tuple[Callable[[Path], object], object]] = {
    "contains": (lambda path: contains(path, "secret"), False),
    "last_line_with": (lambda path: last_line_with(path, "secret"), ""),
    "read_text": (read_text, ""),
    "LineTail": (lambda path: [*LineTail(path).to_end()], []),
    "WatchedFile": (lambda path: WatchedFile(path, _Secret).read(), None),
    "LineMessageReader": (lambda path: LineMessageReader(lambda: [path], Shell.parser).new(), []),
    "started_at": (lambda path: started_at(path).year, 9999),
}


def _replace(folder: Path, by: Path | None) -> None:
    folder.rename(folder.with_name("moved"))
    if by is None:
        folder.touch()
    else:
        folder.symlink_to(by)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "widgets-12_home" / "projects" / "one" / "log.jsonl"
    place.parent.mkdir(parents=True)
    return place


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file with a secret in the home of another session; a hostile agent may link to it."""
    victim = tmp_path / "widgets-13_home" / "projects" / "one" / "log.jsonl"
    victim.parent.mkdir(parents=True)
    victim.write_text(f"{SECRET}\n")
    return victim


@pytest.fixture(params=["openat2", "without openat2"])
def _kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs twice: with openat2(2), and as on a machine that lacks it."""
    if request.param == "without openat2":
        kernel = safe_files._Kernel()
        kernel.open = kernel._walk
        monkeypatch.setattr(safe_files, "_kernel", lambda: kernel)


@pytest.mark.usefixtures("_kernel")
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_no_file_of_the_session_is_not_read(
    place: Path, victim: Path, attack: str, reader: str
) -> None:
    read, nothing = READERS[reader]
    assert read(victim) != nothing  # With its own file each of them reads something.
    ATTACKS[attack](place, victim)
    assert read(place) == nothing


@pytest.mark.usefixtures("_kernel")
@pytest.mark.parametrize("attack", ["a linked folder", "a linked folder above"])
def test_a_linked_folder_is_not_listed(place: Path, victim: Path, attack: str) -> None:
    assert matching(victim.parents[1], "*/*.jsonl") == [victim]
    assert [path for path, _ in walk(victim.parents[1])] == [victim]
    ATTACKS[attack](place, victim)
    assert matching(place.parents[2], "projects/*/*.jsonl") == []
    assert victim.name not in [path.name for path, _ in walk(place.parents[2])]


@pytest.mark.usefixtures("_kernel")
@pytest.mark.parametrize("attack", [one for one in ATTACKS if one != "a folder"])
def test_no_file_of_another_session_is_written(place: Path, victim: Path, attack: str) -> None:
    ATTACKS[attack](place, victim)
    try:
        write_private(place, "ours")
    except OSError:
        assert "folder" in attack
    else:
        assert read_text(place) == "ours"
    assert victim.read_text() == f"{SECRET}\n"
    assert sorted(victim.parent.iterdir()) == [victim]


def test_a_failed_write_leaves_the_file_as_it_was(place: Path) -> None:
    write_private(place, "before")
    with pytest.raises(TypeError), replacing(place) as file:
        file.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert place.read_text() == "before"


#: So many seconds are enough for a bounded read even on a busy machine; terabytes take hours.
_SECONDS, _MEGABYTES = 60, 700


@pytest.mark.parametrize("reader", [*READERS, "read_bytes"])
def test_terabytes_of_nothing_are_read_within_bounds(place: Path, reader: str) -> None:
    place.touch()
    os.truncate(place, 1 << 42)
    read: Callable[[Path], object] = read_bytes if reader == "read_bytes" else READERS[reader][0]
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    assert not read(place) or reader in ("read_bytes", "started_at", "read_text")
    assert time.monotonic() - began < _SECONDS
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < _MEGABYTES * 1024


def test_a_text_is_found_across_two_parts_of_a_file(place: Path) -> None:
    step = 4 * 1024 * 1024
    for shift in range(-9, 2):
        place.write_bytes(b"." * 100 + b"\nx secret y\n" + b"." * (step + shift) + b"\n")
        assert contains(place, "secret")
        assert last_line_with(place, "secret") == "x secret y"


#: Reads a file that another process truncates.
_READ = """
import sys
from pathlib import Path
from runtimes.agents.shared.files import LineTail, contains, last_line_with

place = Path(sys.argv[1])
for _ in range(50):
    contains(place, "secret"), last_line_with(place, "secret"), [*LineTail(place).to_end()]
"""


def test_a_file_that_shrinks_while_it_is_read_does_not_end_the_process(place: Path) -> None:
    place.touch()
    with subprocess.Popen([sys.executable, "-c", _READ, str(place)]) as reading:
        while reading.poll() is None:
            for size in (64 * 1024 * 1024,) * 200 + (0,) * 200:  # Each size lasts for a while.
                os.truncate(place, size)
    assert reading.returncode == 0


def test_a_folder_with_many_entries_is_listed_up_to_a_number(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_files, "_LISTED", 3)
    for number in range(9):
        place.with_name(f"{number}.jsonl").touch()
    assert len(matching(place.parent, "*.jsonl")) == 3
    for name in "abc":
        folder = place.with_name(name)
        folder.mkdir()
        (folder / "x.jsonl").touch()
        (folder / "y.jsonl").touch()
    monkeypatch.setattr(safe_files, "_LISTED", 16)  # Twelve here, and those of two folders.
    assert len(matching(place.parent, "*/*.jsonl")) < 6


def test_nested_folders_are_walked_as_deep_as_a_path_can_be(place: Path) -> None:
    folder = os.open(place.parent, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    place.touch()
    assert [path for path, _ in walk(place.parents[1])] == [place]
    subprocess.run(["rm", "-rf", place.parent], check=True)


def test_a_machine_without_descriptors_is_no_fault_of_the_file(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write_text("text")
    with open_regular(place):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limit[1]))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                read_text(place)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limit)
