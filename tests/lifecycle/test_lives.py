"""Whole sessions, as sequences of events and the statuses and messages they lead to."""

from lifecycle.model import actions as do
from lifecycle.model.key import parse
from lifecycle.model.policy import Mode
from lifecycle.model.status import Activity, CheckState, Status
from tests.lifecycle.life import Life, until_reviewed

# -- the main job ----------------------------------------------------------------------------------


def test_a_label_becomes_a_merged_pull_request() -> None:
    life = Life(mode=Mode.MERGE)
    assert life.sent() == ["start:first#1"]
    life.agent_works().agent_commits().agent_rests()
    life.reads(Status.PR_OPEN)

    life.ci_fails()
    assert life.received() == ["start", "fix_ci"]
    life.agent_works().agent_commits().agent_rests().ci_passes()
    life.reads(Status.REVIEW_PENDING)

    life.reviewer_asks().waits(61)
    assert life.received() == ["start", "fix_ci", "address_review"]
    life.agent_works().agent_commits().agent_rests().ci_passes()
    assert life.comments() == ["done_in"]

    life.reviewer_approves()
    assert life.went == [
        *("spawning", "working", "pr_open", "ci_failed", "pr_open", "review_pending"),
        *("changes_requested", "mergeable", "merged"),
    ]
    assert life.comments() == ["done_in"]
    assert [parse(key).kind for key in life.sent()][-4:] == [
        "merge",
        "delete_branch",
        "close_issue",
        "release",
    ]
    assert not life.facts.slot


def test_a_ready_pull_request_is_announced_once() -> None:
    life = until_reviewed().reviewer_approves().waits(86400)
    life.reads(Status.MERGEABLE)
    assert life.sent("merge:") == []
    assert life.comments() == ["ready"]


def test_a_merge_command_merges_only_the_head_it_names() -> None:
    life = until_reviewed().person_commands("merge", head="").reviewer_approves()
    life.reads(Status.MERGEABLE)
    life.person_commands("merge", head="f" * 40)
    life.reads(Status.MERGEABLE)
    life.person_commands("merge", head=life.pull.head)
    life.reads(Status.MERGED)


def test_a_merge_command_waits_only_for_the_head_it_names() -> None:
    life = until_reviewed()
    life.person_commands("merge", head=life.pull.head).reviewer_asks().waits(61)
    life.agent_works().agent_commits().agent_rests().ci_passes().reviewer_approves()
    life.reads(Status.MERGEABLE)

    life = until_reviewed()
    life.person_commands("merge", head=life.pull.head).reviewer_approves()
    life.reads(Status.MERGED)


# -- red checks ------------------------------------------------------------------------------------


def test_a_turn_that_ends_with_a_commit_does_not_escalate() -> None:
    life = until_reviewed().ci_fails().agent_works().agent_commits()
    life.agent_rests()
    assert Status.NEEDS_INPUT not in life.went
    assert "attention" not in life.comments()


def test_failed_checks_go_to_the_agent_once_when_all_have_finished() -> None:
    life = Life().agent_commits().agent_rests()
    life.checks_are(CheckState.FAILED, CheckState.PENDING)
    assert life.received() == ["start"]
    life.checks_are(CheckState.FAILED, CheckState.FAILED)
    assert life.received() == ["start", "fix_ci"]
    life.waits(10).agent_works().waits(200)
    assert life.received() == ["start", "fix_ci"]


def test_an_active_agent_gets_failed_checks_at_the_end_of_its_turn() -> None:
    life = until_reviewed().agent_works().ci_fails()
    assert life.received() == ["start"]
    life.agent_rests()
    assert life.received() == ["start", "fix_ci"]


def test_failed_checks_escalate_when_the_agent_ends_its_turn_without_a_commit() -> None:
    life = until_reviewed().ci_fails().agent_works().agent_rests()
    life.reads(Status.NEEDS_INPUT)
    assert life.comments() == ["attention"]
    life.agent_works().agent_rests().waits(86400)
    assert life.comments() == ["attention"]
    life.ci_passes()
    life.reads(Status.REVIEW_PENDING)


def test_failed_checks_escalate_when_the_agent_does_not_react() -> None:
    life = until_reviewed().ci_fails().waits(20)
    life.reads(Status.NEEDS_INPUT)


def test_three_failed_repairs_escalate_and_passing_checks_reset_the_count() -> None:
    life = Life().agent_commits().agent_rests()
    for _ in range(6):
        life.ci_fails().agent_works().agent_commits().agent_rests()
    assert life.received() == ["start", "fix_ci", "fix_ci", "fix_ci"]
    life.ci_fails()
    life.reads(Status.NEEDS_INPUT)
    assert "tried to repair them 3 times" in life.decision.because

    life.ci_passes()
    life.reads(Status.REVIEW_PENDING)
    life.ci_fails()
    assert life.received()[-1] == "fix_ci"
    assert len(life.received()) == 5


# -- reviews ---------------------------------------------------------------------------------------


def test_comments_in_quick_succession_go_to_the_agent_together() -> None:
    life = until_reviewed().person_comments("One.").waits(40).person_comments("Two.").waits(40)
    assert life.received() == ["start"]
    life.waits(25)
    (tell,) = [action for _, action in life.out if isinstance(action, do.SendMessage)]
    assert [item["text"] for item in tell.prompt.items] == ["@rob: One.", "@rob: Two."]


def test_a_comment_during_a_turn_goes_to_the_agent_at_its_end() -> None:
    life = until_reviewed().reviewer_asks().waits(61)
    life.agent_works().person_comments("And rename it.").waits(100)
    assert life.received() == ["start", "address_review"]
    life.agent_commits().agent_rests()
    assert life.received() == ["start", "address_review", "address_review"]


def test_an_unanswered_review_escalates_after_half_an_hour() -> None:
    life = until_reviewed().reviewer_asks().waits(61).agent_works().agent_rests()
    life.reads(Status.CHANGES_REQUESTED)
    life.waits(1700)
    life.reads(Status.CHANGES_REQUESTED)
    life.waits(120)
    life.reads(Status.NEEDS_INPUT)
    life.waits(86400)
    assert life.comments() == ["attention"]

    life.person_comments("Do it like this.").waits(61)
    assert life.received()[-1] == "address_review"
    life.agent_works().agent_commits().agent_rests()
    life.reads(Status.CHANGES_REQUESTED)


def test_exhausted_review_rounds_escalate_once_until_an_approval() -> None:
    life = until_reviewed(review_rounds=2)
    for _ in range(5):
        life.reviewer_asks().waits(61).agent_works().agent_commits().agent_rests().ci_passes()
    assert life.received() == ["start", "address_review", "address_review"]
    life.reads(Status.NEEDS_INPUT)
    assert life.comments().count("attention") == 1
    life.reviewer_approves().person_comments("Thank you!").waits(61)
    life.reads(Status.MERGEABLE)


# -- people ----------------------------------------------------------------------------------------


def test_every_question_is_reported_once_at_once() -> None:
    life = Life().agent_works().agent_is(Activity.WAITING_INPUT, question="May I?")
    life.reads(Status.NEEDS_INPUT)
    life.waits(86400)
    assert life.comments() == ["attention"]
    life.agent_works()
    life.reads(Status.WORKING)
    life.agent_is(Activity.WAITING_INPUT, question="May I?")
    assert life.comments() == ["attention", "attention"]


def test_no_request_is_sent_to_an_agent_that_waits_for_an_answer() -> None:
    life = until_reviewed().agent_is(Activity.WAITING_INPUT).ci_fails().reviewer_asks().waits(90)
    assert life.received() == ["start"]


def test_a_blocked_agent_is_stuck_after_ten_minutes_and_reported_once() -> None:
    life = Life().agent_works().agent_is(Activity.BLOCKED, error="529").waits(590)
    life.reads(Status.WORKING)
    life.waits(20)
    life.reads(Status.STUCK)
    life.waits(86400)
    assert life.comments() == ["attention"]
    life.agent_works()
    life.reads(Status.WORKING)


def test_an_agent_without_activity_becomes_stuck() -> None:
    life = Life().waits(590)
    life.reads(Status.WORKING)
    life.waits(20)
    life.reads(Status.STUCK)


def test_a_conflict_goes_to_the_agent_and_its_merge_resolves_it() -> None:
    life = until_reviewed().base_conflicts()
    assert life.received() == ["start", "resolve_conflict"]
    life.agent_works().agent_commits().agent_rests().ci_passes()
    life.reads(Status.REVIEW_PENDING)
    assert Status.NEEDS_INPUT not in life.went


def test_an_unresolved_conflict_escalates() -> None:
    life = until_reviewed().base_conflicts().agent_works().agent_rests()
    life.reads(Status.NEEDS_INPUT)


def test_a_conflict_escalates_after_three_tries_and_a_new_base_resets_the_count() -> None:
    life = until_reviewed()
    for _ in range(6):
        life.base_conflicts().agent_works().agent_commits().agent_rests()
    life.base_conflicts()
    assert life.received().count("resolve_conflict") == 3
    life.reads(Status.NEEDS_INPUT)
    life.base_conflicts(base="f" * 40)
    assert life.received().count("resolve_conflict") == 4


def test_an_undelivered_message_escalates_while_its_cause_lasts() -> None:
    life = until_reviewed()
    life.failing.add("fix_ci:")
    life.ci_fails()
    life.reads(Status.NEEDS_INPUT)
    life.ci_passes()
    life.reads(Status.REVIEW_PENDING)
