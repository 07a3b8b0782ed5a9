"""The actions and keys of a decision, and facts that many cases share."""

from typing import Any, NamedTuple

from lifecycle.decide import Decision, decide
from lifecycle.model import actions as do
from lifecycle.model.facts import Command, Facts, Work
from lifecycle.model.keys import fingerprint
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, CheckState, Status
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
    """All actions of a decision except `Report` and `ReportCheck`."""
    return [a for a in found.actions if not isinstance(a, do.Report | do.ReportCheck)]


def ordered(session: Facts, **policy: Any) -> list[do.Action]:
    """The actions that the decision orders, except reports, the attention label and replies."""
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


def ready(*commands: Command, **fields: Any) -> Facts:
    """A pull request that is approved, green and clean, but for these fields."""
    return with_pull({**READY, **fields}, commands=commands)


def ci_cause(*names: str) -> str:
    return f"fix_ci:{HEAD}:{fingerprint([f'ci/{name}' for name in names])}"


def review_cause(*ids: str) -> str:
    return f"address_review:{fingerprint(ids)}"


class Scenario(NamedTuple):
    """Facts that another merge bot has a test for, and what is to be decided."""

    session: Facts
    status: Status
    blockers: str = ""  #: The names of all that block the merge.
    does: str = ""  #: All that is done besides reports, in the words of `deeds`.
    says: str = ""  #: Part of what people read.
    differs: str = ""  #: What the other bot does instead, and why we do not.
    policy: dict[str, Any] = {}  # noqa: RUF012 - never changed

    @property
    def expected(self) -> tuple[Status, list[str], list[str], str]:
        return self.status, self.blockers.split(), sorted(self.does.split()), self.says

    def decided(self, **policy: Any) -> tuple[Status, list[str], list[str], str]:
        """Return what is decided for the session, in the form of `expected`, to compare the two."""
        found = decision(self.session, **{**policy, **self.policy})
        comments = [action for action in found.actions if isinstance(action, do.Comment)]
        read = [found.because, *(blocker.sentence for blocker in found.blockers)]
        text = "\n".join([*read, *(str(comment.values) for comment in comments)])
        says = self.says if self.says in text else text
        return found.status, [blocker.name for blocker in found.blockers], deeds(found), says


def deeds(found: Decision) -> list[str]:
    """The actions without reports, labels and acknowledgements, each with its main argument."""
    words = []
    for action in effects(found):
        name = type(action).__name__
        match action:
            case do.Comment(topic=topic):
                words.append(f"{name}:{topic}")
            case do.SendMessage(prompt=prompt):
                words.append(f"{name}:{prompt.name}")
            case do.MergePull(number=number, method=method):
                words.append(f"{name}:{number}:{method}")
            case do.Label() | do.React():
                pass
            case _:
                words.append(name)
    return sorted(words)
