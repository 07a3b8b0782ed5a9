"""A few words to ask what follows from facts, and facts that many cases share."""

from typing import Any

from lifecycle.decide import Decision, decide
from lifecycle.model import actions as do
from lifecycle.model.facts import Facts, Work
from lifecycle.model.keys import fingerprint
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, CheckState
from tests.lifecycle.universe import BASE, HEAD, NEXT, NOW, agent, approval, check, published, pull

AT_WORK = agent(Activity.ACTIVE, 5)
ASKING = agent(Activity.WAITING_INPUT)
BLOCKED = agent(Activity.BLOCKED, 5)
FAILED = (check(CheckState.FAILED, log="boom", notes="a.py:1: no", url="https://ci/1"),)
READY = {"verdicts": (approval(),)}
#: A commit that is not pushed.
COMMIT = Work(base=BASE, head=NEXT, dirty=False)


def decision(given: Facts, **policy: Any) -> Decision:
    return decide(given, Policy(**policy), NOW)


def deeds(found: Decision) -> list[do.Action]:
    """What follows from a decision, but for the reports that say how things stand."""
    return [a for a in found.actions if not isinstance(a, do.Report | do.ReportCheck)]


def asked(given: Facts, **policy: Any) -> list[do.Action]:
    """What follows from the facts, but for reports, the label that calls, answers to commands."""
    return [
        action
        for action in deeds(decision(given, **policy))
        if not isinstance(action, do.Label)
        and not (isinstance(action, do.Comment) and action.topic == "answer")
    ]


def keys(given: Facts, **policy: Any) -> list[str]:
    return [str(action.key) for action in asked(given, **policy)]


def of(pulls: dict[str, Any], **given: Any) -> Facts:
    """A session whose pull request is so."""
    return published(pulls=(pull(**pulls),), **given)


def ci_cause(*names: str) -> str:
    return f"fix_ci:{HEAD}:{fingerprint([f'ci/{name}' for name in names])}"


def review_cause(*ids: str) -> str:
    return f"address_review:{fingerprint(ids)}"
