"""An agent that reads its own change over before it becomes a pull request, where policy is so."""

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
from tests.lifecycle.asking import AT_WORK, asked, keys
from tests.lifecycle.life import Life
from tests.lifecycle.universe import _AGENTS as AGENTS
from tests.lifecycle.universe import _WORKS as WORKS
from tests.lifecycle.universe import BASE, BRANCH, HEAD, NEXT, NOW, agent, done, facts, published

CAUSE = f"self_review:{HEAD}"


def pushed(*told: str, **given: object) -> Facts:
    """A commit that is on GitHub and has no pull request; these messages went out a minute ago."""
    work = next(work for work in WORKS if work.head == HEAD and not work.dirty)
    keys = done(f"push:{HEAD}") | done(*told, seconds_ago=60)
    return facts(**{"work": work, "done": keys, "agent": agent(seconds_ago=30), **given})


@pytest.fixture
def life() -> Life:
    return Life(self_review=True)


def test_an_agent_reads_its_change_over_before_people_see_it(life: Life) -> None:
    life.agent_commits().agent_rests()
    assert life.received() == ["start", "self_review"]
    assert not life.facts.pulls
    life.reads(Status.WORKING).agent_works()
    assert not life.facts.pulls
    life.agent_rests()
    assert life.facts.pulls


def test_what_it_mends_is_pushed_first_and_not_read_over_again(life: Life) -> None:
    life.agent_commits().agent_rests().agent_commits().agent_rests()
    assert life.received() == ["start", "self_review"]
    assert len(life.sent("push:")) == 2
    assert life.pull.head == life.facts.work.head


def test_it_is_told_which_change_that_is() -> None:
    (tell,) = asked(pushed(), self_review=True)
    prompt = do.Prompt(name="self_review", values={"base": BASE, "head": HEAD})
    assert tell == do.SendMessage(key=parse(f"{CAUSE}#1"), run=1, prompt=prompt)


def test_what_is_not_committed_is_spoken_of_first(life: Life) -> None:
    life.agent_commits().agent_rests(dirty=True)
    assert life.received() == ["start", "uncommitted", "self_review"]
    life.agent_works().agent_rests(dirty=True)
    assert life.facts.pulls


def test_one_whose_program_has_ended_reads_it_over_in_a_new_run(life: Life) -> None:
    life.agent_commits().agent_exits()
    assert life.received() == ["start", "self_review"]
    assert life.facts.run == 2
    life.agent_commits().agent_exits()
    assert life.facts.pulls
    assert life.received() == ["start", "self_review"]


def test_a_reading_that_broke_off_is_asked_for_once_more(life: Life) -> None:
    life.agent_commits().agent_rests().agent_exits(1).waits(60)
    life.agent_works().agent_rests()
    assert life.received() == ["start", "self_review", "resume", "self_review"]
    life.agent_works().agent_rests()
    assert life.facts.pulls


def test_one_that_takes_too_long_for_it_is_shown_all_the_same(life: Life) -> None:
    life.agent_commits().agent_rests()
    life.agent_is(Activity.ACTIVE, calling=True).waits(1700)
    assert not life.facts.pulls
    life.waits(200)
    assert life.facts.pulls


def test_one_that_cannot_be_told_is_shown_all_the_same(life: Life) -> None:
    life.refused = {"self_review:"}
    life.agent_commits().agent_rests()
    assert life.facts.pulls


def test_an_agent_at_work_is_waited_for_before_it_is_told() -> None:
    assert keys(pushed(agent=AT_WORK), self_review=True) == []


def test_nothing_that_is_a_pull_request_already_is_read_over() -> None:
    work = next(work for work in WORKS if work.head == HEAD)
    assert keys(published(work=work), self_review=True) == []


def test_nobody_reads_anything_over_unasked() -> None:
    assert keys(pushed()) == [f"open_pull:{BRANCH}"]


@pytest.mark.parametrize("told", [(), (f"{CAUSE}#1",), (f"self_review:{NEXT}#1",)])
def test_in_every_state_a_change_is_read_over_or_shown_and_never_both(told: tuple[str]) -> None:
    for who, work in itertools.product(AGENTS, WORKS):
        given = pushed(*told, agent=who, work=work)
        decision = decide(given, Policy(self_review=True), NOW)
        deeds = [
            key for a in decision.actions for key in map(str, (a.key, *getattr(a, "covers", ())))
        ]
        reads = any(key.startswith("self_review:") for key in deeds)
        shows = f"open_pull:{BRANCH}" in deeds
        assert not (reads and shows)
        assert not (reads and told)
        rests = decision.signals.availability in (Availability.IDLE, Availability.EXITED)
        if rests and work.head == HEAD and not work.dirty:
            assert shows if told else reads


def test_nothing_is_read_over_that_is_not_pushed() -> None:
    work = next(work for work in WORKS if work.dirty)
    assert keys(facts(work=replace(work, head=BASE)), self_review=True) == ["commit_work:0#1"]
