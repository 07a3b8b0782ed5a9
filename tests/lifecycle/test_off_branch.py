"""Commits that the agent made on another branch, or on a detached HEAD."""

import pytest
from msgspec.structs import replace

from lifecycle.model.facts import Facts, Failure, OffBranch, Work
from lifecycle.model.keys import fingerprint
from lifecycle.model.status import Activity, CheckState, Reason, Status
from tests.lifecycle.decisions import decision
from tests.lifecycle.life import Life
from tests.lifecycle.universe import (
    BASE,
    HEAD,
    NEXT,
    OTHER,
    agent,
    ago,
    check,
    done,
    facts,
    published,
    pull,
)

BESIDE = Work(base=BASE, head=HEAD, dirty=True, off_branch=OffBranch(head=NEXT, branch="fix"))
ASKED = f"move_commits:{NEXT}"


def test_commits_that_build_on_the_branch_are_adopted_and_published() -> None:
    life = Life().agent_commits_off_branch(adoptable=True).agent_rests()
    adopt, push, opened = life.sent()[1:4]
    assert [key.partition(":")[0] for key in (adopt, push, opened)] == [
        "adopt",
        "push",
        "open_pull",
    ]
    assert life.received() == ["start"]
    assert life.pull.head == life.facts.work.head


def test_nothing_is_adopted_while_the_agent_works() -> None:
    life = Life().agent_commits_off_branch(adoptable=True)
    assert life.sent("adopt:") == []


@pytest.mark.parametrize("branch", ["fix", ""])
def test_other_commits_lead_to_a_request_then_people_are_notified(branch: str) -> None:
    life = Life().agent_commits_off_branch(adoptable=False, branch=branch).agent_rests(dirty=True)
    assert life.received() == ["start", "move_commits"]
    life.agent_works().agent_rests().reads(Status.NEEDS_INPUT)
    assert life.decision.reason is Reason.OFF_BRANCH
    assert (branch or "detached HEAD") in life.decision.because
    assert life.comments() == ["attention"]
    life.agent_commits().agent_rests()
    assert life.received() == ["start", "move_commits"]
    assert life.pull.head == life.facts.work.head


def test_an_agent_that_never_moves_its_commits_is_asked_three_times() -> None:
    life = Life()
    for _ in range(5):
        life.agent_commits_off_branch(adoptable=False).agent_rests()
    assert life.received() == ["start", *["move_commits"] * 3]
    life.reads(Status.NEEDS_INPUT)


def test_the_agent_is_asked_if_its_commits_cannot_be_adopted() -> None:
    life = Life()
    life.failing = {"adopt:"}
    life.agent_commits_off_branch(adoptable=True).agent_rests()
    assert life.received() == ["start", "move_commits"]


def test_an_exited_agent_resumes_to_move_its_commits() -> None:
    life = Life().agent_commits_off_branch(adoptable=False).agent_exits()
    assert life.received() == ["start", "move_commits"]
    assert life.facts.run == 2


REFUSED = Failure(at=ago(60), reason=Reason.PUSH_REFUSED, detail="its terminal is gone")
RED = (check(CheckState.FAILED),)
ESCALATED = {
    "after a request": (published(work=BESIDE, done=done(f"{ASKED}#1")), Reason.OFF_BRANCH),
    "after every request": (
        published(work=BESIDE, done=done(*(f"move_commits:{n}#1" for n in range(3)))),
        Reason.OFF_BRANCH,
    ),
    "after a refused push of other commits": (
        published(
            work=replace(BESIDE, head=OTHER),
            failures={f"push:{OTHER}": REFUSED},
            done=done(f"{ASKED}#1"),
        ),
        Reason.PUSH_REFUSED,
    ),
    "after a request that was lost": (
        published(work=BESIDE, failures={f"{ASKED}#1": REFUSED}),
        Reason.PUSH_REFUSED,
    ),
}


@pytest.mark.parametrize(("session", "reason"), ESCALATED.values(), ids=ESCALATED.keys())
def test_commits_off_the_branch_need_a_person(session: Facts, reason: Reason) -> None:
    found = decision(session)
    assert (found.status, found.reason) == (Status.NEEDS_INPUT, reason)


NOT_ESCALATED = {
    "before the request": published(work=BESIDE),
    "after a request about other commits": published(
        work=BESIDE, done=done(f"move_commits:{OTHER}#1")
    ),
    "while the agent works": published(
        work=BESIDE, agent=agent(Activity.ACTIVE, 5), done=done(f"{ASKED}#1")
    ),
    "before they are adopted": published(
        work=Work(base=BASE, head=HEAD, off_branch=OffBranch(head=NEXT, adoptable=True)),
        done=done(f"{ASKED}#1"),
    ),
    "with nothing on the branch": facts(
        agent=agent(seconds_ago=9000),
        work=Work(base=BASE, head=BASE, off_branch=OffBranch(head=NEXT)),
    ),
    "as an answer to failed checks": published(
        pulls=(pull(checks=RED),),
        work=Work(base=BASE, head=HEAD, off_branch=OffBranch(head=NEXT, adoptable=True)),
        done=done(f"fix_ci:{HEAD}:{fingerprint(['ci/unit'])}#1", seconds_ago=200),
    ),
}


@pytest.mark.parametrize("session", NOT_ESCALATED.values(), ids=NOT_ESCALATED.keys())
def test_commits_off_the_branch_need_nobody_yet(session: Facts) -> None:
    assert decision(session).status is not Status.NEEDS_INPUT
