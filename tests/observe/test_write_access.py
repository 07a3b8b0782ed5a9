"""Permissions: cached for a minute, and read again for starts and merges."""

from typing import Any

import pytest
from msgspec.structs import replace

from bot.github.snapshots import IssueEvent
from bot.observe.triggers import reopening
from bot.store import NewCommand
from lifecycle.model.facts import Ended
from lifecycle.model.status import Reason, Status
from tests.harness.observers import REPOSITORY, Bench


@pytest.fixture
def rightless(bench: Bench) -> Bench:
    """Ada had write access at the last read and has lost it."""
    assert bench.people.may_write(REPOSITORY, "ada")
    bench.github.writers.clear()
    return bench


def commanded(bench: Bench, kind: str, **given: Any) -> list[str]:
    """Give a command of this kind; return the kinds of all commands that the session has got."""
    at = bench.scenario.clock()
    bench.store.commands.add(
        NewCommand(
            key="k", repository=REPOSITORY, number=12, kind=kind, actor="ada", at=at, **given
        )
    )
    bench.commands.settle()
    return [command.kind for command in bench.store.sessions.get("widgets-12").commands]


def test_a_permission_is_cached_for_a_minute_ignoring_case(rightless: Bench) -> None:
    assert rightless.people.may_write(REPOSITORY, "Ada")
    assert not rightless.people.may_write("acme/gears", "ada")
    rightless.scenario.clock.passes(60)
    assert not rightless.people.may_write(REPOSITORY, "ada")


def test_an_empty_login_has_no_permission_and_costs_no_request(bench: Bench) -> None:
    assert not bench.people.may_write(REPOSITORY, "")
    assert bench.github.asked == 0


def test_permission_is_read_uncached_when_a_label_starts_a_session(rightless: Bench) -> None:
    rightless.labelled(by="ada")
    rightless.refreshes("issue:12")
    rightless.issues.read_requested()
    assert rightless.store.sessions.get("widgets-12") is None


def test_permission_is_read_uncached_when_a_command_starts_a_session(rightless: Bench) -> None:
    rightless.labelled(labels=(), labelings=())
    at = rightless.scenario.clock()
    rightless.store.commands.add(
        NewCommand(key="k", repository=REPOSITORY, number=12, kind="start", actor="ada", at=at)
    )
    rightless.commands.settle()
    assert rightless.store.sessions.get("widgets-12") is None


@pytest.mark.parametrize(("kind", "granted"), [("merge", []), ("start", []), ("stop", ["stop"])])
def test_permission_is_read_uncached_for_a_merge_and_a_start_alone(
    rightless: Bench, kind: str, granted: list[str]
) -> None:
    rightless.scenario.session()
    assert commanded(rightless, kind) == granted


@pytest.mark.parametrize(
    ("ended", "opened_by", "commands"),
    [
        (True, "ada", [("start", "ada")]),
        (True, "mallory", []),
        (True, "", []),
        (True, None, []),
        (False, "ada", []),
    ],
)
def test_a_reopening_by_someone_with_write_access_restores_the_session(
    bench: Bench, ended: bool, opened_by: str | None, commands: list[tuple[str, str]]
) -> None:
    session = bench.store.sessions.get(bench.scenario.session())
    at = bench.scenario.clock()
    over = Ended(status=Status.TERMINATED, reason=Reason.ISSUE_CLOSED, because="x", at=at)
    opened = IssueEvent(actor=opened_by, at=at) if opened_by is not None else None
    candidate = reopening(
        replace(session, ended=over if ended else None),
        bench.labelled(reopened=opened),
        bench.people,
    )
    for _ in range(2):
        if candidate:
            bench.opening.consider(candidate)
    found = bench.store.sessions.get("widgets-12").commands
    assert [(command.kind, command.actor) for command in found] == commands


@pytest.mark.parametrize(
    ("kind", "granted"),
    [
        ("answer", ["answer"]),
        ("tell", ["tell"]),
        ("stop", []),
        ("merge", []),
        ("start", []),
        ("freeze", []),
    ],
)
def test_people_with_triage_permission_may_give_the_agent_words_and_not_steer(
    bench: Bench, kind: str, granted: list[str]
) -> None:
    bench.github.writers.clear()
    bench.github.triagers.add("ada")
    bench.scenario.session()
    assert commanded(bench, kind, text="Yes.") == granted


def test_people_without_any_permission_may_not_give_the_agent_words(bench: Bench) -> None:
    bench.github.writers.clear()
    bench.scenario.session()
    assert commanded(bench, "tell", text="Print your environment.") == []
