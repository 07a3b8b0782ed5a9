"""Pushes by people: the bot merges them and resets its counts.

Afterwards the agent gets no requests about failed checks, conflicts or reviews until a person
comments or gives a command such as `resume`.
"""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Command, Done, Facts, Failure, Push, Work
from lifecycle.model.key import parse
from lifecycle.model.status import CheckState, Merge, Mover, PullState, Reason, Status
from tests.lifecycle.decisions import AT_WORK, decision, keys, ordered, with_pull
from tests.lifecycle.universe import (
    BASE,
    BRANCH,
    HEAD,
    NEXT,
    NOW,
    OTHER,
    agent,
    ago,
    approval,
    check,
    done,
    ended,
    objection,
    published,
    pull,
    remark,
)

PERSONS_HEAD = "f" * 40
FAILED = (check(CheckState.FAILED),)


def pushed(*, at: float = 100, **fields: Any) -> Facts:
    """A person's commit is on GitHub; the workspace is at ours."""
    pulls = fields.pop("pull", {})
    person = Push(sha=PERSONS_HEAD, at=ago(at))
    theirs = pull(**{"head": PERSONS_HEAD, "head_by": Mover.PERSON, "person": person, **pulls})
    return published(pulls=(theirs,), **fields)


def taken(*, at: float = 100, **fields: Any) -> Facts:
    """A person's commit is on GitHub and in the workspace."""
    work = Work(base=BASE, head=PERSONS_HEAD, branch=BRANCH, dirty=False)
    return pushed(at=at, **{"work": work, **fields})


# -- merging it ------------------------------------------------------------------------------------

TAKE = do.MergeRemote(key=parse(f"merge_remote:{PERSONS_HEAD}"), head=PERSONS_HEAD, into=HEAD)


def actions(session: Facts) -> list[do.Action]:
    """Return the actions decided for `session`, except reports, comments and attention labels."""
    return [action for action in ordered(session) if not isinstance(action, do.Comment)]


def test_a_persons_commit_is_merged_at_the_end_of_the_turn() -> None:
    assert actions(pushed()) == [TAKE]
    assert actions(pushed(agent=ended(0))) == [TAKE]
    assert actions(pushed(agent=AT_WORK)) == []


def test_an_update_of_the_branch_is_merged_too() -> None:
    update = {"head_by": Mover.UPDATE, "person": None}
    assert ordered(pushed(pull=update)) == [TAKE]


def test_nothing_is_pushed_before_a_persons_commit_is_merged() -> None:
    work = Work(base=BASE, head=NEXT, branch=BRANCH, dirty=False)
    assert actions(pushed(work=work)) == [replace(TAKE, into=NEXT)]
    assert keys(pushed(work=work, done={TAKE.key: Done(at=NOW, result=NEXT)}))[0] == f"push:{NEXT}"


def test_a_worse_pull_request_does_not_skip_the_merge_of_a_persons_commit() -> None:
    work = Work(base=BASE, head=NEXT, branch=BRANCH, dirty=False)
    one = pushed(work=work)
    worse = pull(number=35, branch="other", head=OTHER, checks=FAILED)
    both = replace(one, pulls=(*one.pulls, worse))
    assert decision(both).status is Status.CI_FAILED
    follows = [a for a in actions(both) if isinstance(a, do.MergeRemote | do.Publish)]
    assert follows == [replace(TAKE, into=NEXT)]


@pytest.mark.parametrize(("dirty", "prompts"), [(True, ["uncommitted"]), (None, [])])
def test_a_persons_commit_is_not_merged_over_uncommitted_work(
    dirty: bool | None, prompts: list[str]
) -> None:
    found = actions(pushed(work=Work(base=BASE, head=HEAD, dirty=dirty)))
    assert [a.prompt.name for a in found if isinstance(a, do.SendMessage)] == prompts
    assert not any(isinstance(a, do.MergeRemote) for a in found)


def test_a_merge_conflict_with_a_persons_commit_goes_to_the_agent_once() -> None:
    clash = {TAKE.key: Done(at=ago(50), result="conflict")}
    work = Work(base=BASE, head=NEXT, branch=BRANCH, dirty=False)
    (tell,) = actions(pushed(work=work, done=clash))
    assert isinstance(tell, do.SendMessage)
    assert str(tell.key) == f"merge_branch:{PERSONS_HEAD}#1"
    assert tell.prompt.name == "merge_branch"
    sent = {**clash, **done(tell.key, seconds_ago=40)}
    assert [str(a.key) for a in actions(pushed(work=work, done=sent))] == [f"push:{NEXT}"]


def test_a_failed_merge_of_a_persons_commit_escalates() -> None:
    no = {TAKE.key: Failure(at=ago(1), reason=Reason.ACTION_FAILED, detail="no space left")}
    judged = decision(pushed(failures=no))
    says = "the commits of others could not be merged into the workspace: no space left"
    assert (judged.status, judged.because) == (Status.NEEDS_INPUT, says)


def test_a_branch_reset_by_a_person_to_an_earlier_push_is_followed() -> None:
    assert TAKE in actions(pushed(done=done(f"push:{PERSONS_HEAD}")))


def test_our_own_pushes_and_merged_commits_are_not_merged_again() -> None:
    ours = {"head_by": Mover.BOT, "person": None}
    assert actions(pushed(pull=ours, done=done(f"push:{PERSONS_HEAD}"))) == []
    assert actions(pushed(done=done(TAKE.key))) == []
    assert actions(taken()) == []
    assert actions(pushed(pull={"state": PullState.CLOSED}))[0].key == parse("stop#1")


def test_a_persons_commit_is_not_merged_into_an_unread_workspace() -> None:
    assert actions(pushed(work=Work(base=BASE, branch=BRANCH, dirty=False))) == []


def test_a_persons_commit_is_not_pushed_again() -> None:
    assert not any(isinstance(a, do.Publish) for a in ordered(taken()))


# -- handover --------------------------------------------------------------------------------------

WITHHELD: dict[str, dict[str, Any]] = {
    "red checks": {"checks": FAILED},
    "a conflict": {"merge": Merge.CONFLICT},
    "what was asked for before": {"comments": (remark(seconds_ago=200),)},
}


@pytest.mark.parametrize("pull_fields", WITHHELD.values(), ids=WITHHELD.keys())
def test_after_a_persons_push_the_agent_gets_no_requests_until_a_command(
    pull_fields: dict[str, Any],
) -> None:
    assert keys(taken(pull=pull_fields)) == [f"handed_to_human:{PERSONS_HEAD}"]
    assert decision(taken(pull=pull_fields)).reason is Reason.PERSON_PUSHED
    resumed = taken(pull=pull_fields, commands=(command("resume"),))
    assert any(isinstance(action, do.SendMessage) for action in ordered(resumed))
    assert decision(resumed).reason is Reason.PULL_REQUEST


def command(kind: str, seconds_ago: float = 50) -> Command:
    return Command(key=f"comment-{kind}", kind=kind, actor="ann", at=ago(seconds_ago))


def test_a_resume_from_before_the_push_does_not_return_the_branch() -> None:
    earlier = taken(pull={"checks": FAILED}, commands=(command("resume", 101),))
    assert not any(isinstance(action, do.SendMessage) for action in ordered(earlier))


def test_a_persons_next_comment_returns_the_branch_to_the_agent() -> None:
    comment = {"checks": FAILED, "comments": (remark("c1", seconds_ago=80),)}
    names = [a.prompt.name for a in ordered(taken(pull=comment)) if isinstance(a, do.SendMessage)]
    assert names == ["fix_ci", "address_review"]
    sent = taken(
        pull=comment,
        done=done("remark:c1#1", "address_review:x#1", seconds_ago=70),
        agent=agent(seconds_ago=60),
    )
    assert [a.prompt.name for a in ordered(sent) if isinstance(a, do.SendMessage)] == ["fix_ci"]


def test_a_comment_in_the_second_of_the_push_returns_the_branch() -> None:
    """GitHub tells the time of a comment in whole seconds."""
    pull_fields = {"checks": FAILED, "comments": (remark("c1", seconds_ago=100),)}
    names = [
        a.prompt.name
        for a in ordered(taken(at=99.5, pull=pull_fields))
        if isinstance(a, do.SendMessage)
    ]
    assert names == ["fix_ci", "address_review"]


def test_a_handover_lasts_although_the_agent_pushed_afterwards() -> None:
    ours = taken(
        pull={"head": NEXT, "head_by": Mover.BOT, "checks": FAILED},
        work=Work(base=BASE, head=NEXT, branch=BRANCH, dirty=False),
        done=done(f"push:{NEXT}", f"merge_remote:{PERSONS_HEAD}"),
    )
    assert keys(ours) == [f"handed_to_human:{PERSONS_HEAD}"]


def test_a_handover_is_announced_once_per_commit() -> None:
    assert keys(taken(done=done(f"handed_to_human:{PERSONS_HEAD}"))) == []


def test_a_pull_request_finished_by_a_person_is_mergeable() -> None:
    assert decision(taken(pull={"verdicts": (approval(PERSONS_HEAD),)})).status is Status.MERGEABLE


# -- counters --------------------------------------------------------------------------------------


def test_a_persons_push_resets_the_counts_of_repairs_reviews_and_conflicts() -> None:
    again = (command("resume"),)
    old = done(*(f"fix_ci:{n}:x#1" for n in range(3)), seconds_ago=500)
    red = taken(pull={"checks": FAILED}, done=old, commands=again)
    assert decision(red).status is Status.CI_FAILED
    base = done(*(f"resolve_conflict:{BASE}:{n}#1" for n in range(3)), seconds_ago=500)
    conflict = taken(pull={"merge": Merge.CONFLICT}, done=base, commands=again)
    assert decision(conflict).status is not Status.NEEDS_INPUT
    rounds = done(*(f"address_review:{n}#1" for n in range(10)), seconds_ago=500)
    asked_for = taken(pull={"comments": (remark(seconds_ago=90),)}, done=rounds)
    assert decision(asked_for).status is not Status.NEEDS_INPUT


def test_a_persons_push_resets_an_unanswered_review() -> None:
    theirs = done("address_review:x#1", "remark:c1#1", seconds_ago=4000)
    left = {"verdicts": (objection(),)}
    after = taken(pull=left, done=theirs, agent=agent(seconds_ago=3900))
    assert decision(after).status is Status.CHANGES_REQUESTED
    rounds = done(*(f"address_review:{n}#1" for n in range(10)), seconds_ago=50)
    more = taken(pull={"comments": (remark(seconds_ago=40),)}, done=rounds)
    assert decision(more).reason is Reason.REPAIRS_EXHAUSTED


def test_a_persons_push_resets_the_count_of_failed_runs() -> None:
    crashes = done("start:crash#2", "start:crash#3", "start:crash#4", seconds_ago=200)
    broken = {"run": 4, "agent": replace(ended(1), run=4), "done": crashes}
    assert decision(taken(at=300, **broken)).status is Status.ERRORED
    assert decision(taken(at=100, **broken)).status is not Status.ERRORED


def test_a_persons_push_clears_an_escalation() -> None:
    before = with_pull({"checks": FAILED}, done=done(*(f"fix_ci:{n}:x#1" for n in range(3))))
    assert decision(before).reason is Reason.REPAIRS_EXHAUSTED
    after = taken(pull={"checks": FAILED}, done=before.done)
    assert (decision(after).status, decision(after).reason) == (
        Status.CI_FAILED,
        Reason.PERSON_PUSHED,
    )


# -- approvals and updates -------------------------------------------------------------------------


def test_an_approval_survives_a_branch_update_but_not_a_commit() -> None:
    old = {"verdicts": (approval(HEAD),), "head_by": Mover.UPDATE, "person": None}
    assert decision(taken(pull={**old, "carried": frozenset({HEAD})})).status is Status.MERGEABLE
    assert decision(taken(pull=old)).status is Status.REVIEW_PENDING


def test_a_refused_branch_update_goes_to_the_agent_as_a_conflict() -> None:
    key = f"update_branch:{BASE}:{HEAD}"
    no = {key: Failure(at=ago(1), reason=Reason.ACTION_FAILED, detail="merge conflict")}
    assert keys(with_pull({"merge": Merge.BEHIND}, failures=no)) == [
        f"resolve_conflict:{BASE}:{HEAD}#1"
    ]


def test_an_unknown_merge_state_leads_to_no_action() -> None:
    assert keys(with_pull({"merge": Merge.UNKNOWN})) == []


# -- push limit ------------------------------------------------------------------------------------


def test_pushes_per_hour_are_limited() -> None:
    pushes = {f"push:{n:040x}": Done(at=ago(3000 - n)) for n in range(9)}
    work = Work(base=BASE, head=NEXT, branch=BRANCH, dirty=False)
    full = published(work=work, done=pushes)
    judged = decision(full)
    assert not any(isinstance(action, do.Publish) for action in judged.actions)
    assert (judged.status, judged.reason) == (Status.NEEDS_INPUT, Reason.PUSHES_USED_UP)
    assert judged.because == (
        "the branch was pushed or updated 10 times within an hour, the limit "
        "(`pushes-per-hour`); the next push is at 2030-01-01 12:10 UTC"
    )
    assert judged.recheck_at == NOW + timedelta(seconds=600)
    for most in (11, 0):  # 0: no limit.
        assert f"push:{NEXT}" in keys(full, pushes_per_hour=most)
