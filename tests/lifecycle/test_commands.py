"""Every command in every status is applied, or refused with a reason."""

import itertools
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bot.intake.commands import COMMANDS
from bot.intake.local_commands import LOCAL_COMMANDS
from lifecycle.decide import Decision, decide
from lifecycle.judge.commands import COMMAND_RULES
from lifecycle.model import actions as do
from lifecycle.model.facts import Agent, Done, Ended, Facts, Failure, Issue, Spending
from lifecycle.model.key import parse
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import Activity, CheckState, Merge, PullState, Reason, Status
from lifecycle.react.messages import REFUSED
from tests.lifecycle.decisions import AT_WORK, FAILED, effects, with_pull
from tests.lifecycle.life import Life, until_reviewed
from tests.lifecycle.universe import (
    HEAD,
    NEXT,
    NOW,
    agent,
    ago,
    approval,
    check,
    command,
    done,
    facts,
    objection,
    published,
    pull,
)

S = Status
OVER = Ended(status=S.KILLED, reason=Reason.MANUALLY_KILLED, because="stopped", at=ago(120))


def over(status: Status) -> Facts:
    return published(ended=replace(OVER, status=status), done=done("stop#1"), slot=False)


#: Facts of every status.
IN: dict[Status, Facts] = {
    S.QUEUED: replace(facts(run=0, slot=False, agent=Agent()), done={}),
    S.SPAWNING: replace(facts(run=0, agent=Agent()), done={}),
    S.WORKING: facts(agent=AT_WORK),
    S.PR_OPEN: with_pull({"draft": True}),
    S.CI_FAILED: with_pull({"checks": (*FAILED, check(CheckState.PENDING, "lint"))}),
    S.REVIEW_PENDING: published(),
    S.CHANGES_REQUESTED: with_pull({"verdicts": (objection(),)}),
    S.APPROVED: with_pull({"verdicts": (approval(),), "merge": Merge.PROTECTED}),
    S.MERGEABLE: with_pull({"verdicts": (approval(),)}),
    S.NEEDS_INPUT: published(agent=agent(Activity.WAITING_INPUT, question="May I?")),
    S.STUCK: published(agent=agent(Activity.BLOCKED, 5000, error="529")),
    S.PAUSED: published(commands=(command("pause", at=ago(90)),)),
    S.MERGED: published(pulls=(pull(state=PullState.MERGED),), done=done("release#1")),
    S.ERRORED: over(S.ERRORED),
    S.KILLED: over(S.KILLED),
    S.DONE: over(S.DONE),
    S.TERMINATED: over(S.TERMINATED),
    S.CLEANUP: published(ended=OVER, pending=frozenset({"stop#1"})),
}
#: A text that fits, of commands that take one.
TEXT = {
    "tell": "Use tabs.",
    "answer": "Yes.",
    "budget": "+5",
    "allow": "d" * 7,
    "help": "The list.",
    "agent": "codex",
}


def decision(session: Facts, **policy: Any) -> Decision:
    return decide(session, Policy(**policy), NOW)


def asking(kind: str, session: Facts, **commanded: Any) -> Decision:
    """The decision after a person gives this command."""
    commanded = {"text": TEXT.get(kind, ""), "head": HEAD, **commanded}
    return decision(replace(session, commands=(*session.commands, command(kind, **commanded))))


def answers(found: Decision) -> dict[str, str]:
    return {
        str(a.key): a.values["text"]
        for a in found.actions
        if isinstance(a, do.Comment) and a.topic == "answer"
    }


def answer(found: Decision) -> str:
    return answers(found).popitem()[1]


def test_every_command_has_a_rule_and_every_rule_a_command() -> None:
    assert set(COMMAND_RULES) == set(COMMANDS) | set(LOCAL_COMMANDS)


@pytest.mark.parametrize("status", Status)
def test_there_is_an_example_of_every_status(status: Status) -> None:
    assert decision(IN[status]).status is status


@pytest.mark.parametrize(("kind", "status"), list(itertools.product(COMMAND_RULES, Status)))
def test_every_command_in_every_status_is_answered_once(kind: str, status: Status) -> None:
    found = asking(kind, IN[status])
    texts = answers(found)
    if kind == "freeze":
        assert {str(one.key) for one in effects(found)} == {
            "reaction:comment-freeze",
            "command_applied:comment-freeze",
        }
        return
    works = status in COMMAND_RULES[kind].works
    if kind == "stop" and works:
        assert found.status in (S.KILLED, S.CLEANUP)
        return
    ((key, text),) = ((k, v) for k, v in texts.items() if k.endswith(f":comment-{kind}"))
    assert text
    assert "{" not in text
    session = replace(
        IN[status], commands=(*IN[status].commands, command(kind, text=TEXT.get(kind, "")))
    )
    again = decision(replace(session, pending=session.pending | set(map(parse, texts))))
    assert key not in answers(again)
    if not works:
        assert key == f"command_refused:comment-{kind}"


@pytest.mark.parametrize(("kind", "status"), list(itertools.product(COMMAND_RULES, Status)))
def test_a_refused_command_has_no_effect_now_or_later(kind: str, status: Status) -> None:
    if status in COMMAND_RULES[kind].works:
        return
    before, asked = decision(IN[status]), asking(kind, IN[status])
    explained = {f"command_refused:comment-{kind}"}
    later = replace(IN[status], commands=(*IN[status].commands, command(kind, text="x", head=HEAD)))
    for found in (asked, decision(replace(later, done={**later.done, **done(*explained)}))):
        assert (found.status, found.because) == (before.status, before.because)
        assert _effects(found) == _effects(before)


def _effects(found: Decision) -> list[do.Action]:
    replies = (do.React, do.Comment)
    return [action for action in effects(found) if not isinstance(action, replies)]


# -- single commands--------------------------------------------------------------------------------


def test_a_command_refused_as_too_early_is_not_applied_later() -> None:
    life = Life(mode=Mode.OBSERVE)
    life.policy = Policy()
    life.slots = False
    life.facts = replace(life.facts, slot=False)
    life.person_commands("restart").reads(S.QUEUED)
    assert "nothing to restart" in life.answers()[0]
    life.slots_are(True).agent_works().waits(60)
    assert life.received() == ["start"]


def test_the_reply_to_a_stop_is_the_outcome() -> None:
    found = asking("stop", IN[S.WORKING])
    assert [a.topic for a in found.actions if isinstance(a, do.Comment)] == ["ended"]


def test_status_and_why_list_the_blockers_and_the_spending() -> None:
    session = replace(IN[S.REVIEW_PENDING], spent=Spending(cost_usd=1.5, tokens=7))
    for kind in ("status", "why"):
        text = answer(asking(kind, session))
        assert text.startswith("Review pending: waits for a review of ccccccc.")
        assert "- a review is required" in text
        assert "So far spent: 1.50 of 5.00 USD, 7 tokens" in text
    assert answer(asking("why", IN[S.NEEDS_INPUT])).endswith(
        "or answer in the agent's terminal (on the server: `mergewright attach SESSION`)."
    )


@pytest.mark.parametrize("kind", ["status", "why", "budget"])
def test_a_reply_on_github_names_no_cost_in_a_public_repository(kind: str) -> None:
    public = replace(IN[S.REVIEW_PENDING], spent=Spending(cost_usd=1.5, tokens=7))
    private = replace(public, issue=replace(public.issue, private=True))
    text = answer(asking(kind, public, number=12))
    assert "So far spent: 0.0 hours of work" in text
    assert "USD" not in text
    assert "tokens" not in text
    assert "So far spent: 1.50 of" in answer(asking(kind, private, number=12))
    assert "So far spent: 1.50 of" in answer(asking(kind, public)), "which only this machine shows"
    asked = command(kind, text=TEXT.get(kind, ""), number=12)
    shown = decision(replace(public, commands=(asked,)), public_cost=True)
    assert "So far spent: 1.50 of" in answer(shown)


def test_a_restart_starts_one_new_run_at_once() -> None:
    life = Life().agent_works().person_commands("restart")
    assert life.sent("start:") == ["start:first#1", "start:restart:comment-1#2"]
    life.agent_works().waits(60).agent_rests()
    assert life.received() == ["start", "resume"]
    life.person_commands("restart")
    assert life.sent("start:")[-1] == "start:restart:comment-2#3"


@pytest.mark.parametrize(
    "status", [S.WORKING, S.PR_OPEN, S.CI_FAILED, S.REVIEW_PENDING, S.CHANGES_REQUESTED]
)
def test_a_restart_starts_a_run_in_each_live_status(status: Status) -> None:
    starts = [a for a in asking("restart", IN[status]).actions if isinstance(a, do.Start)]
    assert [str(start.key) for start in starts] == ["start:restart:comment-restart#2"]


def test_only_one_run_is_started_at_a_time() -> None:
    session = published(agent=agent(), commands=(command("restart"), command("tell", text="Hello")))
    session = replace(session, agent=replace(session.agent, activity=Activity.EXITED, stopped=True))
    parked = replace(session, done={**session.done, **done("park:work#1", seconds_ago=60)})
    starts = [str(a.key) for a in decision(parked).actions if isinstance(a, do.Start)]
    assert starts == ["start:restart:comment-restart#2"]


def test_a_tell_reaches_the_agent_once_at_the_end_of_its_turn() -> None:
    life = Life().agent_works().person_commands("tell", "Use tabs.")
    assert life.received() == ["start"]
    assert life.answers() == [
        "The agent gets your message now if it waits for one, otherwise at the end of its turn, "
        "or once the session starts or resumes."
    ]
    life.agent_rests()
    (tell,) = [a for _, a in life.out if isinstance(a, do.SendMessage)]
    assert str(tell.key) == "forward:comment-1#1"
    assert tell.prompt.name == "tell"
    assert tell.prompt.values == {"actor": "alice", "text": "Use tabs."}
    life.agent_works().agent_rests().waits(60)
    assert life.received() == ["start", "tell"]


@pytest.mark.parametrize("kind", ["tell", "answer"])
def test_a_tell_answers_the_question_of_an_agent_that_waits(kind: str) -> None:
    session = replace(IN[S.NEEDS_INPUT], agent=replace(IN[S.NEEDS_INPUT].agent, question="May I?"))
    (tell,) = [a for a in asking(kind, session).actions if isinstance(a, do.SendMessage)]
    assert tell.prompt.name == "answer"
    assert tell.prompt.values["question"] == "May I?"


def test_a_tell_from_before_a_question_waits_until_it_is_answered() -> None:
    session = replace(IN[S.NEEDS_INPUT], agent=replace(IN[S.NEEDS_INPUT].agent, since=NOW))
    early = command("tell", text="Use tabs.", at=NOW - timedelta(seconds=60))
    found = decision(replace(session, commands=(early,)))
    assert not [a for a in found.actions if isinstance(a, do.SendMessage)]


def test_an_answer_that_fits_no_choice_is_reported_with_the_question() -> None:
    agent = replace(IN[S.NEEDS_INPUT].agent, question="May I? (Yes / No)")
    session = replace(IN[S.NEEDS_INPUT], agent=agent, commands=(command("answer", text="green"),))
    key = "forward:comment-answer"
    assert [str(a.key) for a in decision(session).actions if isinstance(a, do.SendMessage)] == [
        f"{key}#1"
    ]
    for result, refusals in (("it was given", []), (REFUSED, ["answer_refused:comment-answer"])):
        found = replace(
            session, done={**session.done, parse(f"{key}#1"): Done(at=NOW, result=result)}
        )
        texts = [a for a in decision(found).actions if isinstance(a, do.Comment)]
        refused = [a for a in texts if str(a.key).startswith("answer_refused:")]
        assert [str(a.key) for a in refused] == refusals
        assert all("May I? (Yes / No)" in a.values["text"] for a in refused)
    lost = Failure(at=NOW, reason=Reason.ACTION_FAILED, detail="it asks the same still")
    found = replace(session, failures={parse(f"{key}#1"): lost})
    texts = [a for a in decision(found).actions if isinstance(a, do.Comment)]
    (lost_one,) = [a for a in texts if str(a.key) == "answer_refused:comment-answer"]
    assert "it asks the same still" in lost_one.values["text"]


def test_an_answer_without_a_question_is_sent_as_a_message() -> None:
    (tell,) = [a for a in asking("answer", published()).actions if isinstance(a, do.SendMessage)]
    assert tell.prompt.name == "tell"


def test_no_message_is_sent_to_a_blocked_or_active_agent() -> None:
    for who in (agent(Activity.BLOCKED), AT_WORK):
        found = asking("tell", published(agent=who))
        assert not [a for a in found.actions if isinstance(a, do.SendMessage | do.Start)]


@pytest.mark.parametrize(
    ("kind", "text", "head", "says"),
    [
        ("tell", " ", HEAD, "The command has no text."),
        ("answer", "", HEAD, "The command has no text."),
        ("budget", "lots", HEAD, "The command needs an amount in US dollars, such as `+5`."),
        ("retry", "", HEAD, "There are no failed actions to retry."),
        (
            "merge",
            "",
            NEXT,
            "The pull request has new commits or another base branch since your command. ",
        ),
        (
            "merge",
            "",
            "",
            "The pull request has new commits or another base branch since your command. ",
        ),
        ("merge", "push", HEAD, "The merge method must be one of merge, rebase, squash."),
        ("cancel", "", HEAD, "There is no merge to cancel."),
        ("agent", "codx", HEAD, "There is no agent `codx`; known agents: ada, codex, shell."),
        ("agent", "shell", HEAD, "This session has that agent already."),
        ("review", "codx", HEAD, "There is no agent `codx`; known agents: ada, codex, shell."),
    ],
)
def test_a_command_with_an_invalid_argument_is_refused_with_the_reason(
    kind: str, text: str, head: str, says: str
) -> None:
    found = asking(kind, published(), text=text, head=head)
    ((key, texts),) = answers(found).items()
    assert key == f"command_refused:comment-{kind}"
    assert texts.startswith(says)


@pytest.mark.parametrize("kind", ["merge", "update", "review"])
def test_a_command_about_a_pull_request_is_refused_without_one(kind: str) -> None:
    assert answer(asking(kind, IN[S.WORKING])) == "There is no pull request yet."


def test_an_update_is_refused_where_the_branch_conflicts() -> None:
    assert answer(asking("update", with_pull({"merge": Merge.CONFLICT}))) == (
        "GitHub cannot update a branch that conflicts with its base: resolve the conflict first, "
        "or have the agent do it with `/mergewright tell TEXT`."
    )


def test_an_ended_session_is_not_restored_for_an_unknown_agent() -> None:
    found = asking("start", over(S.KILLED), text="codx")
    assert found.status is S.KILLED
    assert answer(found).startswith("There is no agent `codx`")


def test_a_merge_request_lists_its_blockers_and_a_cancel_withdraws_it() -> None:
    life = until_reviewed()
    life.person_commands("merge", head=life.pull.head)
    assert "- a review is required: @alice requested this work" in life.answers()[-1]
    life.person_commands("cancel").reviewer_approves().reads(S.MERGEABLE)
    life.person_commands("cancel")
    assert life.answers()[-1] == "There is no merge to cancel."
    life.person_commands("merge", "rebase", head=life.pull.head).reads(S.MERGED)
    (merge,) = [a for _, a in life.out if isinstance(a, do.MergePull)]
    assert merge.method == "rebase"


def test_a_merge_can_name_the_head_of_any_open_pull_request() -> None:
    two = with_pull({"head": HEAD}, commands=())
    two = replace(two, pulls=(*two.pulls, replace(pull(draft=True, head=NEXT), number=35)))
    for head in (HEAD, NEXT):
        assert answer(asking("merge", two, head=head)).startswith("The current commit is merged")
    closed = replace(two, pulls=(two.pulls[0], replace(two.pulls[1], state=PullState.CLOSED)))
    assert answer(asking("merge", closed, head=NEXT)) == "The pull request is closed."
    ended = replace(closed, pulls=closed.pulls[:1], commands=())
    assert "new commits" in answer(asking("merge", ended, head=NEXT))
    assert "Either your command specifies none" in answer(asking("merge", two, head=""))


def test_a_session_that_would_end_again_at_once_is_not_restored() -> None:
    closed = replace(over(S.TERMINATED), pulls=(pull(state=PullState.CLOSED),))
    found = asking("start", closed)
    assert found.status is S.TERMINATED
    assert answer(found) == (
        "The session would end again at once: the pull request was closed without a merge. "
        "Reopen the pull request to continue; its branch is kept."
    )
    issue = replace(over(S.DONE), issue=Issue(number=12, title="x", open=False))
    assert "the issue was closed" in answer(asking("start", issue))
    assert asking("start", over(S.TERMINATED)).status is S.QUEUED


def test_a_granted_restore_stays_granted_without_its_reply() -> None:
    """The session records the restore, so a lost reply does not undo it."""
    again = command("start", at=ago(30))
    session = replace(over(S.KILLED), ended=None, restored_at=ago(29), commands=(again,))
    assert decision(session).status is S.QUEUED
    before = replace(session, restored_at=ago(31))
    assert "There is already a session here" in answer(decision(before))


def test_commands_from_before_the_end_are_not_answered_after_it() -> None:
    session = replace(
        over(S.KILLED), commands=(command("stop", at=ago(121)), command("tell", at=ago(130)))
    )
    assert answers(decision(session)) == {}
