"""The self-review of a change before its pull request opens, where policy asks for it."""

import itertools

import pytest
from msgspec.structs import replace

from lifecycle.decide import decide
from lifecycle.model import actions as do
from lifecycle.model.facts import Facts
from lifecycle.model.key import parse
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Status
from lifecycle.read.availability import Availability
from tests.lifecycle.decisions import AT_WORK, keys, ordered
from tests.lifecycle.life import Life
from tests.lifecycle.universe import _AGENTS as AGENTS
from tests.lifecycle.universe import _WORKS as WORKS
from tests.lifecycle.universe import BASE, BRANCH, HEAD, NEXT, NOW, agent, done, facts, published

CAUSE = f"self_review:{HEAD}"


def pushed(*messages: str, **fields: object) -> Facts:
    """A commit that is on GitHub and has no pull request; these messages were sent a minute ago."""
    work = next(work for work in WORKS if work.head == HEAD and not work.dirty)
    keys = done(f"push:{HEAD}") | done(*messages, seconds_ago=60)
    return facts(**{"work": work, "done": keys, "agent": agent(seconds_ago=30), **fields})


@pytest.fixture
def life() -> Life:
    return Life(self_review=True)


def test_the_agent_reviews_its_change_before_the_pull_request_opens(life: Life) -> None:
    life.agent_commits().agent_rests()
    assert life.received() == ["start", "self_review"]
    assert not life.facts.pulls
    life.reads(Status.WORKING).agent_works()
    assert not life.facts.pulls
    life.agent_rests()
    assert life.facts.pulls


def test_commits_of_a_self_review_are_pushed_without_another_self_review(life: Life) -> None:
    life.agent_commits().agent_rests().agent_commits().agent_rests()
    assert life.received() == ["start", "self_review"]
    assert len(life.sent("push:")) == 2
    assert life.pull.head == life.facts.work.head


def test_a_self_review_names_the_change() -> None:
    (tell,) = ordered(pushed(), self_review=True)
    prompt = do.Prompt(name="self_review", values={"base": BASE, "head": HEAD})
    assert tell == do.SendMessage(key=parse(f"{CAUSE}#1"), run=1, prompt=prompt)


def test_uncommitted_work_is_handled_before_the_self_review(life: Life) -> None:
    life.agent_commits().agent_rests(dirty=True)
    assert life.received() == ["start", "uncommitted", "self_review"]
    life.agent_works().agent_rests(dirty=True)
    assert life.facts.pulls


def test_an_exited_agent_reviews_its_change_in_a_new_run(life: Life) -> None:
    life.agent_commits().agent_exits()
    assert life.received() == ["start", "self_review"]
    assert life.facts.run == 2
    life.agent_commits().agent_exits()
    assert life.facts.pulls
    assert life.received() == ["start", "self_review"]


def test_a_self_review_lost_in_a_crash_is_requested_again(life: Life) -> None:
    life.agent_commits().agent_rests().agent_exits(1).waits(60)
    life.agent_works().agent_rests()
    assert life.received() == ["start", "self_review", "resume", "self_review"]
    life.agent_works().agent_rests()
    assert life.facts.pulls


def test_a_self_review_that_takes_too_long_opens_the_pull_request(life: Life) -> None:
    life.agent_commits().agent_rests()
    life.agent_is(Activity.ACTIVE, calling=True).waits(1700)
    assert not life.facts.pulls
    life.waits(200)
    assert life.facts.pulls


def test_an_undelivered_self_review_opens_the_pull_request(life: Life) -> None:
    life.failing = {"self_review:"}
    life.agent_commits().agent_rests()
    assert life.facts.pulls


def test_a_self_review_waits_for_the_end_of_the_turn() -> None:
    assert keys(pushed(agent=AT_WORK), self_review=True) == []


def test_an_open_pull_request_gets_no_self_review() -> None:
    work = next(work for work in WORKS if work.head == HEAD)
    assert keys(published(work=work), self_review=True) == []


def test_without_the_setting_no_self_review_is_requested() -> None:
    assert keys(pushed()) == [f"open_pull:{BRANCH}"]


@pytest.mark.parametrize("messages", [(), (f"{CAUSE}#1",), (f"self_review:{NEXT}#1",)])
def test_a_change_is_reviewed_or_opened_and_never_both(messages: tuple[str]) -> None:
    for who, work in itertools.product(AGENTS, WORKS):
        session = pushed(*messages, agent=who, work=work)
        decision = decide(session, Policy(self_review=True), NOW)
        deeds = [
            key for a in decision.actions for key in map(str, (a.key, *getattr(a, "covers", ())))
        ]
        reads = any(key.startswith("self_review:") for key in deeds)
        shows = f"open_pull:{BRANCH}" in deeds
        assert not (reads and shows)
        assert not (reads and messages)
        rests = decision.signals.availability in (Availability.IDLE, Availability.EXITED)
        if rests and work.head == HEAD and not work.dirty and not work.off_branch:
            assert shows if messages else reads


def test_an_unpushed_change_gets_no_self_review() -> None:
    work = next(work for work in WORKS if work.dirty)
    assert keys(facts(work=replace(work, head=BASE)), self_review=True) == ["commit_work:0#1"]
