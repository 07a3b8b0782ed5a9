"""Every reported problem has a remedy."""

import pytest

from lifecycle.decide import decide
from lifecycle.judge.reasons import ADVICE, advice_on
from lifecycle.model import actions as do
from lifecycle.model.facts import Facts
from lifecycle.model.policy import Policy
from lifecycle.model.status import Reason, Status
from tests.lifecycle.test_escalations import ESCALATING
from tests.lifecycle.test_signals import BECAUSE
from tests.lifecycle.test_stalls import STALLS
from tests.lifecycle.universe import NOW, facts

#: Reasons that are no problem: the session continues by itself, or succeeded.
NO_PROBLEM = {
    Reason.PR_MERGED,
    Reason.PULL_REQUEST,
    Reason.AGENT_AT_WORK,
    Reason.NO_SLOT,
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
    ("reason", "mentioned"),
    [(Reason.SPAWN_FAILED, True), (Reason.BRANCH_GONE, False), (Reason.USAGE_LIMIT, False)],
    ids=["a retry may help", "a retry cannot help", "nobody has to act"],
)
def test_a_remedy_mentions_a_retry_where_it_can_help(reason: Reason, mentioned: bool) -> None:
    assert advice_on(reason).endswith(" A retry may also help.") is mentioned


def test_reasons_that_are_no_problem_have_no_advice() -> None:
    assert {advice_on(reason) for reason in NO_PROBLEM} == {""}
