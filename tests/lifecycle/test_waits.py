"""A session waits in the queue for the issues that block its own."""

from msgspec.structs import replace

from lifecycle.model.facts import Agent, Issue
from lifecycle.model.status import Reason, Status
from tests.lifecycle.decisions import AT_WORK, decision, keys
from tests.lifecycle.universe import done, facts


def test_a_session_that_depends_on_open_issues_is_queued_without_requesting_a_slot() -> None:
    issue = Issue(number=12, title="x", blocked_by=("#7", "acme/gears#3"))
    waiting = replace(facts(run=0, agent=Agent(), issue=issue), done={})
    found = decision(waiting)
    assert (found.status, found.reason) == (Status.QUEUED, Reason.ISSUE_BLOCKED)
    assert found.because == "the session waits for #7, acme/gears#3"
    assert (found.holds_slot, decision(replace(waiting, slot=False)).wants_slot) == (False, False)
    free = replace(waiting, issue=replace(issue, blocked_by=()))
    assert decision(replace(free, slot=False)).wants_slot
    assert decision(facts(agent=AT_WORK, issue=issue)).status is Status.WORKING


def test_issues_that_depend_on_each_other_are_reported_once() -> None:
    issue = Issue(number=12, title="x", blocked_by=("#7",), in_circle=True)
    waiting = replace(facts(run=0, agent=Agent(), issue=issue), done={})
    found = decision(waiting)
    assert (found.status, found.reason) == (Status.QUEUED, Reason.ISSUES_IN_CIRCLE)
    assert found.because == "the session waits for #7, which waits for this issue in turn"
    assert not decision(replace(waiting, slot=False)).wants_slot
    (notice,) = [key for key in keys(waiting) if key.startswith("notice:")]
    assert notice.startswith("notice:issues_in_circle:")
    assert notice not in keys(replace(waiting, done=done(notice)))
    alone = replace(waiting, issue=replace(issue, in_circle=False))
    assert not [key for key in keys(alone) if key.startswith("notice:")]
