"""Pausing, resuming, freezing and restoring sessions."""

import json

import pytest

from bot.store import OutboxEntry
from lifecycle.model import keys
from lifecycle.model.key import parse
from lifecycle.model.status import status_words
from tests.world.waiting import eventually
from tests.world.world import ALICE, MALLORY, IssueStory, World


def reviewed(world: World, **policy: object) -> IssueStory:
    """A session whose pull request waits for a review."""
    issue = world.agent_opens_a_pull_request(**policy)
    issue.pull.ci_passes()
    issue.becomes("review_pending")
    return issue


def is_posted(issue: IssueStory, text: str) -> None:
    """Wait until the bot has posted this text on the issue."""
    eventually(lambda: any(text in posted for posted in issue.comments_by()), f"{text!r} is posted")


def test_a_person_pauses_and_resumes_a_working_agent(world: World) -> None:
    issue = world.agent_starts()
    issue.agent.writes({"half.txt": "half\n"})
    issue.issue.comment("/mergewright pause", by=ALICE)
    issue.becomes("paused")
    eventually(lambda: issue.session and not issue.session.slot, "its slot is free")
    assert parse("park:work#1") in world.store.facts.get(issue.id).done
    issue.issue.comment("/mergewright resume", by=ALICE)
    assert issue.agent.resumes()["run"] == 2
    issue.agent.commits({"half.txt": "whole\n"}).ends_its_turn()
    assert issue.pull


def restarts(issue: IssueStory) -> None:
    issue.issue.comment("/mergewright restart", by=ALICE)
    assert issue.agent.resumes()["run"] == 2
    eventually(lambda: issue.session and issue.session.agent.run == 2, "the second run is seen")


@pytest.mark.parametrize(
    "status", ["working", "needs_input", "ci_failed", "review_pending", "changes_requested"]
)
def test_restart_starts_a_new_run_in_any_status(world: World, status: str) -> None:
    issue = world.agent_starts()
    if status == "working":
        issue.agent.writes({"a.txt": "a\n"})
    elif status == "needs_input":
        issue.agent.asks("May I?")
    else:
        issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
        if status == "ci_failed":
            issue.pull.ci_fails()
        elif status == "changes_requested":
            issue.pull.reviewer_asks_for("another test")
        else:
            issue.pull.ci_passes()
    issue.becomes(status)
    restarts(issue)


@pytest.mark.parametrize("status", ["queued", "killed"])
def test_restart_of_a_session_that_does_not_run_is_refused_with_a_reason(
    world: World, status: str
) -> None:
    world.bot_starts(sessions=1)
    first = world.issue("First").is_labelled()
    first.agent.starts()
    issue = world.issue("Second").is_labelled()
    issue.becomes("queued")
    if status == "killed":
        issue.issue.comment("/mergewright stop", by=ALICE)
        issue.becomes("killed")
    issue.issue.comment("/mergewright restart", by=ALICE)
    is_posted(issue, f"There is nothing to restart ({status_words(status)})")


def test_a_reached_budget_pauses_the_session_until_it_is_raised(world: World) -> None:
    issue = world.agent_starts(session_usd=1.0)
    issue.agent.says(f"usage {json.dumps({'input': 9, 'output': 9, 'cost_usd': 0.85})}")
    is_posted(issue, "at least 80% of this session's dollar budget is used")
    issue.agent.says(f"usage {json.dumps({'input': 9, 'output': 9, 'cost_usd': 1.5})}")
    issue.becomes("paused")
    is_posted(issue, "this session's dollar budget is used up")
    issue.issue.comment("/mergewright resume", by=ALICE)
    is_posted(issue, "The session stays paused")
    issue.issue.comment("/mergewright budget +1", by=ALICE)
    assert issue.agent.resumes()["run"] == 2
    issue.becomes("working")


def its_program_is_ended(world: World, issue: IssueStory) -> None:
    """Wait until the session's program is stopped; only then can the session be restored."""
    eventually(
        lambda: parse("stop#1") in world.store.facts.get(issue.id).done, "its program is ended"
    )
    world.waits_for_the_next_second()


def test_reopening_the_pull_request_restores_the_session(world: World) -> None:
    issue = reviewed(world)
    issue.pull.pull.close(by=ALICE)
    issue.becomes("terminated")
    its_program_is_ended(world, issue)
    issue.pull.pull.reopen(by=MALLORY)
    issue.pull.pull.close(by=ALICE)
    world.waits_for_the_next_second()
    issue.pull.pull.reopen(by=ALICE)
    assert issue.agent.resumes()["run"] == 2
    assert issue.becomes("review_pending").restored_at is not None


def test_reopening_the_issue_restores_the_session(world: World) -> None:
    issue = world.agent_starts()
    issue.issue.close(by=ALICE)
    issue.becomes("done")
    its_program_is_ended(world, issue)
    issue.issue.reopen(by=ALICE)
    assert issue.agent.resumes()["run"] == 2


def test_a_review_resumes_a_parked_session_hours_later(world: World) -> None:
    issue = reviewed(world)
    world.time_passes(hours=23)
    eventually(lambda: parse("park:rest#1") in world.store.facts.get(issue.id).done, "it is parked")
    eventually(lambda: issue.session and not issue.session.slot, "its slot is free")
    issue.becomes("review_pending")
    first = issue.pull.pull.head
    issue.pull.reviewer_asks_for("a second widget")
    assert issue.agent.receives("a second widget")["run"] == 2
    issue.agent.commits({"widgets.txt": "two\n"}, "Add another").ends_its_turn()
    issue.pull.moves_from(first)
    issue.pull.ci_passes().has_comment("read this conversation and then pushed").reviewer_approves()
    issue.becomes("merged")


def test_an_answer_to_yesterdays_question_starts_a_run(world: World) -> None:
    issue = world.agent_starts()
    issue.agent.asks("Which colour?")
    issue.becomes("needs_input")
    eventually(lambda: "mergewright:needs-input" in issue.issue.labels, "people are called")
    world.time_passes(days=1)
    eventually(lambda: parse("park:rest#1") in world.store.facts.get(issue.id).done, "it is parked")
    session = issue.becomes("needs_input")
    assert "Which colour?" in session.because
    issue.issue.comment("/mergewright answer Green.", by=ALICE)
    message = issue.agent.receives("Green.")
    assert (message["run"], "Which colour?" in message["text"]) == (2, True)
    eventually(lambda: issue.issue.labels == ["mergewright"], "the label is taken off")


def test_a_message_to_a_waiting_agent_reaches_it(world: World) -> None:
    issue = world.agent_starts()
    issue.agent.asks("Which colour?")
    issue.becomes("needs_input")
    issue.issue.comment("/mergewright answer Green.", by=ALICE)
    message = issue.agent.receives("Green.")
    assert (message["run"], message["kind"]) == (1, "message")


def test_a_freeze_holds_every_effect(world: World) -> None:
    issue = reviewed(world, mode="propose")
    store = world.store
    eventually(lambda: not store.facts.get(issue.id).pending, "what was ordered is done")
    facts = store.facts.get(issue.id)
    store.freezes.add("", by=ALICE)
    before = len(issue.comments_by()), len(issue.pull.comments_by()), len(issue.agent.received)
    issue.pull.reviewer_asks_for("a second widget")
    world.time_passes(minutes=5)
    issue.becomes("changes_requested")
    other = world.issue("Another").is_labelled()
    other.becomes("queued")
    eventually(
        lambda: issue.session and issue.session.blockers[0].name == "frozen",
        "the freeze is a blocker",
    )
    assert issue.session
    assert (
        len(issue.comments_by()),
        len(issue.pull.comments_by()),
        len(issue.agent.received),
    ) == before
    assert set(store.facts.get(issue.id).done) == set(facts.done)
    store.freezes.remove("", by=ALICE)
    issue.agent.receives("a second widget")
    other.agent.starts()


def test_actions_recorded_before_a_freeze_are_done_after_it(world: World) -> None:
    issue = world.agent_starts()
    world.github.fail_next("POST", r"/pulls$", status=502, times=4)
    issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
    branch = eventually(lambda: issue.session and issue.session.branch, "its branch")
    key = keys.open_pull(str(branch))
    eventually(
        lambda: key in world.store.facts.get(issue.id).pending, "the pull request is ordered"
    )
    issue.issue.comment("/mergewright freeze", by=ALICE)
    eventually(lambda: len(world.store.facts.get(issue.id).commands) == 1, "the freeze is granted")

    def ordered() -> OutboxEntry:
        return next(row for row in world.store.outbox.of(issue.id) if row.key == key)

    def is_looked_at() -> None:
        before = ordered().next_at
        eventually(lambda: ordered().next_at != before, "it is looked at")

    is_looked_at()  # This may be an attempt from before the freeze.
    tries = ordered().attempts
    is_looked_at()
    assert ordered().attempts == tries
    assert key in world.store.facts.get(issue.id).pending
    assert world.repo.pulls == []
    issue.issue.comment("/mergewright unfreeze", by=ALICE)
    assert issue.pull
    assert world.store.facts.get(issue.id).failures == {}


def test_the_last_session_of_a_project_posts_a_summary(world: World) -> None:
    world.bot_starts()
    first, second = (world.issue(title).is_labelled() for title in ("First", "Second"))
    for issue in (first, second):
        issue.agent.starts()
    for issue in (first, second):
        issue.issue.comment("/mergewright stop", by=ALICE)
        issue.becomes("killed")
    is_posted(
        second, "All sessions of project `widgets` have ended. Since the last summary: 2 stopped."
    )
    assert not any("Everything of" in posted for posted in first.comments_by())
