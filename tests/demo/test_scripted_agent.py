"""The demo's scripted agent."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from bot.demo import agent


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """Let this process write no file beyond a size in bytes, as a full disk does.

    A write across the limit writes the bytes before it: write(2).
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_note_is_logged_once_after_the_disk_was_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_AGENT_LOG", str(log := tmp_path / agent.LOG))
    monkeypatch.setenv("MERGEWRIGHT_SESSION", "greetings-1")
    monkeypatch.setenv("MERGEWRIGHT_RUN", "1")
    agent.note("prompt", "the first")
    one = log.stat().st_size
    sizes: list[int] = []

    def space_returns(_: float) -> None:
        sizes.append(log.stat().st_size)
        if len(sizes) == 3:
            _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    monkeypatch.setattr("time.sleep", space_returns)
    with files_limited_to(one + 20):
        agent.note("message", 'the word "heron"')
    assert sizes == [one] * 3  # Nothing of it is left when it fails.
    assert [json.loads(line)["words"] for line in log.read_text().splitlines()] == [[], ["heron"]]


def test_an_enter_within_a_second_paste_submits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = [b"\x1b[200~a\rb\x1b[201~ \x1b[200~c\rd", b"\x1b[201~\re\r", b""]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(fileno=lambda: -1))
    monkeypatch.setattr("os.read", lambda file, size: typed.pop(0))
    assert [*agent.messages()] == ["a\nb c\nd", "e"]
