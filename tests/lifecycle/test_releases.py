"""When the workspace of an ended session is released."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Agent, Ended, Facts, Issue
from lifecycle.model.key import parse
from lifecycle.model.status import PullState, Reason, Status
from lifecycle.react.reactions import STOPPED
from tests.lifecycle.decisions import decision, ordered
from tests.lifecycle.universe import NOW, ago, command, done, facts, published, pull


@pytest.mark.parametrize("status", [Status.KILLED, Status.TERMINATED, Status.ERRORED, Status.DONE])
def test_a_session_that_ended_without_a_merge_keeps_its_workspace_for_two_weeks(
    status: Status,
) -> None:
    def over(days: float, **fields: Any) -> Facts:
        at = NOW - timedelta(days=days)
        end = Ended(status=status, reason=Reason.PR_CLOSED, because="it was so", at=at)
        return facts(ended=end, done=fields.pop("done", done("stop#1")), **fields)

    def released(session: Facts, **policy: Any) -> list[do.Action]:
        return [action for action in ordered(session, **policy) if isinstance(action, do.Release)]

    assert released(over(13.9)) == []
    assert decision(over(13.9)).recheck_at == NOW + timedelta(days=0.1)
    assert released(over(14)) == [do.Release(key=parse("release#1"), run=1)]
    assert released(over(3), workspace_days=3.0) == released(over(14))
    assert released(over(99, run=0, done={}, agent=Agent())) == []
    releasing = decision(over(14, pending=frozenset({"release#1"})))
    assert releasing.status is Status.CLEANUP
    assert releasing.ended is not None
    again = decision(over(14, done=done("stop#1", "release#1")))
    assert again.status is status
    assert not again.holds_slot


def test_a_restore_is_refused_while_cleanup_is_under_way_and_works_afterwards() -> None:
    at = ago(20 * 86_400)
    end = Ended(status=Status.KILLED, reason=Reason.MANUALLY_KILLED, because="stopped", at=at)
    stopped = done("stop#1", seconds_ago=20 * 86_400 - 10)
    again = command("start", at=ago(5))
    session = facts(ended=end, done=stopped, pending=frozenset({"release#1"}), commands=(again,))
    refused = decision(session)
    assert refused.status is Status.CLEANUP
    (reply,) = (a for a in refused.actions if str(a.key) == f"command_refused:{again.key!s}")
    assert isinstance(reply, do.Comment)
    assert reply.values["text"] == (
        "The session is still ending: stopped. Repeat the command in a minute."
    )
    released = {**stopped, **done("release#1", seconds_ago=2), **done(reply.key, seconds_ago=3)}
    over = facts(ended=end, done=released, commands=(again,), slot=False)
    assert decision(over).status is Status.KILLED
    later = replace(again, key="comment-later", at=ago(1))
    assert decision(replace(over, commands=(again, later))).status is Status.QUEUED


@pytest.mark.parametrize(
    "ends",
    [
        {"commands": (command("stop"),)},
        {"pulls": (pull(state=PullState.CLOSED),)},
        {"issue": Issue(number=12, title="", open=False, state_reason="completed")},
    ],
    ids=["killed", "terminated", "done"],
)
def test_the_outcome_is_posted_while_the_agent_is_being_stopped(ends: Any) -> None:
    over = decision(published(**ends))
    assert over.status in STOPPED
    order = frozenset(action.key for action in over.actions)
    posted = [one for one in over.actions if isinstance(one, do.Comment | do.Report)]
    assert {parse("stop#1"), parse(f"outcome:{over.status}:{over.reason}#1")} < order
    assert {one.number for one in posted} >= {12}
    for one in posted:  # Judged again before it is done, while all others are still pending.
        waits = published(**ends, ended=over.ended, pending=order - {one.key})
        assert decision(waits).status is Status.CLEANUP
        assert one in decision(waits).actions, "it was withdrawn"
