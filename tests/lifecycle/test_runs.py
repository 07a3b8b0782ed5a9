"""What follows when a program ends, when work is left uncommitted, and when all is over."""

from collections.abc import Callable

import pytest

from lifecycle.model import actions as do
from lifecycle.model.policy import Mode
from lifecycle.model.status import Activity, Probe, PullState, Status
from tests.lifecycle.life import Life, until_reviewed

# -- the end of its program ------------------------------------------------------------------------


def test_a_run_that_breaks_off_is_tried_again_three_times_ever_later_then_given_up() -> None:
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


def test_commits_between_do_not_make_a_row_of_failures_endless() -> None:
    life = until_reviewed()
    for _ in range(10):
        life.agent_commits().agent_rests().agent_exits(1).waits(400)
    life.reads(Status.ERRORED)
    assert life.received().count("resume") == 3


def test_a_new_request_after_a_repaired_run_gives_it_its_tries_again() -> None:
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


def test_a_pull_request_gives_a_run_its_tries_again() -> None:
    life = breaks_off(Life(), 2).agent_commits().agent_rests()
    breaks_off(life, 3).reads(Status.REVIEW_PENDING)


def test_green_checks_give_a_run_its_tries_again() -> None:
    life = breaks_off(Life().agent_commits().agent_rests(), 2).agent_rests().ci_passes()
    breaks_off(life, 3).reads(Status.REVIEW_PENDING)


@pytest.mark.parametrize("code", [1, None])
def test_what_went_down_with_a_run_is_told_again(code: int | None) -> None:
    life = until_reviewed().reviewer_asks().waits(61).agent_works().agent_exits(code).waits(6)
    assert life.received() == ["start", "address_review", "resume"]
    life.agent_works().agent_commits().agent_rests()
    assert life.received() == ["start", "address_review", "resume", "address_review"]
    assert life.comments() == []
    life.agent_works().agent_commits().agent_rests()
    assert life.comments() == ["done_in"]
    assert len(life.received()) == 4


def test_what_was_answered_before_a_run_broke_off_is_not_told_again() -> None:
    life = until_reviewed().reviewer_asks().waits(61).agent_works().agent_commits().agent_rests()
    life.agent_works().agent_exits(1).waits(6).agent_works().agent_rests().waits(3600)
    assert life.received() == ["start", "address_review", "resume"]


def test_the_last_repair_that_went_down_with_its_run_is_told_again_before_people_are() -> None:
    life = until_reviewed(ci_repairs=1).ci_fails().agent_works().agent_exits(1).waits(6)
    life.agent_works().agent_rests()
    assert life.received() == ["start", "fix_ci", "resume", "fix_ci"]
    assert Status.NEEDS_INPUT not in life.went


def test_an_agent_that_exits_well_goes_on_with_the_next_message_in_a_new_run() -> None:
    life = Life().agent_commits().agent_exits()
    life.reads(Status.PR_OPEN)
    life.ci_fails()
    start = life.out[-1][1]
    assert isinstance(start, do.Start)
    assert (start.run, start.prompt.name, start.resume) == (2, "fix_ci", "talk")
    life.agent_works().agent_commits().agent_exits().ci_passes()
    assert life.received() == ["start", "fix_ci"]
    life.reads(Status.REVIEW_PENDING)


def test_what_a_run_was_told_that_ended_well_is_not_told_again() -> None:
    life = Life().agent_commits().agent_exits().ci_passes().reviewer_asks().waits(61)
    life.agent_exits().waits(1000)
    assert life.received() == ["start", "address_review"]
    assert life.facts.run == 2
    life.waits(1000)
    life.reads(Status.NEEDS_INPUT)


def test_an_agent_that_ends_well_with_nothing_to_show_is_shown_to_people_once() -> None:
    life = Life().agent_works().agent_exits().waits(86400)
    life.reads(Status.NEEDS_INPUT)
    assert life.received() == ["start"]
    assert life.comments() == ["attention"]


def test_an_agent_that_ended_by_itself_goes_on_when_a_person_says_so_afterwards() -> None:
    life = Life().agent_works()
    life.person_commands("resume").waits(5)
    life.agent_exits(0).waits(5)
    assert life.received() == ["start"], "that was said while it was at work"
    life.person_commands("resume").waits(5)
    assert life.received() == ["start", "resume"]


def test_an_agent_that_rests_with_nothing_to_show_may_still_be_at_it_for_a_while() -> None:
    life = Life().agent_works().agent_rests().waits(290)
    life.reads(Status.WORKING)
    life.waits(20)
    life.reads(Status.NEEDS_INPUT)


def test_a_program_that_vanished_without_a_word_starts_again() -> None:
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


def test_an_agent_that_exits_over_uncommitted_work_is_reminded_once_too() -> None:
    life = Life().agent_works()
    for _ in range(4):
        life.agent_exits(dirty=True)
    assert life.received() == ["start", "uncommitted"]
    life.reads(Status.NEEDS_INPUT)


def test_work_that_is_never_clean_does_not_go_round_in_reminders() -> None:
    life = Life()
    for _ in range(6):
        life.agent_commits().agent_rests(dirty=True)
    assert life.received() == ["start", "uncommitted"]


def test_every_request_has_its_own_reminder() -> None:
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
def test_it_ends_once_stops_its_program_and_touches_nothing_of_the_work(
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


def test_stopped_before_it_ran_it_has_nothing_to_stop() -> None:
    life = Life(mode=Mode.OBSERVE)
    life.policy = Life().policy
    life.person_commands("stop")
    life.reads(Status.KILLED)
    assert life.sent("stop") == []
    assert not life.facts.slot


def test_a_merge_after_a_stop_takes_the_workspace_away_too() -> None:
    life = until_reviewed().person_commands("stop").pull_is(PullState.MERGED)
    life.reads(Status.MERGED)
    assert life.sent("release") == ["release#1"]
    assert life.sent("close_issue") == ["close_issue"]


def test_after_a_merge_a_busy_agent_has_five_minutes() -> None:
    life = until_reviewed().agent_works().pull_is(PullState.MERGED).waits(280)
    assert life.sent("release") == []
    life.waits(20)
    assert life.sent("release") == ["release#1"]


def test_a_start_that_fails_for_good_ends_it_and_frees_its_slot() -> None:
    life = until_reviewed().agent_exits()
    life.refused.add("start:")
    life.ci_fails()
    life.reads(Status.ERRORED)
    assert not life.facts.slot


def test_a_stop_that_fails_for_good_holds_no_slot() -> None:
    life = until_reviewed()
    life.refused.add("stop:")
    life.person_commands("stop")
    assert not life.facts.slot


def test_commands_are_acknowledged_once_also_after_the_end() -> None:
    life = until_reviewed().person_commands("help", "The list.").person_commands("stop")
    life.person_commands("help", "The list.")
    assert len(life.sent("reaction:")) == 3
    assert len(life.sent("command_applied:")) == 2


def test_a_session_that_is_asked_for_again_goes_on_where_it_stood_and_hears_again() -> None:
    life = until_reviewed().reviewer_asks().waits(61).agent_works().person_commands("stop")
    life.slots_are(False).person_commands("restore").reads(Status.QUEUED)
    life.slots_are(True).agent_works().agent_rests()
    assert life.received() == ["start", "address_review", "resume", "address_review"]
    life.agent_works().agent_commits().agent_rests().ci_passes().reviewer_approves()
    life.person_commands("merge", head=life.pull.head).reads(Status.MERGED)
    assert life.comments() == ["ended", "done_in", "ready"]
    assert life.sent("release") == ["release#2"]


def test_a_restored_session_may_break_off_as_often_as_a_new_one_and_ends_as_well() -> None:
    life = Life().agent_works()
    for _ in range(4):
        life.agent_exits(1).waits(30)
    life.reads(Status.ERRORED).person_commands("restore").agent_works()
    for _ in range(3):
        life.agent_exits(1).waits(30).reads(Status.WORKING)
    life.agent_exits(1).reads(Status.ERRORED)
    assert life.comments() == ["ended", "ended"]
    assert life.facts.run == 8
    assert not life.facts.slot
