"""Sessions opened by labels, assignments and commands, and ended by closed issues and merges."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from bot.github.snapshots import Labeling
from bot.store import NewCommand
from config.settings import ProjectSettings
from lifecycle.decide import decide
from lifecycle.judge.pauses import frozen_by
from lifecycle.judge.reasons import advice_on
from lifecycle.model.actions import Comment
from lifecycle.model.facts import Issue, Remark
from lifecycle.model.names import FREEZES
from lifecycle.model.policy import Policy
from lifecycle.model.status import Merge, PullState, Reason, Status
from tests.harness.observers import PROJECTS, REPOSITORY, Bench, seen

REMARK = Remark(id="comment:1", author="rob", body="Me too.", at=datetime(2026, 11, 21, tzinfo=UTC))


@pytest.mark.parametrize(("first", "last"), [("rob", "mallory"), ("mallory", "rob")])
def test_the_actor_of_a_label_is_that_of_its_last_labeled_event(
    bench: Bench, first: str, last: str
) -> None:
    at = bench.scenario.clock()
    put = Labeling(label="mergewright", actor=first, at=at, added=True)
    off = Labeling(label="mergewright", actor="ada", at=at, added=False)
    again = Labeling(label="MergeWright", actor=last, at=at, added=True)
    other = Labeling(label="bug", actor="ada", at=at, added=True)
    bench.labelled(labelings=(put, off, again, other))
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    made = bench.store.sessions.get("widgets-12")
    assert (made.requester if made else None) == (last if last == "rob" else None)


def test_a_label_by_a_deleted_account_opens_nothing_and_notifies_nobody(
    bench: Bench,
) -> None:
    bench.labelled(by="")
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    assert (bench.store.sessions.all(), bench.store.outsiders.unnotified()) == ([], [])


@pytest.mark.parametrize(
    ("changes", "commented"),
    [
        ({}, False),
        ({"comments": (replace(REMARK, own=True),)}, True),
        ({"comments": (REMARK,)}, False),
        ({"earlier_comments": 1}, True),
    ],
)
def test_a_session_knows_whether_the_bot_may_have_commented_before(
    bench: Bench, changes: dict[str, Any], commented: bool
) -> None:
    bench.labelled(**changes)
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    assert bench.store.sessions.get("widgets-12").issue.commented is commented


def test_a_removed_label_opens_nothing(bench: Bench) -> None:
    bench.labelled()
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    bench.scenario.clock.passes(60)
    put, at = bench.github.issues[12].labelings[0], bench.scenario.clock()
    off = Labeling(label="mergewright", actor="rob", at=at, added=False)
    bench.labelled(labels=(), labelings=(put, off))
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    assert bench.store.commands.new() == []
    assert not bench.store.facts.get("widgets-12").issue.labelled


@pytest.mark.parametrize(
    "changes", [{"is_pull": True}, {"issue": Issue(number=12, title="x", open=False)}]
)
def test_a_label_on_a_pull_request_or_a_closed_issue_opens_nothing(
    bench: Bench, changes: dict[str, Any]
) -> None:
    bench.labelled(**changes)
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    assert bench.store.sessions.all() == []


@pytest.mark.parametrize(
    ("reason", "status"), [("completed", Status.DONE), ("not_planned", Status.TERMINATED)]
)
def test_a_closed_issue_ends_its_session_and_keeps_the_text_it_had(
    bench: Bench, reason: str, status: Status
) -> None:
    bench.scenario.session()
    closed = Issue(number=12, title="Something else", open=False, state_reason=reason)
    bench.labelled(issue=closed)
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    facts = bench.store.facts.get("widgets-12")
    assert decide(facts, Policy(), bench.scenario.clock()).status is status
    assert facts.issue.title == "It breaks"


def test_the_merge_that_closed_an_issue_is_read_before_the_close(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull(merge=Merge.CLEAN)
    bench.reads()
    bench.pull(state=PullState.MERGED)
    closed = Issue(number=12, title="It breaks", open=False, state_reason="completed")
    bench.labelled(issue=closed)
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    decision = decide(bench.store.facts.get("widgets-12"), Policy(), bench.scenario.clock())
    assert decision.status is Status.MERGED


@pytest.mark.parametrize(("by", "commanded"), [("rob", [("start", "rob")]), ("mallory", [])])
def test_a_second_label_is_answered_with_the_session_that_exists(
    bench: Bench, by: str, commanded: list[tuple[str, str]]
) -> None:
    bench.labelled()
    for _ in range(2):
        seen(bench, 12)
    assert bench.store.facts.get("widgets-12").commands == ()
    bench.scenario.clock.passes(60)
    bench.labelled(by=by)
    for _ in range(2):
        seen(bench, 12)
    facts = bench.store.facts.get("widgets-12")
    assert [(command.kind, command.actor) for command in facts.commands] == commanded
    assert len(bench.store.sessions.all()) == 1
    decision = decide(facts, Policy(), bench.scenario.clock())
    answers = [a.values["text"] for a in decision.actions if isinstance(a, Comment)]
    why = "the session waits for its turn in the queue."
    reply = f"There is already a session here (queued): {why} {advice_on(Reason.NO_SLOT)}"
    assert answers == [reply] * len(commanded)


def test_a_priority_label_can_be_changed_later(bench: Bench) -> None:
    bench.github.issues[12] = bench.labelled(labels=("mergewright", "priority:high"))
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    made = bench.store.sessions.get("widgets-12")
    assert made is not None
    assert (made.priority, made.agent_name, made.agent_type) == (1, "ada", "claude")
    bench.github.issues[12] = bench.labelled(labels=("mergewright", "priority:low"))
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    later = bench.store.sessions.get("widgets-12")
    assert later is not None
    assert later.priority == -1


def test_a_label_freezes_its_session_until_it_is_removed(bench: Bench) -> None:
    bench.github.issues[12] = bench.labelled(labels=("mergewright",))
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    for labels, frozen in ((("mergewright", FREEZES), True), (("mergewright",), False)):
        bench.github.issues[12] = bench.labelled(labels=labels)
        bench.refreshes("issue:12")
        bench.issues.read_requested()
        facts = bench.store.facts.get("widgets-12")
        assert (frozen_by(facts) is not None) is frozen
        decision = decide(facts, Policy(), bench.scenario.clock())
        assert any(one.name == "frozen" for one in decision.blockers) is frozen


def add_label(bench: Bench, name: str, by: str = "ada") -> None:
    put = Labeling(label=name, actor=by, at=bench.scenario.clock(), added=True)
    bench.labelled(labels=(name,), labelings=(put,))
    seen(bench, 12)


def test_a_label_that_names_an_agent_assigns_that_agent(bench: Bench) -> None:
    add_label(bench, "Mergewright:rob")
    made = bench.store.sessions.get("widgets-12")
    assert (made.agent_name, made.agent_type) == ("rob", "shell")


def test_a_label_that_names_an_unknown_agent_is_ignored(bench: Bench) -> None:
    add_label(bench, "mergewright:eve")
    assert bench.store.sessions.all() == []


def test_a_later_label_that_names_an_agent_asks_for_a_handover(bench: Bench) -> None:
    add_label(bench, "mergewright")
    bench.scenario.clock.passes(60)
    add_label(bench, "mergewright:rob")
    (command,) = bench.store.facts.get("widgets-12").commands
    assert (command.kind, command.text) == ("start", "rob")


def test_any_of_several_labels_keeps_the_session(bench: Bench) -> None:
    add_label(bench, "mergewright")
    bench.labelled(labels=("mergewright:rob",), labelings=())
    seen(bench, 12)
    assert bench.store.sessions.get("widgets-12").issue.labelled
    bench.labelled(labels=("other",), labelings=())
    seen(bench, 12)
    assert not bench.store.sessions.get("widgets-12").issue.labelled


def configure(bench: Bench, project: ProjectSettings) -> None:
    """Configure the project of the bench in another way."""
    for part in (bench.issues, bench.opening):
        part.projects = {**PROJECTS, "widgets": project}


@pytest.mark.parametrize(
    ("label", "agent"), [("Robot work", "claude"), ("robot work:rob", "shell")]
)
def test_a_project_configures_its_label_and_branch_names(
    bench: Bench, label: str, agent: str
) -> None:
    configure(bench, replace(PROJECTS["widgets"], label="Robot Work", branch="bot/{number}"))
    add_label(bench, "mergewright")
    assert bench.store.sessions.all() == []
    add_label(bench, label)
    made = bench.store.sessions.get("widgets-12")
    assert (made.agent_type, made.branch) == (agent, "bot/12")


def test_an_assignment_to_the_machine_user_opens_a_session_until_it_is_removed(
    bench: Bench,
) -> None:
    add_label(bench, "@Robot")
    assert bench.store.sessions.all() == []
    configure(bench, replace(PROJECTS["widgets"], assignee="@robot"))
    add_label(bench, "@Robot", by="mallory")
    assert bench.store.sessions.all() == []
    add_label(bench, "@Robot")
    made = bench.store.sessions.get("widgets-12")
    assert (made.requester, made.issue.labelled) == ("ada", True)
    bench.labelled(labels=(), labelings=())
    seen(bench, 12)
    assert not bench.store.sessions.get("widgets-12").issue.labelled


def starts(bench: Bench, text: str) -> Any:
    """Why the start command of a person is refused."""
    bench.labelled(labels=(), labelings=())
    command = NewCommand(
        key=f"comment:{text}",
        repository=REPOSITORY,
        number=12,
        kind="start",
        actor="ada",
        at=bench.scenario.clock(),
        text=text,
    )
    bench.store.commands.add(command)
    bench.commands.settle()
    bench.issues.read_requested()
    return bench.store.commands.outcome(command.key)


def test_a_session_has_the_permission_mode_of_its_start_command(bench: Bench) -> None:
    starts(bench, "claude permission-mode=confirm")
    facts = bench.store.facts.get("widgets-12")
    assert (facts.agent_type, facts.permission_mode) == ("claude", "confirm")


def test_a_start_command_with_a_permission_mode_that_is_not_allowed_opens_nothing(
    bench: Bench,
) -> None:
    bench.opening.modes_of = lambda _: {"claude": ("confirm", "reject"), "shell": ()}
    assert starts(bench, "claude permission-mode=auto") == (
        "`claude` may not run with `permission-mode=auto` here, only with confirm or reject"
    )
    why = "`shell` has no permission modes, so it cannot run with `permission-mode=reject`"
    assert starts(bench, "shell permission-mode=reject") == why
    assert bench.store.sessions.all() == []
