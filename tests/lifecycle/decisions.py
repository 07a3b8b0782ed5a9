"""The actions and keys of a decision, and facts that many cases share."""

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


def decision(session: Facts, **policy: Any) -> Decision:
    return decide(session, Policy(**policy), NOW)


def effects(found: Decision) -> list[do.Action]:
    """The actions of a decision without reports."""
    return [a for a in found.actions if not isinstance(a, do.Report | do.ReportCheck)]


def ordered(session: Facts, **policy: Any) -> list[do.Action]:
    """The ordered actions without reports, the attention label and replies to commands."""
    return [
        action
        for action in effects(decision(session, **policy))
        if not isinstance(action, do.Label)
        and not (isinstance(action, do.Comment) and action.topic == "answer")
    ]


def keys(session: Facts, **policy: Any) -> list[str]:
    return [str(action.key) for action in ordered(session, **policy)]


def with_pull(pulls: dict[str, Any], **fields: Any) -> Facts:
    """A session with a pull request of these fields."""
    return published(pulls=(pull(**pulls),), **fields)


def ci_cause(*names: str) -> str:
    return f"fix_ci:{HEAD}:{fingerprint([f'ci/{name}' for name in names])}"


def review_cause(*ids: str) -> str:
    return f"address_review:{fingerprint(ids)}"
