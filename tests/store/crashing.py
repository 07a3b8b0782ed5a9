"""A scenario in steps, killed before every statement of its writer; run as a program.

    python crashing.py FOLDER

Each run starts from an empty database and kills itself with SIGKILL one statement later than the
run before. What is then on disk must be the state after the last step that was acknowledged, or
after the next one: never less, never half. Prints the number of kills and the runs that failed.
"""

import json
import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bot.store import (
    DatedKind,
    Delivery,
    NewCommand,
    NewNotification,
    NewSession,
    NotificationEvent,
    Observation,
    RefreshRequest,
    SessionDecision,
    Store,
)
from lifecycle.judge.capacity import Caps
from lifecycle.model import keys
from lifecycle.model.actions import CloseIssue, Prompt, Start
from lifecycle.model.facts import Agent, Issue, Pull, Usage
from lifecycle.model.key import StartCause
from lifecycle.model.status import Activity, Reason

NOW = datetime(2030, 1, 1, tzinfo=UTC)
REPOSITORY = "acme/widgets"


def steps(store: Store) -> list[Callable[[], object]]:
    """The writes of a bot, each step one call."""
    deliveries = [Delivery(id=name, event="issues", at=NOW, body=b"{}") for name in "abc"]
    refresh = RefreshRequest(repository=REPOSITORY, subject="issue:12")
    command = NewCommand(
        key="comment:7", repository=REPOSITORY, number=12, kind="stop", actor="ada", at=NOW
    )
    session = NewSession(
        id="widgets-12",
        project="widgets",
        repository=REPOSITORY,
        created=NOW,
        issue=Issue(number=12, title="It breaks"),
        branch="mergewright/12",
    )
    actions = (
        Start(key=keys.start(StartCause.FIRST, 1), run=1, prompt=Prompt(name="issue")),
        CloseIssue(key=keys.close_issue(), number=12),
    )
    decision = SessionDecision(status="working", reason="", because="", run=1, actions=actions)
    seen = Observation(
        session="widgets-12", agent=Agent(run=1, activity=Activity.ACTIVE, usage=Usage(input=5))
    )
    pulls = Observation(session="widgets-12", pulls=(Pull(number=34, head="feed"),))

    raised = NewNotification(
        notifier="team",
        session="widgets-12",
        cause="question:1#1",
        event=NotificationEvent.RAISED,
        priority="action",
        message="{}",
    )
    resolved = replace(raised, event=NotificationEvent.RESOLVED)

    def decide() -> None:
        sessions = store.facts.load(["widgets-12"])
        store.decisions.record([(loaded, decision) for loaded in sessions], NOW)[0].result()

    return [
        lambda: store.lease.acquire("bot", NOW, 30),
        lambda: store.deliveries.add(deliveries).result(),
        lambda: store.deliveries.mark_done("a", [refresh], [command]),
        lambda: store.deliveries.mark_failed("b", "no"),
        lambda: store.sessions.create(session),
        lambda: store.commands.grant("comment:7", "widgets-12", NOW, head="cafe"),
        lambda: store.slots.assign(Caps(sessions=1)),
        lambda: store.sessions.postpone(["widgets-12"], NOW),
        lambda: store.freezes.add("", "ada"),
        lambda: store.freezes.remove("", "ada"),
        decide,
        lambda: store.outbox.mark_done(1, "", NOW, observed=seen, refreshes=[refresh]),
        lambda: store.outbox.mark_failed(2, Reason.ACTION_FAILED, "403", NOW),
        lambda: store.observations.record([pulls], NOW),
        lambda: store.refreshes.mark_done(store.refreshes.due(NOW, ("issue:",))[0]),
        lambda: store.notifications.record(NOW, new=[raised], cursors={"notify team": NOW}),
        lambda: store.notifications.begin(1),
        lambda: store.notifications.mark_sent(1, NOW),
        lambda: store.notifications.record(NOW, resolved=[(1, resolved)]),
        lambda: store.expiry.delete_dated(DatedKind.DELIVERIES, NOW.replace(year=2031)),
    ]


def dump(path: Path) -> list[Any]:
    """Everything in the database."""
    connection = sqlite3.connect(path)
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
    tables = [connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names]
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    return tables


def states(path: Path) -> list[Any]:
    """What is on disk before the first step and after each."""
    store = Store(path, clock=lambda: NOW)
    found = [dump(path)]
    for step in steps(store):
        step()
        found.append(dump(path))
    store.close()
    return found


def run(path: Path, kill_at: int, acknowledged: int) -> None:
    """Do the steps, write a byte to a pipe after each, and die before the statement `kill_at`."""
    store = Store(path, clock=lambda: NOW)
    count = 0

    def trace(statement: str) -> None:
        nonlocal count
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    store.db.write(lambda connection: connection.set_trace_callback(trace))
    for step in steps(store):
        step()
        os.write(acknowledged, b".")


def main(folder: Path) -> None:
    empty = folder / "empty.db"
    Store(empty).close()
    expected = states(Path(shutil.copy(empty, folder / "whole.db")))
    wrong, kill_at = [], 0
    while True:
        kill_at += 1
        path = Path(shutil.copy(empty, folder / f"{kill_at}.db"))
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            run(path, kill_at, writer)
            os._exit(0)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        done = len(os.read(reader, 1000))
        os.close(reader)
        if os.WIFEXITED(status):
            wrong += [f"run {kill_at} ended by itself with {status}"] * bool(status)
            break
        if dump(path) not in expected[done : done + 2]:
            wrong.append(f"killed at statement {kill_at} with {done} steps acknowledged")
    print(json.dumps({"kills": kill_at - 1, "steps": len(expected) - 1, "wrong": wrong}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
