"""What becomes of a wish: granted to its session, refused in silence, or answered."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bot.github.errors import Refused, TryLater
from bot.github.snapshots import Edit
from bot.intake.authorize import Wishes
from bot.store import NewWish, Observed
from lifecycle.judge.judge import judge
from lifecycle.model.actions import Start
from lifecycle.model.facts import Issue, Pull
from lifecycle.model.policy import Policy
from lifecycle.model.status import PullState
from lifecycle.react import runs
from tests.bot.reading import REPOSITORY, Bench


class Talk:
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
        self.wishes = Wishes(
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

    def wish(
        self, kind: str, text: str = "", actor: str = "ada", number: int = 12, resume: str = ""
    ) -> None:
        wish = NewWish(
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
        self.store.add_wish(wish)
        self.wishes.settle()

    def heads(self) -> list[str]:
        session = self.store.session("widgets-12")
        assert session is not None
        return [wish.head for wish in session.wishes]


@pytest.fixture
def talk(room: Any) -> Talk:
    return Talk(Bench(room))


def test_a_wish_where_no_session_works_is_answered_once(talk: Talk) -> None:
    talk.wish("stop")
    talk.wishes.settle()
    ((number, body, key),) = talk.said
    assert (number, key) == (12, "comment:stop:12")
    assert "`stop` was not done: no session works on this." in body


def test_a_command_is_seen_where_no_session_works_and_where_it_makes_one(talk: Talk) -> None:
    talk.wish("stop")
    talk.wish("stop", actor="mallory", number=13)
    talk.bench.labelled(labels=(), labelings=())
    talk.wish("start")
    assert talk.seen == [(7, "eyes"), (7, "eyes")]


def test_a_command_that_takes_no_reaction_is_answered_all_the_same(talk: Talk) -> None:
    talk.locked = True
    talk.wish("stop")
    assert [number for number, _, _ in talk.said] == [12]


def test_help_is_answered_where_no_session_works(talk: Talk) -> None:
    talk.wish("help", "What can be said: all of this.")
    assert [body for _, body, _ in talk.said] == ["What can be said: all of this."]


def test_strangers_cannot_make_the_bot_talk_but_once(talk: Talk) -> None:
    for kind in ("help", "stop", "start"):
        talk.wish(kind, actor="mallory")
    assert talk.said == []
    assert talk.store.new_wishes() == []
    assert talk.store.sessions() == []
    assert [(one.issue, one.login) for one in talk.store.untold()] == [(12, "mallory")]


def test_where_nothing_may_be_written_a_wish_is_settled_in_silence(talk: Talk) -> None:
    talk.may_speak = False
    talk.wish("stop")
    assert (talk.said, talk.store.new_wishes()) == ([], [])


def test_a_bot_that_acts_no_more_leaves_the_answer_to_the_next(talk: Talk) -> None:
    talk.may_act = False
    talk.wish("stop")
    assert talk.said == []
    assert [wish.kind for wish in talk.store.new_wishes()] == ["stop"]


def test_an_answer_that_fails_is_tried_again_and_one_that_is_refused_is_not(talk: Talk) -> None:
    talk.trouble = TryLater("an outage")
    talk.wish("stop")
    assert [wish.kind for wish in talk.store.new_wishes()] == ["stop"]
    talk.trouble = Refused("the conversation is locked", 403)
    talk.bench.room.clock.passes(60)
    assert talk.wishes.settle() == 1
    assert talk.store.new_wishes() == []


def test_the_first_run_goes_on_with_the_conversation_it_was_started_with(talk: Talk) -> None:
    talk.bench.labelled(labels=(), labelings=())
    talk.wish("start", "claude", actor="cli:ada", resume="4bb28834-d7d9-428f-9c9f-9179ca24a4f5")
    facts = talk.store.facts("widgets-12")
    judged = judge(replace(facts, slot=True), Policy(), talk.bench.room.clock())
    (start,) = runs.start(judged)
    assert isinstance(start, Start)
    assert (start.run, start.prompt.name, start.resume) == (
        1,
        "start",
        "4bb28834-d7d9-428f-9c9f-9179ca24a4f5",
    )


def test_start_makes_a_session_of_an_issue_that_was_never_labelled(talk: Talk) -> None:
    talk.bench.labelled(labels=(), labelings=())
    talk.wish("start", "claude")
    session = talk.store.session("widgets-12")
    assert session is not None
    assert (session.requester, session.agent_type) == ("ada", "claude")
    assert talk.said == []
    talk.bench.touches("issue:12")
    talk.bench.issues.read_touched()
    session = talk.store.session("widgets-12")
    assert session is not None
    assert session.issue.labelled


def test_a_label_put_on_later_counts_from_then_on(talk: Talk) -> None:
    talk.bench.labelled(labels=(), labelings=())
    talk.wish("start")
    for reading in (talk.bench.labelled(), talk.bench.labelled(labels=(), labelings=())):
        talk.bench.github.issues[12] = reading
        talk.bench.touches("issue:12")
        talk.bench.issues.read_touched()
    session = talk.store.session("widgets-12")
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
    talk: Talk, change: dict[str, Any], text: str, why: str
) -> None:
    talk.bench.labelled(**change)
    talk.wish("start", text)
    assert f"No agent was started: {why}" in talk.said[0][1]
    assert talk.store.sessions() == []


def test_what_a_stranger_wrote_since_then_is_not_started(talk: Talk) -> None:
    later = talk.bench.room.clock() + timedelta(seconds=1)
    talk.bench.labelled(edits=(Edit(actor="mallory", at=later),))
    talk.wish("start")
    assert "who may not write, edited it" in talk.said[0][1]
    assert talk.store.sessions() == []


def test_who_asks_from_this_machine_was_known_at_its_door(talk: Talk) -> None:
    talk.bench.labelled(labels=(), labelings=())
    talk.wish("start", actor="cli:root")
    session = talk.store.session("widgets-12")
    assert session is not None
    assert session.requester == "cli:root"
    assert talk.bench.github.asked == 0


def test_who_asks_from_this_machine_is_answered_there_and_not_on_github(talk: Talk) -> None:
    talk.wish("start", "codx", actor="cli:root")
    assert talk.said == []
    said = talk.store.settled_wish("comment:start:12")
    assert said is not None
    assert "there is no agent `codx` here" in said


def test_a_merge_written_on_the_issue_is_about_its_one_open_pull_request(talk: Talk) -> None:
    talk.bench.room.session()
    now = talk.bench.room.clock()
    old = Pull(number=33, head="o" * 40, state=PullState.CLOSED, head_since=now)
    new = Pull(number=34, head="n" * 40, head_since=now)
    talk.store.observe([Observed(session="widgets-12", pulls=(old, new))], now)
    talk.wish("merge")
    assert talk.heads() == ["n" * 40]


def test_a_merge_on_the_issue_of_several_open_pull_requests_is_about_none(talk: Talk) -> None:
    talk.bench.room.session()
    now = talk.bench.room.clock()
    pulls = tuple(Pull(number=n, head=f"{n}" * 20, head_since=now) for n in (33, 34))
    talk.store.observe([Observed(session="widgets-12", pulls=pulls)], now)
    talk.wish("merge")
    talk.wish("merge", number=34)
    assert talk.heads() == ["", "34" * 20]


def test_a_merge_about_a_head_that_has_moved_on_is_bound_to_none(talk: Talk) -> None:
    talk.bench.room.session()
    now = talk.bench.room.clock()
    moved = Pull(number=34, head="n" * 40, head_since=now + timedelta(seconds=5))
    talk.store.observe([Observed(session="widgets-12", pulls=(moved,))], now)
    talk.wish("merge", number=34)
    assert talk.heads() == [""]


def test_one_that_cannot_be_settled_keeps_no_other_waiting(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talk.bench.issues, "start", lambda _: 1 / 0)
    other = NewWish(
        key="comment:1",
        repository="acme/gears",
        number=1,
        kind="stop",
        actor="ada",
        at=talk.bench.room.clock(),
    )
    talk.wish("start")
    talk.store.add_wish(replace(other, at=other.at + timedelta(seconds=1)))
    talk.wishes.settle()
    assert [wish.kind for wish in talk.store.new_wishes()] == ["start"]
