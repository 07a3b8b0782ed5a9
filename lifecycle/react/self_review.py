"""The agent's own review of its change before the pull request, if policy wants one."""

from typing import Final

from lifecycle.judge.judge import Judged, Wanted
from lifecycle.model import actions as do
from lifecycle.model import keys
from lifecycle.model.key import Key, KeyKind
from lifecycle.react.messages import message
from lifecycle.read.causes import spent
from lifecycle.read.session_view import Recheck, SessionView

_SELF_REVIEW: Final = frozenset({KeyKind.SELF_REVIEW})


def self_review(judged: Judged) -> Wanted:
    """Ask the agent to review its own change once before the pull request is opened."""
    view, policy = judged.view, judged.view.policy
    if policy.self_review and view.pushed and (cause := _cause(view)):
        values = {"base": view.facts.work.base, "head": view.facts.work.head}
        yield from message(judged, cause, do.Prompt(name="self_review", values=values))


def awaited(view: SessionView) -> bool:
    """Whether the agent still has to review the pushed commits.

    Nothing waits for an agent that cannot be asked.
    """
    cause = _cause(view) if view.policy.self_review else None
    return cause is not None and cause.of_run(view.facts.run) not in view.facts.failures


def review_wait(view: SessionView) -> Recheck | None:
    """The time that the agent has left for the review it was asked for."""
    policy = view.policy
    if not policy.self_review or view.at_rest or _cause(view):
        return None
    asked = max(view.history.first_sent(_SELF_REVIEW).values())
    return view.wait(asked, policy.self_review_seconds)


def _cause(view: SessionView) -> Key | None:
    """Return the commit that the agent has to review; None if it was asked already, at any commit.

    A request that was lost with a failed run is repeated.
    """
    cause = keys.self_review(view.facts.work.head)
    asked = view.history.last_sent(cause) is not None
    return None if asked or spent(cause, view.history.first_sent(_SELF_REVIEW), 1) else cause
