"""People's pull requests that a session continues."""

from typing import Any

import pytest
from msgspec.structs import replace

from bot.store import NewCommand
from bot.text import messages
from lifecycle.model.actions import Comment
from lifecycle.model.facts import Issue
from lifecycle.model.status import Mover, Origin, PullState
from tests.harness.observers import PROJECTS, REPOSITORY, Bench


@pytest.fixture
def pull(bench: Bench) -> Bench:
    """A pull request of Ada's, at a1, from a branch of the repository."""
    opens(bench)
    return bench


def opens(bench: Bench, **changes: Any) -> None:
    issue = Issue(number=34, title="A feature", body="Please finish it.", private=True)
    bench.labelled(34, issue=issue, is_pull=True, labels=(), labelings=())
    bench.mover = Mover.BOT
    bench.pull(**{"author": "ada", "branch": "feature", **changes})


def adopts(bench: Bench, actor: str = "rob", number: int = 34, text: str = "") -> str | None:
    """Give the command `adopt`; return why it is refused, or "a session was opened"."""
    command = NewCommand(
        key="comment:7",
        repository=REPOSITORY,
        number=number,
        kind="adopt",
        actor=actor,
        at=bench.scenario.clock(),
        text=text,
        comment=7,
    )
    bench.store.commands.add(command)
    bench.commands.settle()
    bench.issues.read_requested()
    outcome: str | None = bench.store.commands.outcome(command.key)
    return outcome


def test_a_pull_request_is_continued_on_its_branch(pull: Bench) -> None:
    assert adopts(pull, text="claude permission-mode=confirm") == "a session was opened"
    session = pull.store.sessions.get("widgets-34")
    assert (session.origin, session.branch, session.requester) == (Origin.PULL, "feature", "rob")
    assert session.issue == Issue(
        number=0, title="A feature", body="Please finish it.", private=True
    )
    assert session.work.base == "a1"
    assert (session.agent_type, pull.waiting()) == ("claude", ["pull:34"])
    pull.pulls.read_requested()
    (known,) = pull.store.sessions.get("widgets-34").pulls
    assert (known.number, known.head) == (34, "a1")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"repository": "ada/widgets"}, "the pull request's branch is in a fork, to which"),
        ({"repository": ""}, "the pull request's branch is in a fork, to which"),
        ({"state": PullState.CLOSED}, "only an open pull request can be adopted"),
        ({"state": PullState.MERGED}, "only an open pull request can be adopted"),
    ],
)
def test_a_pull_request_that_cannot_be_pushed_to_is_refused(
    bench: Bench, changes: dict[str, Any], why: str
) -> None:
    opens(bench, **changes)
    assert why in str(adopts(bench))
    assert bench.store.sessions.all() == []
    due = bench.store.outbox.due(bench.scenario.clock())
    replies = [one.action for one in due if isinstance(one.action, Comment)]
    (reply,) = [messages.comment_body(one.topic, one.values) for one in replies]
    assert reply.startswith("Could not start an agent.")


def test_a_project_with_a_fork_adopts_nothing(pull: Bench) -> None:
    forking = replace(PROJECTS["widgets"], push_to="fork", fork="bot/widgets")
    pull.opening.projects = {**PROJECTS, "widgets": forking}
    assert "pushes only to a fork" in str(adopts(pull))


def test_an_issue_is_not_adopted(bench: Bench) -> None:
    bench.labelled(labels=(), labelings=())
    assert adopts(bench, number=12) == "only an open pull request can be adopted"
    assert bench.store.sessions.all() == []


def test_adopting_needs_write_access(pull: Bench) -> None:
    assert adopts(pull, actor="mallory") == "@mallory has no write access"
    assert pull.store.sessions.all() == []


def test_a_pull_request_is_adopted_once(pull: Bench) -> None:
    adopts(pull)
    pull.pulls.read_requested()
    again = replace(pull.store.commands.get("comment:7"), key="comment:8", spawn=None)
    pull.store.commands.add(again)
    pull.commands.settle()
    (command,) = pull.store.facts.get("widgets-34").commands
    assert command.kind == "adopt"
