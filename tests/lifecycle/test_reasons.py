"""Every reported problem has a remedy."""

import re

import pytest

from lifecycle.decide import decide
from lifecycle.judge.commands import COMMAND_RULES
from lifecycle.judge.reasons import ADVICE, advice_on, needs_person
from lifecycle.model import actions as do
from lifecycle.model.facts import Facts
from lifecycle.model.policy import Policy
from lifecycle.model.status import TERMINAL, Reason, Status
from tests.lifecycle.test_commands import IN
from tests.lifecycle.test_escalations import ESCALATING
from tests.lifecycle.test_signals import BECAUSE
from tests.lifecycle.test_stalls import STALLS
from tests.lifecycle.troubles import every_trouble
from tests.lifecycle.universe import NOW, facts

#: Reasons that are no problem: the session continues by itself, or succeeded.
NO_PROBLEM = {
    Reason.PR_MERGED,
    Reason.PULL_REQUEST,
    Reason.AGENT_AT_WORK,
    Reason.IN_CHAT,
    Reason.STARTING,
    Reason.RELEASING,
    Reason.COMPLETED,
}
NOTIFIED = {
    **{name: given for name, (given, *_) in ESCALATING.items()},
    **{name: facts(agent=who) for name, (who, *_) in STALLS.items()},
    **{name: given for name, (given, *_) in BECAUSE.items()},
}


def test_exactly_the_reasons_that_are_problems_have_advice() -> None:
    assert set(Reason) - NO_PROBLEM == set(ADVICE)


def test_every_piece_of_advice_is_a_sentence() -> None:
    for reason, advice in ADVICE.items():
        assert advice.remedy[0].isupper(), reason
        assert advice.remedy.endswith("."), reason


@pytest.mark.parametrize("session", NOTIFIED.values(), ids=NOTIFIED.keys())
def test_every_notice_has_its_remedy(session: Facts) -> None:
    decision = decide(session, Policy(), NOW)
    notices = [a for a in decision.actions if isinstance(a, do.Comment)]
    if decision.status is Status.MERGED:
        assert notices == []
        return
    (comment,) = notices
    assert comment.values["because"] == decision.because
    assert comment.values["remedy"] == advice_on(decision.reason)
    assert comment.values["session"] == "widgets-12"


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        (Reason.NO_PROGRESS, " `/mergewright restart` may also help."),
        (Reason.SPAWN_FAILED, "then write `/mergewright start`."),
        (Reason.REPOSITORY_ARCHIVED, "resumes by itself."),
    ],
    ids=["a command may help", "the remedy names it", "nobody has to act"],
)
def test_a_remedy_names_the_command_that_may_help(reason: Reason, end: str) -> None:
    assert advice_on(reason).endswith(end)


def test_no_remedy_names_a_command_that_is_refused() -> None:
    """Remedies for ended sessions name no command but `start`, which no other remedy names."""
    named = set()
    for session in (*NOTIFIED.values(), *IN.values(), *every_trouble()):
        decision = decide(session, Policy(), NOW)
        for kind in re.findall(r"`/mergewright (\w+)", advice_on(decision.reason)):
            assert decision.status in COMMAND_RULES[kind].works, (decision.reason, kind)
            named.add((kind, decision.status in TERMINAL))
    assert {kind for kind, ended in named if ended} == {"start"}
    assert "start" not in {kind for kind, ended in named if not ended}


@pytest.mark.parametrize(
    ("status", "reason", "needed"),
    [
        (Status.NEEDS_INPUT, Reason.AGENT_QUESTION, True),
        (Status.STUCK, Reason.NO_PROGRESS, True),
        (Status.PAUSED, Reason.USAGE_LIMIT, True),
        (Status.ERRORED, Reason.SPAWN_FAILED, True),
        (Status.MERGEABLE, Reason.AWAITS_MERGE, True),
        (Status.MERGEABLE, Reason.AWAITS_MANUAL_MERGE, True),
        (Status.MERGEABLE, Reason.PULL_REQUEST, False),
        (Status.WORKING, Reason.AGENT_BLOCKED, True),
        (Status.WORKING, Reason.AGENT_AT_WORK, False),
        (Status.QUEUED, Reason.ISSUES_IN_CIRCLE, True),
        (Status.QUEUED, Reason.ISSUE_BLOCKED, False),
        (Status.REVIEW_PENDING, Reason.PERSON_PUSHED, False),
        (Status.MERGED, Reason.PR_MERGED, False),
        (Status.KILLED, Reason.AGENT_BLOCKED, False),
    ],
)
def test_a_session_needs_a_person_by_its_status_or_its_reason(
    status: Status, reason: Reason, needed: bool
) -> None:
    assert needs_person(status, reason) is needed


def test_reasons_that_are_no_problem_have_no_advice() -> None:
    assert {advice_on(reason) for reason in NO_PROBLEM} == {""}
