"""Restores of ended sessions by the `start` command, and the `retry` command."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from lifecycle.decide import decide
from lifecycle.model import actions as do
from lifecycle.model.facts import Agent, Ended, Facts, Failure
from lifecycle.model.key import parse
from lifecycle.model.policy import Policy
from lifecycle.model.status import Reason, Status
from lifecycle.read.restores import this_life
from tests.lifecycle.universe import BRANCH, HEAD, NOW, ago, command, done, facts, published, pull


def ended(status: Status, **fields: object) -> Facts:
    """A session that ended two minutes ago and whose agent was stopped right after."""
    over = Ended(status=status, reason=Reason.MANUALLY_KILLED, because="stopped", at=ago(120))
    past = done("stop#1", "fix_ci:x:y#1", "remark:comment-1#1", seconds_ago=110)
    return facts(
        ended=over, done=past, commands=(command("stop", at=ago(121)),), slot=False, **fields
    )


def restored(session: Facts, seconds_ago: float = 60) -> Facts:
    again = command("start", at=ago(seconds_ago), comment=None)
    return replace(session, commands=(*session.commands, again))


@pytest.mark.parametrize("status", [Status.KILLED, Status.ERRORED, Status.TERMINATED, Status.DONE])
def test_a_restored_session_waits_for_a_slot(status: Status) -> None:
    decision = decide(restored(ended(status)), Policy(), NOW)
    assert decision.status is Status.QUEUED
    assert decision.ended is None


def test_a_restored_session_resumes_in_a_new_run() -> None:
    session = replace(restored(ended(Status.KILLED)), slot=True)
    decision = decide(session, Policy(), NOW)
    assert decision.status is Status.SPAWNING
    (start,) = (action for action in decision.actions if isinstance(action, do.Start))
    assert (str(start.key), start.run, start.prompt.name) == ("start:first#2", 2, "resume")
    ordered = replace(session, run=2, pending=frozenset({start.key}))
    assert not [a for a in decide(ordered, Policy(), NOW).actions if isinstance(a, do.Start)]


def test_messages_of_earlier_runs_do_not_count_after_a_restore() -> None:
    lived = this_life(restored(ended(Status.KILLED)))
    assert not lived.done


def test_actions_on_github_stay_done_after_a_restore() -> None:
    before = replace(published(), ended=ended(Status.KILLED).ended)
    assert {parse(f"push:{HEAD}"), parse(f"open_pull:{BRANCH}")} <= this_life(
        restored(before)
    ).done.keys()


def test_a_restore_does_not_undo_a_merge() -> None:
    merged = Ended(status=Status.MERGED, reason=Reason.PR_MERGED, because="merged", at=ago(120))
    session = restored(replace(published(), ended=merged))
    assert decide(session, Policy(), NOW).status is Status.MERGED


def test_a_restored_session_can_end_again() -> None:
    session = restored(ended(Status.KILLED))
    session = replace(
        session, commands=(*session.commands, command("stop", at=ago(10), actor="rob"))
    )
    first = decide(session, Policy(), NOW)
    assert (first.status, first.ended and first.ended.at) == (Status.KILLED, NOW)
    later = decide(replace(session, ended=first.ended), Policy(), NOW + timedelta(days=1))
    assert later.ended == first.ended


def test_a_retry_clears_only_earlier_failures() -> None:
    failed = Failure(at=ago(100), reason=Reason.PUSH_REFUSED, detail="no")
    work = published().work
    session = facts(work=work, failures={f"push:{HEAD}": failed})
    assert decide(session, Policy(), NOW).status is Status.NEEDS_INPUT
    again = replace(session, commands=(command("retry", at=ago(50)),))
    decision = decide(again, Policy(), NOW)
    assert decision.status is Status.WORKING
    assert f"push:{HEAD}" in {str(action.key) for action in decision.actions}
    failed_again = replace(again, failures={parse(f"push:{HEAD}"): replace(failed, at=ago(10))})
    assert decide(failed_again, Policy(), NOW).status is Status.NEEDS_INPUT


def test_without_a_restore_or_retry_the_facts_are_unchanged() -> None:
    session = published(pulls=(pull(),))
    assert this_life(session) is session


def test_a_session_stopped_before_its_first_run_restores_to_run_1() -> None:
    session = replace(ended(Status.KILLED), run=0, done={}, agent=Agent(), slot=True)
    decision = decide(restored(session), Policy(), NOW)
    (start,) = (action for action in decision.actions if isinstance(action, do.Start))
    assert str(start.key) == "start:first#1"
    assert start.prompt.name == "start"


def test_the_latest_restore_counts() -> None:
    again = restored(restored(ended(Status.KILLED), seconds_ago=60), seconds_ago=200)
    assert this_life(again).ended is None
    assert this_life(replace(again, commands=again.commands[::-1])).ended is None


@pytest.mark.parametrize(("restore", "retry"), [(60, 30), (30, 60)])
def test_a_restore_and_a_retry_both_clear_failures(restore: float, retry: float) -> None:
    failed = {"push:x": Failure(at=ago(45), reason=Reason.PUSH_REFUSED, detail="no")}
    commands = (command("start", at=ago(restore)), command("retry", at=ago(retry)))
    assert this_life(facts(failures=failed, commands=commands)).failures == {}
