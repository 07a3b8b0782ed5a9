"""What happens when an agent exits or crashes, leaves work uncommitted, or the session ends."""

from collections.abc import Callable

import pytest

from lifecycle.model import actions as do
from lifecycle.model.policy import Mode
from lifecycle.model.status import Activity, Probe, PullState, Status
from tests.lifecycle.life import Life, until_reviewed

# -- the end of its program ------------------------------------------------------------------------


def test_a_crashing_run_restarts_three_times_and_then_ends_the_session() -> None:
    life = Life().agent_works()
    for wait in (5, 10, 20):
        life.agent_exits(1).waits(wait - 2)
        life.reads(Status.WORKING)
        life.waits(2)
        life.agent_works()
    life.agent_exits(1)
    life.reads(Status.ERRORED)
    assert life.received() == ["start", "resume", "resume", "resume"]
    assert life.facts.run == 4
    assert not life.facts.slot
    assert life.comments() == ["ended"]
    life.waits(86400)
    assert life.comments() == ["ended"]


def test_commits_between_crashes_do_not_reset_the_restarts() -> None:
    life = until_reviewed()
    for _ in range(10):
        life.agent_commits().agent_rests().agent_exits(1).waits(400)
    life.reads(Status.ERRORED)
    assert life.received().count("resume") == 3


def test_a_new_request_resets_the_restarts() -> None:
    life = until_reviewed()
    for _ in range(2):
        life.agent_works().agent_exits(1).waits(60)
    life.agent_rests().reviewer_asks().waits(61).agent_works().agent_commits()
    for _ in range(3):
        life.agent_exits(1).waits(60)
        life.agent_works()
    life.reads(Status.CHANGES_REQUESTED)


def breaks_off(life: Life, times: int) -> Life:
    for _ in range(times):
        life.agent_works().agent_exits(1).waits(60)
    return life.agent_works()


def test_an_opened_pull_request_resets_the_restarts() -> None:
    life = breaks_off(Life(), 2).agent_commits().agent_rests()
    breaks_off(life, 3).reads(Status.REVIEW_PENDING)


def test_passing_checks_reset_the_restarts() -> None:
    life = breaks_off(Life().agent_commits().agent_rests(), 2).agent_rests().ci_passes()
    breaks_off(life, 3).reads(Status.REVIEW_PENDING)


@pytest.mark.parametrize("code", [1, None])
def test_a_request_lost_in_a_crash_is_sent_again(code: int | None) -> None:
    life = until_reviewed().reviewer_asks().waits(61).agent_works().agent_exits(code).waits(6)
    assert life.received() == ["start", "address_review", "resume"]
    life.agent_works().agent_commits().agent_rests()
    assert life.received() == ["start", "address_review", "resume", "address_review"]
    assert life.comments() == []
    life.agent_works().agent_commits().agent_rests()
    assert life.comments() == ["done_in"]
    assert len(life.received()) == 4


@pytest.mark.parametrize("code", [1, None])
def test_a_commit_that_a_crash_kept_from_being_pushed_answers_the_request(code: int | None) -> None:
    life = until_reviewed().reviewer_asks().waits(61).agent_works().agent_commits()
    life.agent_exits(code).waits(6).agent_works().agent_rests()
    assert life.received() == ["start", "address_review", "resume", "address_review"]
    assert life.comments() == [], "the agent may still add a commit"
    life.agent_works().agent_rests()
    assert life.comments() == ["done_in"]
    assert Status.NEEDS_INPUT not in life.waits(43200).went


def test_a_request_answered_before_a_crash_is_not_sent_again() -> None:
    life = until_reviewed().reviewer_asks().waits(61).agent_works().agent_commits().agent_rests()
    life.agent_works().agent_exits(1).waits(6).agent_works().agent_rests().waits(3600)
    assert life.received() == ["start", "address_review", "resume"]


def test_a_last_repair_lost_in_a_crash_is_sent_again_before_it_escalates() -> None:
    life = until_reviewed(ci_repairs=1).ci_fails().agent_works().agent_exits(1).waits(6)
    life.agent_works().agent_rests()
    assert life.received() == ["start", "fix_ci", "resume", "fix_ci"]
    assert Status.NEEDS_INPUT not in life.went


def test_an_agent_that_exited_resumes_with_the_next_message() -> None:
    life = Life().agent_commits().agent_exits()
    life.reads(Status.PR_OPEN)
    life.ci_fails()
    start = life.out[-1][1]
    assert isinstance(start, do.Start)
    assert (start.run, start.prompt.name, start.resume) == (2, "fix_ci", "talk")
    life.agent_works().agent_commits().agent_exits().ci_passes()
    assert life.received() == ["start", "fix_ci"]
    life.reads(Status.REVIEW_PENDING)


def test_a_request_to_a_run_that_exited_is_not_sent_again() -> None:
    life = Life().agent_commits().agent_exits().ci_passes().reviewer_asks().waits(61)
    life.agent_exits().waits(1000)
    assert life.received() == ["start", "address_review"]
    assert life.facts.run == 2
    life.waits(1000)
    life.reads(Status.NEEDS_INPUT)


def test_an_agent_that_exits_without_a_commit_escalates_once() -> None:
    life = Life().agent_works().agent_exits().waits(86400)
    life.reads(Status.NEEDS_INPUT)
    assert life.received() == ["start"]
    assert life.comments() == ["attention"]


def test_an_exited_agent_resumes_on_a_later_resume_command() -> None:
    life = Life().agent_works()
    life.person_commands("resume").waits(5)
    life.agent_exits(0).waits(5)
    assert life.received() == ["start"], "that was said while it was at work"
    life.person_commands("resume").waits(5)
    assert life.received() == ["start", "resume"]


def test_an_idle_agent_without_a_commit_escalates_after_five_minutes() -> None:
    life = Life().agent_works().agent_rests().waits(290)
    life.reads(Status.WORKING)
    life.waits(20)
    life.reads(Status.NEEDS_INPUT)


def test_an_agent_that_vanished_without_a_record_restarts() -> None:
    life = Life().waits(30)
    life.agent_is(Activity.EXITED, since=None, seen=None, runtime=Probe.DEAD, program=Probe.DEAD)
    life.waits(10)
    assert life.received() == ["start", "resume"]


# -- uncommitted work ------------------------------------------------------------------------------


def test_uncommitted_work_gets_one_reminder_then_people_are_notified() -> None:
    life = Life().agent_works().agent_rests(dirty=True)
    assert life.received() == ["start", "uncommitted"]
    assert life.sent("open_pull:") == []
    assert life.comments() == []
    life.agent_works().agent_rests(dirty=True)
    life.reads(Status.NEEDS_INPUT)
    life.waits(86400)
    assert life.comments() == ["attention"]
    life.agent_commits().agent_rests()
    life.reads(Status.PR_OPEN)


def test_an_agent_that_exits_with_uncommitted_work_gets_one_reminder() -> None:
    life = Life().agent_works()
    for _ in range(4):
        life.agent_exits(dirty=True)
    assert life.received() == ["start", "uncommitted"]
    life.reads(Status.NEEDS_INPUT)


def test_commits_that_leave_uncommitted_work_get_one_reminder() -> None:
    life = Life()
    for _ in range(6):
        life.agent_commits().agent_rests(dirty=True)
    assert life.received() == ["start", "uncommitted"]


def test_every_request_may_lead_to_one_reminder() -> None:
    life = Life().agent_commits().agent_rests(dirty=True).agent_works().agent_rests()
    life.ci_passes().reviewer_asks().waits(61).agent_works().agent_rests(dirty=True)
    assert life.received() == ["start", "uncommitted", "address_review", "uncommitted"]
    assert Status.NEEDS_INPUT not in life.went


# -- the end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (lambda life: life.person_commands("stop"), Status.KILLED),
        (lambda life: life.pull_is(PullState.CLOSED), Status.TERMINATED),
        (lambda life: life.issue_is(open=False, state_reason="not_planned"), Status.TERMINATED),
        (lambda life: life.issue_is(open=False, state_reason="completed"), Status.DONE),
        (lambda life: life.issue_is(labelled=False), Status.TERMINATED),
    ],
)
def test_a_session_ends_once_stops_the_agent_and_keeps_the_work(
    end: Callable[[Life], Life], status: Status
) -> None:
    life = end(until_reviewed().agent_works())
    life.reads(status)
    assert life.sent("stop") == ["stop#1"]
    assert life.comments() == ["ended"]
    assert not life.facts.slot
    life.issue_is(open=True, labelled=True, state_reason="").waits(86400)
    life.reads(status)
    assert not life.sent("delete_branch:") + life.sent("close_issue") + life.sent("release")


def test_a_session_stopped_before_its_first_run_stops_no_agent() -> None:
    life = Life(mode=Mode.OBSERVE)
    life.policy = Life().policy
    life.person_commands("stop")
    life.reads(Status.KILLED)
    assert life.sent("stop") == []
    assert not life.facts.slot


@pytest.mark.parametrize("open", [True, False])
def test_a_merge_after_a_stop_releases_the_workspace(open: bool) -> None:
    life = until_reviewed().person_commands("stop").issue_is(open=open)
    life.pull_is(PullState.MERGED).reads(Status.MERGED)
    assert life.sent("release") == ["release#1"]
    assert life.sent("close_issue") == (["close_issue"] if open else [])


def test_a_start_that_fails_permanently_ends_the_session() -> None:
    life = until_reviewed().agent_exits()
    life.failing.add("start:")
    life.ci_fails()
    life.reads(Status.ERRORED)
    assert not life.facts.slot


def test_a_stop_that_fails_permanently_frees_the_slot() -> None:
    life = until_reviewed()
    life.failing.add("stop:")
    life.person_commands("stop")
    assert not life.facts.slot


def test_commands_are_acknowledged_once_before_and_after_the_end() -> None:
    life = until_reviewed().person_commands("help", "The list.").person_commands("stop")
    life.person_commands("help", "The list.")
    assert len(life.sent("reaction:")) == 3
    assert len(life.sent("command_applied:")) == 2


def test_a_restored_session_resumes_and_gets_open_requests_again() -> None:
    life = until_reviewed().reviewer_asks().waits(61).agent_works().person_commands("stop")
    life.slots_are(False).person_commands("start").reads(Status.QUEUED)
    life.slots_are(True).agent_works().agent_rests()
    assert life.received() == ["start", "address_review", "resume", "address_review"]
    life.agent_works().agent_commits().agent_rests().ci_passes().reviewer_approves()
    life.person_commands("merge", head=life.pull.head).reads(Status.MERGED)
    assert life.comments() == ["ended", "done_in", "ready"]
    assert life.sent("release") == ["release#2"]


def test_a_restored_session_has_the_restarts_of_a_new_one() -> None:
    life = Life().agent_works()
    for _ in range(4):
        life.agent_exits(1).waits(30)
    life.reads(Status.ERRORED).person_commands("start").agent_works()
    for _ in range(3):
        life.agent_exits(1).waits(30).reads(Status.WORKING)
    life.agent_exits(1).reads(Status.ERRORED)
    assert life.comments() == ["ended", "ended"]
    assert life.facts.run == 8
    assert not life.facts.slot
