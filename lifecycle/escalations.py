"""What the agent cannot bring further by itself: one row a cause, standing as long as it does."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from lifecycle.status import Activity, Reason
from lifecycle.view import View


class Escalation(NamedTuple):
    """A cause people have to look at; its key names the cause."""

    key: str
    reason: Reason
    because: str


def _failed_action(view: View, key: str) -> Iterator[Escalation]:
    failure = view.facts.failures.get(key)
    if failure is not None:
        yield Escalation(f"failed:{key}", failure.reason, failure.detail)


def push_refused(view: View) -> Iterator[Escalation]:
    """The commits at hand could not be pushed."""
    yield from _failed_action(view, f"push:{view.facts.work.head}")


def pull_refused(view: View) -> Iterator[Escalation]:
    """The pull request could not be opened."""
    if view.pull is None:
        yield from _failed_action(view, f"pull:{view.facts.branch}")


def merge_refused(view: View) -> Iterator[Escalation]:
    """GitHub refused to merge this very head."""
    if view.pull is not None:
        yield from _failed_action(view, f"merge:{view.pull.head}")


def message_lost(view: View) -> Iterator[Escalation]:
    """A message of this run could not be delivered."""
    for key in view.facts.failures:
        if key.startswith("tell:") and key.endswith(f":r{view.facts.run}"):
            yield from _failed_action(view, key)


def repairs_exhausted(view: View) -> Iterator[Escalation]:
    """The checks are still red after all the tries the agent has."""
    if not view.failed_checks or view.repairs < view.policy.ci_repairs:
        return
    told = view.heard(view.failing_cause)
    if told is None or (view.turn_over_since(told.at) and not view.pushed_since(told.at)):
        names = ", ".join(check.name for check in view.failed_checks)
        yield Escalation(
            view.failing_cause.replace("tell:", "repairs:", 1),
            Reason.REPAIRS_EXHAUSTED,
            f"checks still fail after {view.repairs} repairs: {names}",
        )


def repair_not_tried(view: View) -> Iterator[Escalation]:
    """Told of red checks, the agent ended its turn without a commit."""
    if not view.failed_checks:
        return
    told = view.heard(view.failing_cause)
    if told and view.turn_over_since(told.at) and not view.pushed_since(told.at):
        names = ", ".join(check.name for check in view.failed_checks)
        yield Escalation(
            view.failing_cause.replace("tell:", "unrepaired:", 1),
            Reason.REPAIRS_EXHAUSTED,
            f"the agent ended its turn without a commit after it was told of: {names}",
        )


def review_not_answered(view: View) -> Iterator[Escalation]:
    """Requested changes stand, the agent was told and rests, and nothing came of it."""
    told = view.last_review_told
    if told is None or not view.open_threads or view.pushed_since(told):
        return
    if view.turn_over_since(told) and view.passed(told, view.policy.review_escalation_seconds):
        yield Escalation(
            f"review:{told.isoformat()}",
            Reason.REPAIRS_EXHAUSTED,
            "the agent was told of the requested changes and pushed nothing",
        )


def rounds_exhausted(view: View) -> Iterator[Escalation]:
    """Reviewers still ask for more after all the rounds the agent has."""
    if view.unheard and view.review_rounds >= view.policy.review_rounds:
        newest = max(remark.at for remark in view.unheard)
        yield Escalation(
            f"rounds:{newest.isoformat()}",
            Reason.REPAIRS_EXHAUSTED,
            f"{view.review_rounds} rounds of review went to the agent; more were asked for",
        )


def left_uncommitted(view: View) -> Iterator[Escalation]:
    """Reminded of uncommitted work, the agent left it so."""
    work = view.facts.work
    told = view.heard(f"tell:dirty:{work.head}") if work.dirty else None
    if told and view.turn_over_since(told.at):
        yield Escalation(
            f"dirty:{work.head}",
            Reason.UNCOMMITTED_WORK,
            "the agent left uncommitted work in its workspace after a reminder",
        )


def nothing_to_show(view: View) -> Iterator[Escalation]:
    """The agent is finished and there is not one commit."""
    work, agent = view.facts.work, view.facts.agent
    if view.facts.pulls or not work.head or work.head != work.base or agent.run != view.facts.run:
        return
    if agent.exit is not None:
        over = agent.exit.code == 0
    else:
        rests = agent.activity in (Activity.READY, Activity.IDLE) and agent.since is not None
        over = rests and view.passed(agent.since or view.now, view.policy.idle_seconds)
    if over:
        words = agent.summary or (agent.exit.tail.strip() if agent.exit else "")
        yield Escalation(
            f"nothing:r{view.facts.run}",
            Reason.NOTHING_TO_SHOW,
            "the agent finished without a commit" + (f': "{words[-300:]}"' if words else ""),
        )


#: The first that stands is the one people are told of.
ESCALATIONS: Final[tuple[Callable[[View], Iterator[Escalation]], ...]] = (
    push_refused,
    pull_refused,
    merge_refused,
    message_lost,
    repairs_exhausted,
    repair_not_tried,
    rounds_exhausted,
    review_not_answered,
    left_uncommitted,
    nothing_to_show,
)


def open_escalation(view: View) -> Escalation | None:
    """The cause people have to look at, if there is one."""
    return next((found for row in ESCALATIONS for found in row(view)), None)
