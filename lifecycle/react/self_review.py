"""Before people see a change its agent reads it over once as a reviewer, where policy wants it."""

from collections.abc import Iterator
from typing import Final

from lifecycle.judge.judge import Judged
from lifecycle.model import actions as do
from lifecycle.model import keys
from lifecycle.model.key import Key, KeyKind
from lifecycle.react.messages import message
from lifecycle.read.session_view import View, spent

_SELF_REVIEW: Final = frozenset({KeyKind.SELF_REVIEW})


def self_review(judged: Judged) -> Iterator[do.Action]:
    """By policy an agent reads its own change over, once, before it becomes a pull request."""
    view, policy = judged.view, judged.view.policy
    if policy.self_review and view.pushed and (cause := _cause(view)):
        values = {"base": view.facts.work.base, "head": view.facts.work.head}
        yield from message(judged, cause, do.Prompt(name="self_review", values=values))


def awaited(view: View) -> bool:
    """Whether what was pushed waits until its agent has read it over, or that takes too long.

    One that cannot be told to is not waited for.
    """
    policy = view.policy
    if not policy.self_review:
        return False
    if cause := _cause(view):
        return cause.of_run(view.facts.run) not in view.facts.failures
    told = max(view.past.told(_SELF_REVIEW).values())
    return not view.at_rest and not view.passed(told, policy.self_review_seconds)


def _cause(view: View) -> Key | None:
    """The commit the agent is still to read over; None: it was told to, if only of another one.

    What went down with a run that broke off is told once more.
    """
    cause = keys.self_review(view.facts.work.head)
    heard = view.past.heard(cause) is not None
    return None if heard or spent(cause, view.past.told(_SELF_REVIEW), 1) else cause
