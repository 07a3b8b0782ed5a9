"""An outage of the machine costs no try, is an incident, and ends by itself."""

import errno
import os
import socketserver
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bot.act import outages
from bot.act.outages import RESOURCES, Outages
from bot.act.results import ActionResult, Completed, RetryLater
from bot.store import DueAction, StoreFull
from lifecycle.model.actions import CloseIssue, Prompt, Start
from lifecycle.model.key import parse
from runtimes.workspaces.git import GitFailure
from tests.harness.outbox import OutboxBench
from tests.world.waiting import eventually

ENGINES = ("docker", "podman")
KEYS = [resource.key for resource in RESOURCES]
CLOSE = CloseIssue(key=parse("close_issue"), number=12)
START = Start(key=parse("start:first#1"), run=1, prompt=Prompt(name="x"))


def failures(*codes: int) -> list[str]:
    """Python's messages for failures with these error numbers."""
    return [str(OSError(code, os.strerror(code))) for code in codes]


MESSAGES: dict[str, list[str]] = {
    "disk": [
        *failures(errno.ENOSPC, errno.EDQUOT),
        str(GitFailure("fetch", "mirror", "error: unable to write file: No space left on device")),
        str(GitFailure("status", "mirror", "index.lock: write error. Out of diskspace; run ...")),
        "the database x: the disk is full: free some space; nothing was written",
    ],
    "files": failures(errno.EMFILE, errno.ENFILE),
    "docker": ["docker does not answer: no answer at /run/docker.sock: Connection refused"],
    "podman": ["codex needs isolation = 'podman': podman does not work here: no answer at /run/x"],
    "processes": [*failures(errno.ENOMEM), "fork: Resource temporarily unavailable"],
}


@pytest.fixture
def bench(scenario: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[OutboxBench]:
    monkeypatch.setattr(outages, "_LOOK_SECONDS", -1.0)
    bench = OutboxBench(scenario)
    scenario.session(12)
    yield bench
    bench.workers.shutdown()


@pytest.fixture
def scarce(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The resources that the machine has run out of."""
    scarce: set[str] = set()

    def there_is_enough(key: str) -> Callable[[Path], bool]:
        return lambda _: key not in scarce

    resources = tuple(one._replace(over=there_is_enough(one.key)) for one in RESOURCES)
    monkeypatch.setattr(outages, "RESOURCES", resources)
    return scarce


class Pinged(socketserver.StreamRequestHandler):
    """An engine that answers one request."""

    def handle(self) -> None:
        self.rfile.readline()
        self.wfile.write(b"HTTP/1.0 200 OK\r\nApi-Version: 1.41\r\n\r\nOK")


def incidents(bench: OutboxBench) -> list[str]:
    return [incident.key for incident in bench.scenario.store.incidents.current()]


@pytest.mark.parametrize("action", [CLOSE, START])
@pytest.mark.parametrize(("key", "said"), [(key, said) for key in KEYS for said in MESSAGES[key]])
def test_an_outage_costs_no_try_is_an_incident_and_ends_by_itself(
    bench: OutboxBench, scarce: set[str], action: Any, key: str, said: str
) -> None:
    def lacks(due: DueAction, check: Any) -> ActionResult:
        scarce.add(key)
        return RetryLater(said)

    bench.scenario.orders("widgets-12", action)
    bench.doing = lacks
    for _ in range(40):
        bench.drains()
        bench.scenario.clock.passes(5)
    assert len(bench.did) == 40
    (entry,) = bench.scenario.store.outbox.of("widgets-12")
    assert (entry.state, entry.attempts) == ("due", 0)
    assert incidents(bench) == [key]
    bench.doing = lambda due, check: Completed()
    scarce.clear()
    bench.drains()
    assert incidents(bench) == []
    assert bench.scenario.store.outbox.of("widgets-12")[0].state == "done"


def test_a_raised_failure_counts_as_an_outage_too(bench: OutboxBench, scarce: set[str]) -> None:
    def raises(due: DueAction, check: Any) -> ActionResult:
        scarce.add("disk")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    bench.scenario.orders("widgets-12", START)
    bench.doing = raises
    for _ in range(9):
        bench.drains()
        bench.scenario.clock.passes(5)
    assert bench.scenario.store.outbox.of("widgets-12")[0].attempts == 0


def test_a_result_that_a_full_disk_cannot_record_costs_no_try(
    bench: OutboxBench, scarce: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise StoreFull("the database x: the disk is full: free some space")

    bench.scenario.orders("widgets-12", CLOSE)
    with monkeypatch.context() as patch:
        patch.setattr(bench.scenario.store.outbox, "mark_done", full)
        for _ in range(9):
            bench.drains()
            bench.scenario.clock.passes(5)
    assert bench.scenario.store.outbox.of("widgets-12")[0].attempts == 0
    bench.drains()
    assert bench.scenario.store.outbox.of("widgets-12")[0].state == "done"


def test_a_full_disk_is_an_incident_even_if_no_action_met_it(
    bench: OutboxBench, scarce: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scarce.add("disk")
    with monkeypatch.context() as patch:
        nothing = SimpleNamespace(f_bavail=0, f_frsize=4096)
        patch.setattr(os, "statvfs", lambda _: nothing)
        bench.outbox.outages.look()
        assert bench.outbox.outages.met("git: couldn't write 'refs/heads/x'")
    assert incidents(bench) == ["disk"]
    assert not bench.outbox.outages.met("the tmux server does not answer")


def test_an_outage_that_could_not_be_recorded_is_recorded_when_it_is_over(
    bench: OutboxBench, scarce: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> bool:
        raise StoreFull("the disk is full")

    store = bench.scenario.store
    assert bench.outbox.outages.met("[Errno 28] No space left on device")
    with monkeypatch.context() as patch:
        patch.setattr(store.incidents, "report", full)
        bench.outbox.outages.look()
    bench.outbox.outages.look()
    (incident,) = store.incidents.recent()
    assert incident.cleared_at is not None
    assert str(store.path.parent) in incident.text


def test_an_outage_that_ended_while_no_bot_ran_is_closed(
    bench: OutboxBench, scarce: set[str]
) -> None:
    scarce.add("files")
    bench.outbox.outages.met("[Errno 24] Too many open files")
    bench.outbox.outages.look()
    scarce.clear()
    store = bench.scenario.store
    Outages(
        store.incidents, store.path.parent, bench.scenario.clock, bench.workers, lambda: True
    ).look()
    assert incidents(bench) == []


def test_an_unreachable_github_costs_no_try_is_an_incident_and_ends_by_itself(
    bench: OutboxBench,
) -> None:
    bench.scenario.orders("widgets-12", CLOSE)
    bench.doing = lambda due, check: RetryLater("GitHub cannot be reached", outage=True)
    bench.github_answers = False
    for _ in range(200):  # For 33 hours.
        bench.drains()
        bench.scenario.clock.passes(600)
    (entry,) = bench.scenario.store.outbox.of("widgets-12")
    assert (entry.state, entry.attempts) == ("due", 0)
    assert incidents(bench) == ["github"]
    bench.github_answers, bench.doing = True, lambda due, check: Completed()
    bench.drains()
    assert bench.scenario.store.outbox.of("widgets-12")[0].state == "done"
    eventually(lambda: bench.drains() or not incidents(bench), "the incident ends by itself")


def test_a_request_that_github_alone_fails_to_answer_costs_tries(bench: OutboxBench) -> None:
    bench.scenario.orders("widgets-12", CLOSE)
    bench.doing = lambda due, check: RetryLater("GitHub answered 502", outage=True)
    bench.drains()
    assert bench.scenario.store.outbox.of("widgets-12")[0].attempts == 1
    assert incidents(bench) == []


@pytest.mark.parametrize("resource", RESOURCES, ids=KEYS)
def test_a_probe_succeeds_as_soon_as_there_is_enough(
    resource: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("DOCKER_HOST", "CONTAINER_HOST"):
        monkeypatch.setenv(variable, f"unix://{tmp_path}/engine.sock")
    server = socketserver.UnixStreamServer(str(tmp_path / "engine.sock"), Pinged)
    with server, ThreadPoolExecutor() as pool:
        answered = pool.submit(server.handle_request) if resource.key in ENGINES else None
        assert resource.over(tmp_path)
        if answered:
            answered.result()

    def lacks(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "none is left")

    monkeypatch.setattr(tempfile, "TemporaryFile", lacks)
    monkeypatch.setattr(os, "open", lacks)
    monkeypatch.setattr(subprocess, "run", lacks)
    assert not resource.over(tmp_path)
