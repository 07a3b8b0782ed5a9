"""Reading issues: what fails waits alone, and strangers may nothing."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from bot.github.errors import Refused, TryLater
from bot.github.readings import Edit, Labeling
from bot.people import People
from bot.replay import Effect, Recording, effects
from bot.store import NewSession, NewWish
from lifecycle.actions import Comment
from lifecycle.decide import decide
from lifecycle.facts import Issue
from lifecycle.names import FREEZES
from lifecycle.pauses import frozen_by
from lifecycle.policy import Policy
from lifecycle.status import Merge, PullState, Status
from tests.bot.reading import PROJECTS, REPOSITORY, Bench


@pytest.mark.parametrize("broken", [TryLater("down"), ValueError("odd")])
def test_an_issue_that_cannot_be_read_keeps_no_other_waiting(
    bench: Bench, broken: Exception
) -> None:
    bench.github.issues[1] = broken
    bench.labelled(12)
    bench.touches("issue:1", "issue:12")
    bench.issues.read_touched()
    assert bench.store.session("widgets-12") is not None
    assert bench.waiting() == ["issue:1"]
    assert bench.store.due_touches(bench.room.clock(), ("",)) == []


def test_a_pull_request_that_cannot_be_read_keeps_no_other_waiting(bench: Bench) -> None:
    bench.pushed("a1")
    bench.github.pulls[33] = ValueError("odd")
    bench.pull()
    bench.touches("pull:33", "pull:34")
    bench.pulls.read_touched()
    assert bench.store.session("widgets-12").pulls
    assert "pull:33" in bench.waiting()


def test_a_touch_that_comes_during_a_read_is_looked_at_too(bench: Bench) -> None:
    bench.labelled(12)
    read = bench.github.issue

    def touched(repository: str, number: int) -> Any:
        bench.touches("issue:12")
        return read(repository, number)

    bench.github.issue = touched  # type: ignore[method-assign]
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.waiting() == ["issue:12"]


@pytest.mark.parametrize("actor", ["mallory", ""])
def test_a_label_by_a_stranger_or_by_nobody_starts_nothing(bench: Bench, actor: str) -> None:
    bench.labelled(by=actor)
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.store.session("widgets-12") is None


def test_a_label_nobody_is_known_to_have_put_on_starts_nothing(bench: Bench) -> None:
    bench.labelled(labelings=())
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.store.session("widgets-12") is None


@pytest.mark.parametrize("editor", ["mallory", ""])
def test_an_edit_by_a_stranger_in_the_second_of_the_label_starts_nothing(
    bench: Bench, editor: str
) -> None:
    bench.labelled(edits=(Edit(actor=editor, at=bench.room.clock()),))
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.store.session("widgets-12") is None


def test_an_issue_that_was_deleted_ends_its_session(bench: Bench) -> None:
    bench.room.session()
    for _ in range(2):
        bench.touches("issue:12", "issue:99")
        bench.issues.read_touched()
        assert bench.waiting() == []
    facts = bench.store.facts("widgets-12")
    assert (facts.issue.open, facts.issue.state_reason) == (False, "deleted")
    assert facts.issue.title == "It breaks"
    decision = decide(facts, Policy(), bench.room.clock())
    assert decision.status is Status.TERMINATED
    assert decision.because == "the issue was closed as deleted"


def test_an_issue_that_cannot_be_read_is_no_deleted_one(bench: Bench) -> None:
    before = bench.store.session(bench.room.session())
    bench.github.issues[12] = Refused("no access", 403)
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.store.session("widgets-12") == before


def test_a_project_that_is_not_configured_any_more_has_lost_no_label(bench: Bench) -> None:
    bench.room.session()
    bench.labelled()
    bench.issues._projects = {}
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.store.session("widgets-12").issue.labelled


def wish(key: str, actor: str, at: Any) -> NewWish:
    return NewWish(
        key=key, repository=REPOSITORY, number=12, kind="stop", actor=actor, at=at, comment=7
    )


def test_a_permission_that_cannot_be_read_leaves_the_wish_and_asks_later(bench: Bench) -> None:
    bench.room.session()
    bench.github.refuses.add(REPOSITORY)
    bench.store.add_wish(wish("comment:7", "ada", bench.room.clock()))
    assert bench.wishes.settle() == 0
    assert bench.wishes.settle() == 0
    assert bench.github.asked == 1
    bench.github.refuses.clear()
    bench.room.clock.passes(60)
    assert bench.wishes.settle() == 1
    assert [wish.actor for wish in bench.store.session("widgets-12").wishes] == ["ada"]


def test_a_repository_that_refuses_keeps_only_its_own_wishes_waiting(bench: Bench) -> None:
    bench.room.session()
    at = bench.room.clock()
    elsewhere = replace(wish("comment:1", "ada", at), repository="acme/gears")
    bench.store.create_session(
        replace(new_session(bench), id="gears-12", repository="acme/gears", branch="g")
    )
    bench.github.refuses.add("acme/gears")
    bench.store.add_wish(elsewhere)
    bench.store.add_wish(wish("comment:7", "ada", at))
    assert bench.wishes.settle() == 1
    assert bench.store.session("widgets-12").wishes
    assert [wish.key for wish in bench.store.new_wishes()] == ["comment:1"]


def new_session(bench: Bench) -> NewSession:
    return NewSession(
        id="x",
        project="gears",
        repository="x",
        created=bench.room.clock(),
        issue=Issue(number=12, title="x"),
        branch="x",
    )


def test_a_wish_of_a_stranger_is_refused(bench: Bench) -> None:
    bench.room.session()
    bench.store.add_wish(wish("comment:7", "mallory", bench.room.clock()))
    bench.wishes.settle()
    assert bench.store.session("widgets-12").wishes == ()
    assert bench.store.new_wishes() == []
    assert [one.login for one in bench.store.untold()] == ["mallory"]


def test_who_is_listed_may_steer_and_only_who_may_write_may_merge(bench: Bench) -> None:
    github: Any = bench.github
    listed = People(github, bench.room.clock, {"Acme/Widgets": ["Mallory"]})
    assert listed.may_steer(REPOSITORY, "mallory")
    assert not listed.may_steer("acme/gears", "mallory")
    assert not listed.may_write(REPOSITORY, "mallory")
    bench.wishes._people = listed
    bench.room.session()
    for kind in ("pause", "merge"):
        asked = replace(wish(f"comment:{kind}", "mallory", bench.room.clock()), kind=kind)
        bench.store.add_wish(asked)
    bench.wishes.settle()
    assert [one.kind for one in bench.store.session("widgets-12").wishes] == ["pause"]


@pytest.mark.parametrize(("first", "last"), [("rob", "mallory"), ("mallory", "rob")])
def test_the_actor_of_a_label_is_that_of_its_last_labeled_event(
    bench: Bench, first: str, last: str
) -> None:
    at = bench.room.clock()
    put = Labeling(label="mergewright", actor=first, at=at, added=True)
    off = Labeling(label="mergewright", actor="ada", at=at, added=False)
    again = Labeling(label="MergeWright", actor=last, at=at, added=True)
    other = Labeling(label="bug", actor="ada", at=at, added=True)
    bench.labelled(labelings=(put, off, again, other))
    bench.touches("issue:12")
    bench.issues.read_touched()
    made = bench.store.session("widgets-12")
    assert (made.requester if made else None) == (last if last == "rob" else None)


def test_a_label_that_was_taken_off_asks_for_nothing(bench: Bench) -> None:
    bench.labelled()
    bench.touches("issue:12")
    bench.issues.read_touched()
    bench.room.clock.passes(60)
    put, at = bench.github.issues[12].labelings[0], bench.room.clock()
    off = Labeling(label="mergewright", actor="rob", at=at, added=False)
    bench.labelled(labels=(), labelings=(put, off))
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.store.new_wishes() == []
    assert not bench.store.facts("widgets-12").issue.labelled


@pytest.mark.parametrize(
    "changes", [{"is_pull": True}, {"issue": Issue(number=12, title="x", open=False)}]
)
def test_a_label_on_a_pull_request_or_a_closed_issue_starts_nothing(
    bench: Bench, changes: dict[str, Any]
) -> None:
    bench.labelled(**changes)
    bench.touches("issue:12")
    bench.issues.read_touched()
    assert bench.store.sessions() == []


@pytest.mark.parametrize(
    ("reason", "status"), [("completed", Status.DONE), ("not_planned", Status.TERMINATED)]
)
def test_a_closed_issue_ends_its_session_and_the_text_stays_as_it_was(
    bench: Bench, reason: str, status: Status
) -> None:
    bench.room.session()
    closed = Issue(number=12, title="Something else", open=False, state_reason=reason)
    bench.labelled(issue=closed)
    bench.touches("issue:12")
    bench.issues.read_touched()
    facts = bench.store.facts("widgets-12")
    assert decide(facts, Policy(), bench.room.clock()).status is status
    assert facts.issue.title == "It breaks"


def test_a_merge_that_closed_its_issue_is_seen_before_the_close(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull(merge=Merge.CLEAN)
    bench.reads()
    bench.pull(state=PullState.MERGED)
    closed = Issue(number=12, title="It breaks", open=False, state_reason="completed")
    bench.labelled(issue=closed)
    bench.touches("issue:12")
    bench.issues.read_touched()
    decision = decide(bench.store.facts("widgets-12"), Policy(), bench.room.clock())
    assert decision.status is Status.MERGED


@pytest.mark.parametrize(("by", "wished"), [("rob", [("start", "rob")]), ("mallory", [])])
def test_a_second_label_is_answered_with_the_session_that_runs(
    bench: Bench, by: str, wished: list[tuple[str, str]]
) -> None:
    bench.labelled()
    for _ in range(2):
        bench.touches("issue:12")
        bench.issues.read_touched()
    assert bench.store.new_wishes() == []
    bench.room.clock.passes(60)
    bench.labelled(by=by)
    for _ in range(2):
        bench.touches("issue:12")
        bench.issues.read_touched()
    assert [(wish.kind, wish.actor) for wish in bench.store.new_wishes()] == wished
    assert len(bench.store.sessions()) == 1
    bench.wishes.settle()
    decision = decide(bench.store.facts("widgets-12"), Policy(), bench.room.clock())
    answers = [a.values["text"] for a in decision.actions if isinstance(a, Comment)]
    told = "A session works on this already, `queued`: waits for a free slot."
    assert answers == [told] * len(wished)


def test_a_priority_label_moves_its_session_also_later(bench: Bench) -> None:
    bench.github.issues[12] = bench.labelled(labels=("mergewright", "priority:high"))
    bench.touches("issue:12")
    bench.issues.read_touched()
    made = bench.store.session("widgets-12")
    assert made is not None
    assert (made.priority, made.agent_name, made.agent_type) == (1, "ada", "claude")
    bench.github.issues[12] = bench.labelled(labels=("mergewright", "priority:low"))
    bench.touches("issue:12")
    bench.issues.read_touched()
    later = bench.store.session("widgets-12")
    assert later is not None
    assert later.priority == -1


def test_a_label_freezes_its_session_until_it_is_taken_off(bench: Bench) -> None:
    bench.github.issues[12] = bench.labelled(labels=("mergewright",))
    bench.touches("issue:12")
    bench.issues.read_touched()
    for labels, frozen in ((("mergewright", FREEZES), True), (("mergewright",), False)):
        bench.github.issues[12] = bench.labelled(labels=labels)
        bench.touches("issue:12")
        bench.issues.read_touched()
        facts = bench.store.facts("widgets-12")
        assert (frozen_by(facts) is not None) is frozen
        decision = decide(facts, Policy(), bench.room.clock())
        assert any(told.startswith("frozen: ") for told in decision.blockers) is frozen


def test_what_happens_to_a_repository_has_all_of_it_looked_at(bench: Bench) -> None:
    bench.room.session()
    bench.github.issues = {7: None}
    bench.touches("repository:")
    bench.issues.read_touched()
    assert sorted(bench.waiting()) == ["branch:mergewright/12-it-breaks", "issue:12", "issue:7"]


def test_a_repository_whose_issues_cannot_be_listed_is_looked_over_again(bench: Bench) -> None:
    bench.github.refuses.add(REPOSITORY)
    bench.touches("repository:")
    bench.issues.read_touched()
    assert bench.waiting() == ["repository:"]


def test_a_webhook_about_a_whole_repository_is_of_no_one_session(bench: Bench) -> None:
    bench.room.session()
    body = {"action": "archived", "repository": {"id": 1, "full_name": REPOSITORY}}
    webhook = Recording(event="repository", body=json.dumps(body).encode())
    assert effects(bench.store, frozenset({REPOSITORY}), webhook) == [
        Effect(what=f"look again at {REPOSITORY} {subject}", session="")
        for subject in ("rights:", "repository:")
    ]


def seen(bench: Bench, *numbers: int) -> None:
    bench.touches(*(f"issue:{number}" for number in numbers))
    while bench.issues.read_touched():
        pass


def test_a_session_waits_for_the_issues_its_own_depends_on_and_no_longer(bench: Bench) -> None:
    bench.labelled()
    bench.github.blocked[12] = ("#7", "acme/gears#3")
    seen(bench, 12)
    facts = bench.store.facts("widgets-12")
    assert facts.issue.blocked_by == ("#7", "acme/gears#3")
    bench.github.issues[7] = replace(bench.labelled(7), issue=Issue(number=7, title="x"))
    bench.github.blocked[12] = ()
    seen(bench, 7)
    assert bench.store.facts("widgets-12").issue.blocked_by
    closed = Issue(number=7, title="x", open=False)
    bench.github.issues[7] = replace(bench.labelled(7), issue=closed)
    seen(bench, 7)
    assert bench.store.facts("widgets-12").issue.blocked_by == ()


def test_what_a_session_that_has_begun_would_wait_for_does_not_matter(bench: Bench) -> None:
    bench.labelled()
    seen(bench, 12)
    bench.room.orders("widgets-12", run=1)
    bench.github.blocked[12] = ("#7",)
    seen(bench, 12)
    assert bench.store.facts("widgets-12").issue.blocked_by == ()


def worn(bench: Bench, label: str, by: str = "ada") -> None:
    put = Labeling(label=label, actor=by, at=bench.room.clock(), added=True)
    bench.labelled(labels=(label,), labelings=(put,))
    seen(bench, 12)


def test_a_label_that_names_an_agent_has_that_one_begin(bench: Bench) -> None:
    worn(bench, "Mergewright:rob")
    made = bench.store.session("widgets-12")
    assert (made.agent_name, made.agent_type) == ("rob", "shell")


def test_a_label_that_names_nobody_known_is_none_of_ours(bench: Bench) -> None:
    worn(bench, "mergewright:eve")
    assert bench.store.sessions() == []


def test_a_label_that_names_an_agent_asks_for_that_one_again(bench: Bench) -> None:
    worn(bench, "mergewright")
    bench.room.clock.passes(60)
    worn(bench, "mergewright:rob")
    (asked,) = bench.store.new_wishes()
    assert (asked.kind, asked.text) == ("start", "rob")


def test_what_is_worn_of_several_labels_keeps_the_session(bench: Bench) -> None:
    worn(bench, "mergewright")
    bench.labelled(labels=("mergewright:rob",), labelings=())
    seen(bench, 12)
    assert bench.store.session("widgets-12").issue.labelled
    bench.labelled(labels=("other",), labelings=())
    seen(bench, 12)
    assert not bench.store.session("widgets-12").issue.labelled


def test_an_issue_assigned_to_the_machine_user_gets_a_session_until_it_is_no_more(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    worn(bench, "@Robot")
    assert bench.store.sessions() == []
    project = replace(PROJECTS["widgets"], assignee="@robot")
    monkeypatch.setattr(bench.issues, "_projects", {**PROJECTS, "widgets": project})
    worn(bench, "@Robot", by="mallory")
    assert bench.store.sessions() == []
    worn(bench, "@Robot")
    made = bench.store.session("widgets-12")
    assert (made.requester, made.issue.labelled) == ("ada", True)
    bench.labelled(labels=(), labelings=())
    seen(bench, 12)
    assert not bench.store.session("widgets-12").issue.labelled


def test_reconciliation_lists_all_that_asks_for_an_agent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = replace(PROJECTS["widgets"], assignee="robot")
    monkeypatch.setattr(bench.issues, "_projects", {"widgets": project})
    asked: list[str] = []

    def labelled(_: str, label: str) -> list[int]:
        asked.append(label)
        return []

    monkeypatch.setattr(bench.github, "labelled", labelled)
    assert bench.issues.labelled() == []
    agents = ["ada", "claude", "rob", "shell"]
    assert asked == ["mergewright", *(f"mergewright:{name}" for name in agents), "@robot"]
