"""The replies to commands, word for word, where they apply and where they are refused."""

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Facts, Failure, Frozen, Spending
from lifecycle.model.key import parse
from lifecycle.model.policy import Mode
from lifecycle.model.status import TERMINAL, Activity, Reason, Status
from tests.lifecycle.decisions import AT_WORK, effects
from tests.lifecycle.test_commands import IN, TEXT, answers, asking, decision
from tests.lifecycle.universe import HEAD, agent, ago, command, facts, published

S = Status
CONTINUES = "The session continues as soon as the limits of concurrent sessions allow it."
QUEUED_MESSAGE = (
    "The agent gets your message now if it waits for one, otherwise at the end of its turn, or "
    "once the session starts or resumes."
)
BY_ITSELF = (
    "The session starts by itself when another session's program is stopped; an administrator can "
    "raise the limits (`[limits]`, `max-parallel`) and run `mergewright reload`."
)
OVER = "The session has ended: pull request #34 was merged."

AT_REST = "Once the agent's turn is over and nothing pauses the session,"
#: The reply in a session under review.
APPLIED = {
    "help": "The list.",
    "status": "Review pending: waits for a review of ccccccc.\n\nThe merge is blocked by:\n\n- a",
    "why": "Review pending: waits for a review of ccccccc.\n\nThe merge is blocked by:\n\n- a",
    "pause": "Paused: the program is stopped; the conversation and the work are kept. ",
    "resume": "Nothing pauses the session any more. An agent that was stopped continues as soon as "
    "the limits of concurrent sessions allow it.",
    "restart": "The agent is started again as soon as the limits of concurrent sessions allow it.",
    "tell": QUEUED_MESSAGE,
    "answer": QUEUED_MESSAGE,
    "merge": (
        "The current commit is merged once nothing blocks it and the session neither is paused nor "
        "waits for a person.\n\nThe merge is blocked by:\n\n- a review is req"
    ),
    "update": f"{AT_REST} the branch is updated.",
    "agent": "`codex` takes over once nothing pauses the session and the limits of concurrent "
    "sessions allow it.",
    "review": f"{AT_REST} the review starts.",
    "budget": "Budget raised.\n\nSo far spent: 0.00 of 10.00 USD",
}
#: A status in which the command is refused, and the reply.
REFUSED = {
    "start": (
        S.QUEUED,
        "There is already a session here (queued): the session waits for its turn in the queue. "
        + BY_ITSELF,
    ),
    "adopt": (
        S.QUEUED,
        "There is already a session here (queued): the session waits for its turn in the queue. "
        + BY_ITSELF,
    ),
    "stop": (S.MERGED, "The session has already ended: pull request #34 was merged."),
    "pause": (S.MERGED, OVER),
    "resume": (
        S.QUEUED,
        "The session is not paused (queued): the session waits for its turn in the queue.",
    ),
    "restart": (
        S.QUEUED,
        "There is nothing to restart (queued): the session waits for its turn in the queue. "
        + BY_ITSELF,
    ),
    "retry": (S.ERRORED, "The session has ended: stopped. Write `/mergewright start` to continue."),
    "allow": (S.MERGED, OVER),
    "tell": (S.MERGED, OVER),
    "answer": (S.MERGED, OVER),
    "merge": (S.MERGED, OVER),
    "cancel": (S.MERGED, OVER),
    "update": (S.MERGED, OVER),
    "agent": (S.MERGED, OVER),
    "review": (
        S.QUEUED,
        "There is nothing to review (queued): the session waits for its turn in the queue. "
        + BY_ITSELF,
    ),
    "budget": (S.MERGED, OVER),
}


@pytest.mark.parametrize(("kind", "text"), APPLIED.items(), ids=APPLIED)
def test_a_command_that_applies_is_answered_in_these_words(kind: str, text: str) -> None:
    replies = answers(asking(kind, IN[S.REVIEW_PENDING]))
    assert replies[f"command_applied:comment-{kind}"].startswith(text)


@pytest.mark.parametrize("status", [S.ERRORED, S.KILLED, S.TERMINATED, S.DONE])
def test_restoring_an_ended_session_is_answered(status: Status) -> None:
    assert answers(asking("start", IN[status])) == {"command_applied:comment-start": CONTINUES}


def test_resuming_an_ended_session_is_answered_with_the_remedy() -> None:
    assert answers(asking("resume", IN[S.KILLED])) == {
        "command_refused:comment-resume": (
            "The session has ended: stopped. Write `/mergewright start` to continue."
        )
    }


def test_a_merged_session_is_not_started_again() -> None:
    assert answers(asking("start", IN[S.MERGED])) == {
        "command_refused:comment-start": (
            "The session cannot be started again (merged): pull request #34 was merged. Open a new "
            "issue for further work."
        )
    }


def test_the_pull_request_of_an_ended_session_is_not_adopted() -> None:
    assert answers(asking("adopt", IN[S.KILLED])) == {
        "command_refused:comment-adopt": (
            "The session has ended: stopped. Write `/mergewright start` to continue."
        )
    }


def test_after_a_merge_no_reply_offers_the_start_that_would_be_refused() -> None:
    assert answers(asking("adopt", IN[S.MERGED])) == {"command_refused:comment-adopt": OVER}


def test_a_question_in_a_reply_ends_with_its_own_mark() -> None:
    (text,) = answers(asking("status", IN[S.NEEDS_INPUT])).values()
    assert text.startswith(
        "Needs input: the agent asks: May I?\n\nThe merge is blocked by:\n\n- a review"
    )


@pytest.mark.parametrize("given", [12, 34, 0])
@pytest.mark.parametrize("kind", ["why", "start", "review", "resume"])
def test_a_command_is_answered_where_it_was_given(kind: str, given: int) -> None:
    """A command on issue 12 is answered on the issue, even while pull request 34 is open.

    `given` is the number of the issue or pull request; 0 stands for a command that was not given on
    GitHub. Its reply is not posted on GitHub.
    """
    found = asking(kind, IN[S.REVIEW_PENDING], number=given)
    (reply,) = (a for a in found.actions if isinstance(a, do.Comment) and a.topic == "answer")
    assert reply.number == given


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refused_command_is_explained_in_these_words(kind: str) -> None:
    status, text = REFUSED[kind]
    assert answers(asking(kind, IN[status])) == {f"command_refused:comment-{kind}": text}


FREEZE, UNFREEZE = command("freeze", at=ago(30)), command("unfreeze", at=ago(20))


@pytest.mark.parametrize("status", Status)
def test_a_freeze_is_answered_at_once_and_holds_everything_else(status: Status) -> None:
    session = replace(IN[status], commands=(*IN[status].commands, FREEZE))
    found = decision(session)
    assert answers(found) == {
        "command_applied:comment-freeze": (
            "This session is frozen: the bot does nothing for it until somebody writes "
            "`/mergewright unfreeze`. A running agent finishes its turn."
        )
    }
    assert len(found.actions) == 2, "the reply and the reaction"
    ordered = frozenset(action.key for action in found.actions)
    assert decision(replace(session, pending=session.pending | ordered)).actions == ()
    assert decision(session, mode=Mode.OBSERVE).actions == ()
    outside = Frozen(scope="all", by="bob", at=ago(60))
    assert decision(replace(session, frozen=outside)).actions == ()


@pytest.mark.parametrize("status", Status)
def test_a_freeze_that_was_undone_before_its_reply_gets_none(status: Status) -> None:
    session = replace(IN[status], commands=(*IN[status].commands, FREEZE, UNFREEZE))
    replies = {key: text for key, text in answers(decision(session)).items() if "freeze" in key}
    assert replies == {"command_applied:comment-unfreeze": "The session is no longer frozen."}


@pytest.mark.parametrize("status", Status)
def test_what_is_not_frozen_is_not_unfrozen(status: Status) -> None:
    found = answers(asking("unfreeze", IN[status]))
    replies = {key: text for key, text in found.items() if "freeze" in key}
    assert replies == {"command_refused:comment-unfreeze": "The session is not frozen."}


ALIVE = set(Status) - TERMINAL
STARTED = ALIVE - {S.QUEUED, S.SPAWNING}
RESTORABLE = {S.ERRORED, S.KILLED, S.TERMINATED, S.DONE}
#: The statuses in which each command is applied if its arguments are valid.
APPLIED_IN = {
    "help": set(Status),
    "status": set(Status),
    "why": set(Status),
    "start": RESTORABLE,
    "pause": ALIVE,
    "resume": STARTED,
    "restart": STARTED,
    "tell": ALIVE,
    "answer": ALIVE,
    "merge": STARTED - {S.WORKING},
    "update": STARTED - {S.WORKING},
    "agent": ALIVE,
    "review": STARTED - {S.WORKING},
    "budget": ALIVE,
    "cancel": STARTED - {S.WORKING},
    "retry": set(Status) - {S.ERRORED},
}
FAILED_ACTION = Failure(at=ago(60), reason=Reason.ACTION_FAILED, detail="no")


def prepared(kind: str, session: Facts) -> Facts:
    """The same session with a failed action to retry, or a merge request to cancel."""
    if kind == "retry":
        return replace(session, failures={**session.failures, parse("open_pull:x"): FAILED_ACTION})
    if kind == "cancel":
        merge = command("merge", at=ago(60), head=HEAD)
        return replace(session, commands=(*session.commands, merge))
    return session


@pytest.mark.parametrize("kind", APPLIED_IN)
def test_every_command_is_applied_exactly_in_its_documented_statuses(kind: str) -> None:
    key = f"command_applied:comment-{kind}"
    applied = {
        status for status in Status if key in answers(asking(kind, prepared(kind, IN[status])))
    }
    assert applied == APPLIED_IN[kind]


@pytest.mark.parametrize("kind", ["resume", "restart"])
def test_a_session_paused_by_a_budget_stays_paused_until_a_raise(kind: str) -> None:
    spent = published(spent=Spending(cost_usd=6))
    ((key, text),) = (
        (key, text)
        for key, text in answers(asking(kind, spent)).items()
        if key.endswith(f":comment-{kind}")
    )
    assert key.startswith("command_refused:")
    assert text.startswith("The session stays paused: ")
    assert "`/mergewright budget +5`" in text


def test_a_retry_is_applied_where_an_action_failed() -> None:
    replies = answers(asking("retry", prepared("retry", IN[S.REVIEW_PENDING])))
    assert replies == {"command_applied:comment-retry": "The failed actions are retried."}


def test_a_cancel_is_applied_where_a_merge_was_requested() -> None:
    replies = answers(asking("cancel", prepared("cancel", IN[S.REVIEW_PENDING])))
    assert replies["command_applied:comment-cancel"] == (
        "The bot does not merge this pull request until somebody writes `/mergewright merge`."
    )


def test_a_stop_ends_the_session_in_every_live_status() -> None:
    for status in ALIVE:
        found = asking("stop", IN[status], text=TEXT.get("stop", ""))
        assert found.status in (S.KILLED, S.CLEANUP), status


@pytest.mark.parametrize(
    "kind",
    [
        *("help", "status", "why", "freeze"),
        *("stop", "pause", "resume", "restart"),
    ],
)
def test_a_command_without_arguments_ignores_extra_text(kind: str) -> None:
    replies = answers(asking(kind, IN[S.REVIEW_PENDING], text="nobody"))
    assert f"command_refused:comment-{kind}" not in replies


def test_commands_are_applied_in_the_order_of_their_times() -> None:
    pause, resume = command("pause", at=ago(30)), command("resume", at=ago(20))
    for order in ((pause, resume), (resume, pause)):
        found = decision(facts(agent=AT_WORK, commands=order))
        assert found.status is S.WORKING
        assert list(answers(found)) == [
            "command_applied:comment-pause",
            "command_applied:comment-resume",
        ]


def test_an_unknown_command_gets_a_reaction_and_no_reply() -> None:
    found = decision(facts(agent=AT_WORK, commands=(command("dance"),)))
    assert answers(found) == {}
    assert [str(a.key) for a in effects(found)] == ["reaction:comment-dance"]


def test_the_recheck_covers_the_status_before_the_last_command() -> None:
    """The last command is `pause`, and a paused session by itself needs no recheck.

    But the reply to the earlier command `status` describes the session as if `pause` had not been
    given, and this description changes with time.
    """
    blocked = published(agent=agent(Activity.BLOCKED, 550, error="529"))
    asked = (command("status", at=ago(30)), command("pause", at=ago(20)))
    found = decision(replace(blocked, commands=asked))
    assert found.status is S.PAUSED, "which waits for nothing by itself"
    stuck_at = ago(550).timestamp() + 600
    assert found.recheck_at is not None
    assert found.recheck_at.timestamp() <= stuck_at
