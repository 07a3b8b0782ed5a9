"""What becomes of a command: granted to its session, refused in silence, or answered."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bot.github.errors import Refused, TryLater
from bot.github.snapshots import Edit
from bot.intake.authorize import Commands
from bot.store import NewCommand, Observation
from lifecycle.judge.judge import judge
from lifecycle.model.actions import Start
from lifecycle.model.facts import Issue, Pull
from lifecycle.model.policy import Policy
from lifecycle.model.status import PullState
from lifecycle.react import runs
from tests.bot.reading import REPOSITORY, Bench


class Availability:
    """A bench on which the bot can say something."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.store = bench, bench.store
        self.said: list[tuple[int, str, str]] = []
        self.seen: list[tuple[int, str]] = []
        self.trouble: Exception | None = None
        self.locked = False
        self.may_act = True
        self.may_speak = True
        github: Any = bench.github
        github.write = self
        self.commands = Commands(
            *(bench.store, github, bench.people, bench.issues, bench.room.clock),
            lambda: self.may_act,
            lambda _: self.may_speak,
        )

    def comment(self, repo: str, number: int, body: str, key: str) -> int:
        if self.trouble is not None:
            raise self.trouble
        self.said.append((number, body, key))
        return len(self.said)

    def react(self, repo: str, comment: int, content: str) -> None:
        if self.locked:
            raise Refused("the conversation is locked", 403)
        self.seen.append((comment, content))

    def command(
        self, kind: str, text: str = "", actor: str = "ada", number: int = 12, resume: str = ""
    ) -> None:
        command = NewCommand(
            key=f"comment:{kind}:{number}",
            repository=REPOSITORY,
            number=number,
            kind=kind,
            actor=actor,
            at=self.bench.room.clock(),
            text=text,
            comment=None if ":" in actor else 7,
            resume=resume,
        )
        self.store.commands.add(command)
        self.commands.settle()

    def heads(self) -> list[str]:
        session = self.store.sessions.get("widgets-12")
        assert session is not None
        return [command.head for command in session.commands]


@pytest.fixture
def availability(room: Any) -> Availability:
    return Availability(Bench(room))


def test_a_command_where_no_session_works_is_answered_once(availability: Availability) -> None:
    availability.command("stop")
    availability.commands.settle()
    ((number, body, key),) = availability.said
    assert (number, key) == (12, "comment:stop:12")
    assert "Nothing to stop: there is no session" in body


def test_a_command_is_seen_where_no_session_works_and_where_it_makes_one(
    availability: Availability,
) -> None:
    availability.command("stop")
    availability.command("stop", actor="mallory", number=13)
    availability.bench.labelled(labels=(), labelings=())
    availability.command("start")
    assert availability.seen == [(7, "eyes"), (7, "eyes")]


def test_a_command_that_takes_no_reaction_is_answered_all_the_same(
    availability: Availability,
) -> None:
    availability.locked = True
    availability.command("stop")
    assert [number for number, _, _ in availability.said] == [12]


def test_help_is_answered_where_no_session_works(availability: Availability) -> None:
    availability.command("help", "What can be said: all of this.")
    assert [body for _, body, _ in availability.said] == ["What can be said: all of this."]


def test_strangers_cannot_make_the_bot_talk_but_once(availability: Availability) -> None:
    for kind in ("help", "stop", "start"):
        availability.command(kind, actor="mallory")
    assert availability.said == []
    assert availability.store.commands.new() == []
    assert availability.store.sessions.all() == []
    assert [(one.issue, one.login) for one in availability.store.outsiders.unnotified()] == [
        (12, "mallory")
    ]


def test_where_nothing_may_be_written_a_command_is_settled_in_silence(
    availability: Availability,
) -> None:
    availability.may_speak = False
    availability.command("stop")
    assert (availability.said, availability.store.commands.new()) == ([], [])


def test_a_bot_that_acts_no_more_leaves_the_answer_to_the_next(availability: Availability) -> None:
    availability.may_act = False
    availability.command("stop")
    assert availability.said == []
    assert [command.kind for command in availability.store.commands.new()] == ["stop"]


def test_an_answer_that_fails_is_tried_again_and_one_that_is_refused_is_not(
    availability: Availability,
) -> None:
    availability.trouble = TryLater("an outage")
    availability.command("stop")
    assert [command.kind for command in availability.store.commands.new()] == ["stop"]
    availability.trouble = Refused("the conversation is locked", 403)
    availability.bench.room.clock.passes(60)
    assert availability.commands.settle() == 1
    assert availability.store.commands.new() == []


def test_the_first_run_goes_on_with_the_conversation_it_was_started_with(
    availability: Availability,
) -> None:
    availability.bench.labelled(labels=(), labelings=())
    availability.command(
        "start", "claude", actor="cli:ada", resume="4bb28834-d7d9-428f-9c9f-9179ca24a4f5"
    )
    facts = availability.store.facts.get("widgets-12")
    judged = judge(replace(facts, slot=True), Policy(), availability.bench.room.clock())
    (start,) = runs.start(judged)
    assert isinstance(start, Start)
    assert (start.run, start.prompt.name, start.resume) == (
        1,
        "start",
        "4bb28834-d7d9-428f-9c9f-9179ca24a4f5",
    )


def test_start_makes_a_session_of_an_issue_that_was_never_labelled(
    availability: Availability,
) -> None:
    availability.bench.labelled(labels=(), labelings=())
    availability.command("start", "claude")
    session = availability.store.sessions.get("widgets-12")
    assert session is not None
    assert (session.requester, session.agent_type) == ("ada", "claude")
    assert availability.said == []
    availability.bench.refreshes("issue:12")
    availability.bench.issues.read_requested()
    session = availability.store.sessions.get("widgets-12")
    assert session is not None
    assert session.issue.labelled


def test_a_label_put_on_later_counts_from_then_on(availability: Availability) -> None:
    availability.bench.labelled(labels=(), labelings=())
    availability.command("start")
    for reading in (
        availability.bench.labelled(),
        availability.bench.labelled(labels=(), labelings=()),
    ):
        availability.bench.github.issues[12] = reading
        availability.bench.refreshes("issue:12")
        availability.bench.issues.read_requested()
    session = availability.store.sessions.get("widgets-12")
    assert session is not None
    assert not session.issue.labelled


@pytest.mark.parametrize(
    ("change", "text", "why"),
    [
        ({}, "codx", "there is no agent `codx` here"),
        ({"is_pull": True}, "", "an agent is started on an open issue"),
        ({"issue": Issue(number=12, title="x", open=False)}, "", "an agent is started on an open"),
    ],
)
def test_a_start_that_cannot_be_is_answered(
    availability: Availability, change: dict[str, Any], text: str, why: str
) -> None:
    availability.bench.labelled(**change)
    availability.command("start", text)
    assert f"Could not start an agent. {why[0].upper()}{why[1:]}" in availability.said[0][1]
    assert availability.store.sessions.all() == []


def test_what_a_stranger_wrote_since_then_is_not_started(availability: Availability) -> None:
    later = availability.bench.room.clock() + timedelta(seconds=1)
    availability.bench.labelled(edits=(Edit(actor="mallory", at=later),))
    availability.command("start")
    assert "who may not write, edited it" in availability.said[0][1]
    assert availability.store.sessions.all() == []


def test_who_asks_from_this_machine_was_known_at_its_door(availability: Availability) -> None:
    availability.bench.labelled(labels=(), labelings=())
    availability.command("start", actor="cli:root")
    session = availability.store.sessions.get("widgets-12")
    assert session is not None
    assert session.requester == "cli:root"
    assert availability.bench.github.asked == 0


def test_who_asks_from_this_machine_is_answered_there_and_not_on_github(
    availability: Availability,
) -> None:
    availability.command("start", "codx", actor="cli:root")
    assert availability.said == []
    said = availability.store.commands.outcome("comment:start:12")
    assert said is not None
    assert "there is no agent `codx` here" in said


def test_a_merge_written_on_the_issue_is_about_its_one_open_pull_request(
    availability: Availability,
) -> None:
    availability.bench.room.session()
    now = availability.bench.room.clock()
    old = Pull(number=33, head="o" * 40, state=PullState.CLOSED, head_since=now)
    new = Pull(number=34, head="n" * 40, head_since=now)
    availability.store.observations.record(
        [Observation(session="widgets-12", pulls=(old, new))], now
    )
    availability.command("merge")
    assert availability.heads() == ["n" * 40]


def test_a_merge_on_the_issue_of_several_open_pull_requests_is_about_none(
    availability: Availability,
) -> None:
    availability.bench.room.session()
    now = availability.bench.room.clock()
    pulls = tuple(Pull(number=n, head=f"{n}" * 20, head_since=now) for n in (33, 34))
    availability.store.observations.record([Observation(session="widgets-12", pulls=pulls)], now)
    availability.command("merge")
    availability.command("merge", number=34)
    assert availability.heads() == ["", "34" * 20]


def test_a_merge_about_a_head_that_has_moved_on_is_bound_to_none(
    availability: Availability,
) -> None:
    availability.bench.room.session()
    now = availability.bench.room.clock()
    moved = Pull(number=34, head="n" * 40, head_since=now + timedelta(seconds=5))
    availability.store.observations.record([Observation(session="widgets-12", pulls=(moved,))], now)
    availability.command("merge", number=34)
    assert availability.heads() == [""]


def test_one_that_cannot_be_settled_keeps_no_other_waiting(
    availability: Availability, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(availability.bench.issues, "start", lambda _: 1 / 0)
    other = NewCommand(
        key="comment:1",
        repository="acme/gears",
        number=1,
        kind="stop",
        actor="ada",
        at=availability.bench.room.clock(),
    )
    availability.command("start")
    availability.store.commands.add(replace(other, at=other.at + timedelta(seconds=1)))
    availability.commands.settle()
    assert [command.kind for command in availability.store.commands.new()] == ["start"]
