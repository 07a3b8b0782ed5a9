"""Commands are granted to a session, refused, or answered although there is no session."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bot.github.errors import TryLater
from bot.github.snapshots import IssueEvent
from bot.store import DueAction, NewCommand, NewSession, Observation
from bot.text import messages
from lifecycle.judge.judge import judge
from lifecycle.model.actions import Comment, React, Start
from lifecycle.model.facts import Command, Issue, Pull
from lifecycle.model.policy import Policy
from lifecycle.model.status import PullState
from lifecycle.react import runs
from tests.harness.observers import REPOSITORY, Bench


class Conversation:
    """An issue on which people give commands, and what the outbox holds for it."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.store, self.commands = bench, bench.store, bench.commands

    def outbox(self) -> list[DueAction]:
        due = self.store.outbox.due(self.bench.scenario.clock())
        return [one for one in due if not one.session and one.repository == REPOSITORY]

    @property
    def comments(self) -> list[tuple[int, str]]:
        found = [one.action for one in self.outbox() if isinstance(one.action, Comment)]
        return [(one.number, messages.comment_body(one.topic, one.values)) for one in found]

    @property
    def reactions(self) -> list[tuple[int, str]]:
        found = [one.action for one in self.outbox() if isinstance(one.action, React)]
        return [(one.comment, one.content) for one in found]

    def command(
        self, kind: str, text: str = "", actor: str = "ada", number: int = 12, resume: str = ""
    ) -> None:
        command = NewCommand(
            key=f"comment:{kind}:{number}",
            repository=REPOSITORY,
            number=number,
            kind=kind,
            actor=actor,
            at=self.bench.scenario.clock(),
            text=text,
            comment=None if ":" in actor else 7,
            resume=resume,
        )
        self.store.commands.add(command)
        self.commands.settle()
        self.bench.issues.read_requested()

    def granted(self) -> list[str]:
        return [command.kind for command in self.store.facts.get("widgets-12").commands]

    def heads(self) -> list[str]:
        session = self.store.sessions.get("widgets-12")
        assert session is not None
        return [command.head for command in session.commands]


@pytest.fixture
def conversation(scenario: Any) -> Conversation:
    return Conversation(Bench(scenario))


def test_a_command_without_a_session_is_answered_once(conversation: Conversation) -> None:
    conversation.command("stop")
    conversation.commands.settle()
    ((number, body),) = conversation.comments
    assert number == 12
    assert "The command `stop` did nothing: there is no session" in body


def test_a_command_without_a_session_and_one_that_opens_it_are_acknowledged(
    conversation: Conversation,
) -> None:
    conversation.command("stop")
    conversation.command("stop", actor="mallory", number=13)
    conversation.bench.labelled(labels=(), labelings=())
    conversation.command("start")
    assert conversation.reactions == [(7, "eyes"), (7, "eyes")]


def test_help_is_answered_without_a_session(conversation: Conversation) -> None:
    conversation.command("help", "What can be said: all of this.")
    assert [body for _, body in conversation.comments] == ["What can be said: all of this."]


def test_outsiders_are_answered_once_only(conversation: Conversation) -> None:
    for kind in ("help", "stop", "start"):
        conversation.command(kind, actor="mallory")
    assert conversation.comments == []
    assert conversation.store.commands.new() == []
    assert conversation.store.sessions.all() == []
    assert [(one.issue, one.login) for one in conversation.store.outsiders.unnotified()] == [
        (12, "mallory")
    ]


def test_in_a_silenced_repository_a_command_is_settled_without_an_answer(
    conversation: Conversation,
) -> None:
    conversation.bench.silenced = True
    conversation.command("stop")
    conversation.command("start", "codx", number=13)
    assert (conversation.outbox(), conversation.store.commands.new()) == ([], [])


def test_a_start_command_waits_until_its_issue_can_be_read(conversation: Conversation) -> None:
    conversation.bench.github.issues[12] = TryLater("an outage")
    conversation.command("start")
    assert conversation.store.commands.outcome("comment:start:12") is None
    conversation.bench.labelled(labels=(), labelings=())
    conversation.bench.scenario.clock.passes(60)
    conversation.bench.issues.read_requested()
    assert conversation.store.commands.outcome("comment:start:12") == "a session was opened"
    assert [one.id for one in conversation.store.sessions.all()] == ["widgets-12"]


def test_a_start_command_goes_to_the_session_that_was_opened_meanwhile(
    conversation: Conversation,
) -> None:
    conversation.bench.github.issues[12] = TryLater("an outage")
    conversation.command("start", "rob")
    conversation.bench.scenario.session()
    conversation.bench.labelled()
    conversation.bench.scenario.clock.passes(60)
    conversation.bench.issues.read_requested()
    (command,) = conversation.store.facts.get("widgets-12").commands
    assert (command.kind, command.text) == ("start", "rob")


def test_a_start_in_a_repository_without_a_project_is_refused_unread(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation.bench.github.issues[12] = TryLater("never read")
    monkeypatch.setattr(conversation.bench.issues, "projects", {})
    conversation.command("start")
    why = conversation.store.commands.outcome("comment:start:12")
    assert why == f"no project is configured for {REPOSITORY}"


def test_a_crash_after_a_session_was_opened_gives_it_no_second_start(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = conversation.bench
    bench.labelled(labels=(), labelings=())
    with monkeypatch.context() as patched:
        patched.setattr(bench.opening, "crash_point", lambda *_: 1 / 0)
        conversation.command("start")
    bench.scenario.clock.passes(60)
    assert bench.issues.read_requested() == 1
    assert conversation.store.commands.outcome("comment:start:12") == "a session was opened"
    assert conversation.store.facts.get("widgets-12").commands == ()


def test_a_start_whose_branch_belongs_to_another_session_is_answered(
    conversation: Conversation,
) -> None:
    bench = conversation.bench
    other = NewSession(
        id="widgets-99",
        project="widgets",
        repository=REPOSITORY,
        created=bench.scenario.clock(),
        issue=Issue(number=99, title="x"),
        branch="mergewright/12-it-breaks",
        requester="ada",
        agent_type="shell",
    )
    assert conversation.store.sessions.create(other)
    bench.labelled(labels=(), labelings=())
    conversation.command("start")
    assert (
        "nother session already has the ID or the branch of widgets-12"
        in conversation.comments[0][1]
    )


def test_the_first_run_resumes_the_conversation_of_its_start_command(
    conversation: Conversation,
) -> None:
    conversation.bench.labelled(labels=(), labelings=())
    conversation.command(
        "start", "claude", actor="cli:ada", resume="4bb28834-d7d9-428f-9c9f-9179ca24a4f5"
    )
    facts = conversation.store.facts.get("widgets-12")
    judged = judge(replace(facts, slot=True), Policy(), conversation.bench.scenario.clock())
    (start,) = runs.start(judged)
    assert isinstance(start, Start)
    assert (start.run, start.prompt.name, start.resume) == (
        1,
        "start",
        "4bb28834-d7d9-428f-9c9f-9179ca24a4f5",
    )


def test_start_opens_a_session_for_an_issue_without_the_label(
    conversation: Conversation,
) -> None:
    conversation.bench.labelled(labels=(), labelings=())
    conversation.command("start", "claude")
    session = conversation.store.sessions.get("widgets-12")
    assert session is not None
    assert (session.requester, session.agent_type) == ("ada", "claude")
    assert conversation.comments == []
    conversation.bench.refreshes("issue:12")
    conversation.bench.issues.read_requested()
    session = conversation.store.sessions.get("widgets-12")
    assert session is not None
    assert session.issue.labelled


def test_a_label_added_later_counts_from_then_on(conversation: Conversation) -> None:
    conversation.bench.labelled(labels=(), labelings=())
    conversation.command("start")
    for reading in (
        conversation.bench.labelled(),
        conversation.bench.labelled(labels=(), labelings=()),
    ):
        conversation.bench.github.issues[12] = reading
        conversation.bench.refreshes("issue:12")
        conversation.bench.issues.read_requested()
    session = conversation.store.sessions.get("widgets-12")
    assert session is not None
    assert not session.issue.labelled


@pytest.mark.parametrize(
    ("change", "text", "why"),
    [
        ({"labels": (), "labelings": ()}, "codx", "there is no agent `codx` here"),
        ({"is_pull": True}, "", "agents can only be started on an open issue"),
        (
            {"issue": Issue(number=12, title="x", open=False)},
            "",
            "agents can only be started on an open",
        ),
    ],
)
def test_an_impossible_start_is_answered(
    conversation: Conversation, change: dict[str, Any], text: str, why: str
) -> None:
    conversation.bench.labelled(**change)
    conversation.command("start", text)
    assert f"Could not start an agent. {why[0].upper()}{why[1:]}" in conversation.comments[0][1]
    assert conversation.store.sessions.all() == []


def test_an_issue_edited_by_an_outsider_after_the_command_is_refused(
    conversation: Conversation,
) -> None:
    later = conversation.bench.scenario.clock() + timedelta(seconds=1)
    conversation.bench.labelled(edits=(IssueEvent(actor="mallory", at=later),))
    conversation.command("start")
    says = "without write access (@\u200bmallory) edited the title or description after"
    assert says in conversation.comments[0][1]
    assert conversation.store.sessions.all() == []


def test_a_local_command_needs_no_permission_on_github(conversation: Conversation) -> None:
    conversation.bench.labelled(labels=(), labelings=())
    conversation.command("start", actor="cli:root")
    session = conversation.store.sessions.get("widgets-12")
    assert session is not None
    assert session.requester == "cli:root"
    assert conversation.bench.github.asked == 0


def test_a_local_command_is_not_answered_on_github(
    conversation: Conversation,
) -> None:
    conversation.command("start", "codx", actor="cli:root")
    assert conversation.comments == []
    comment_text = conversation.store.commands.outcome("comment:start:12")
    assert comment_text is not None
    assert "there is no agent `codx` here" in comment_text


@pytest.mark.parametrize("actor", ["mallory", "ada"])
@pytest.mark.parametrize("kind", ["adopt", "allow", "budget", "merge"])
def test_protected_paths_and_money_need_write_access_at_this_moment(
    conversation: Conversation, kind: str, actor: str
) -> None:
    """To be listed is not enough, and a permission that was just revoked counts no more."""
    bench = conversation.bench
    bench.scenario.session()
    bench.people.is_listed = lambda _, login: login == "mallory"
    conversation.command("pause", actor=actor)
    bench.github.writers.discard("ada")
    conversation.command("stop", actor=actor)
    conversation.command(kind, actor=actor)
    assert conversation.granted() == ["pause", "stop"]


def test_a_merge_command_on_the_issue_means_its_only_open_pull_request(
    conversation: Conversation,
) -> None:
    conversation.bench.scenario.session()
    now = conversation.bench.scenario.clock()
    old = Pull(number=33, head="o" * 40, state=PullState.CLOSED, head_since=now)
    new = Pull(number=34, head="n" * 40, head_since=now)
    conversation.store.observations.record(
        [Observation(session="widgets-12", pulls=(old, new))], now
    )
    conversation.command("merge")
    assert conversation.heads() == ["n" * 40]


def test_a_command_keeps_where_it_was_given(conversation: Conversation) -> None:
    conversation.bench.scenario.session()
    now = conversation.bench.scenario.clock()
    conversation.command("why")
    page = Command(key="page:1", kind="pause", actor="page:visitor", at=now)
    label = Command(key="label:1", kind="start", actor="ada", at=now, number=12)
    for command in (page, label):
        conversation.store.commands.add_granted("widgets-12", command)
    session = conversation.store.sessions.get("widgets-12")
    assert session is not None
    assert {one.kind: one.number for one in session.commands} == {
        "why": 12,
        "pause": 0,
        "start": 12,
    }


@pytest.mark.parametrize("after", ["nothing", "a push", "a merge"])
def test_a_merge_command_on_an_issue_with_several_open_pull_requests_means_none(
    conversation: Conversation, after: str
) -> None:
    """Nor does it mean one of them after a push to the other one, or after its merge."""
    conversation.bench.scenario.session()
    now = conversation.bench.scenario.clock()
    later = now + timedelta(seconds=5)
    other = Pull(number=33, head="33" * 20, head_since=later if after == "a push" else now)
    if after == "a merge":
        other = replace(other, state=PullState.MERGED, merged_at=later)
    pulls = (other, Pull(number=34, head="34" * 20, head_since=now))
    conversation.store.observations.record([Observation(session="widgets-12", pulls=pulls)], now)
    conversation.command("merge")
    conversation.command("merge", number=34)
    assert conversation.heads() == ["", "34" * 20]


@pytest.mark.parametrize("changed", ["head_since", "base_since"])
def test_a_merge_command_older_than_the_head_or_its_base_branch_is_bound_to_none(
    conversation: Conversation, changed: str
) -> None:
    conversation.bench.scenario.session()
    now = conversation.bench.scenario.clock()
    later: dict[str, Any] = {changed: now + timedelta(seconds=5)}
    moved = Pull(number=34, head="n" * 40, **later)
    conversation.store.observations.record([Observation(session="widgets-12", pulls=(moved,))], now)
    conversation.command("merge", number=34)
    assert conversation.heads() == [""]


def test_a_command_on_a_pull_request_waits_until_it_is_read(conversation: Conversation) -> None:
    bench = conversation.bench
    bench.pushed("a1")
    bench.pull()
    bench.refreshes("pull:34")
    conversation.command("merge", number=34)
    assert conversation.comments == []
    bench.pulls.read_requested()
    conversation.commands.settle()
    assert conversation.heads() == ["a1"]


def test_a_repository_without_answers_delays_only_its_own_commands(
    conversation: Conversation,
) -> None:
    conversation.bench.github.refuses.add("acme/gears")
    other = NewCommand(
        key="comment:1",
        repository="acme/gears",
        number=1,
        kind="stop",
        actor="ada",
        at=conversation.bench.scenario.clock() - timedelta(seconds=1),
    )
    conversation.store.commands.add(other)
    conversation.command("stop")
    waiting = conversation.store.commands.new()
    assert [command.repository for command in waiting] == ["acme/gears"]
