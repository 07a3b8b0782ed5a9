"""What keeps a session from going on for a while: a person, a budget, a usage limit, a freeze."""

from collections.abc import Callable
from typing import Final

from lifecycle.judge.budgets import exhausted
from lifecycle.judge.stalls import Escalation
from lifecycle.model import keys
from lifecycle.model.facts import Facts, Frozen
from lifecycle.model.status import PullState, Reason
from lifecycle.read.availability import Availability
from lifecycle.read.sentences import clock
from lifecycle.read.session_view import GOES_ON, View

# Looked up once: a member of an enumeration costs a search each time it is named.
_OPEN = PullState.OPEN


def by_person(view: View) -> Escalation | None:
    """A person said `pause`, and nobody has said anything to go on with since."""
    pause = view.command("pause")
    if pause is None or view.commanded_since(pause.at, *GOES_ON):
        return None
    # Without a key: whoever said it has an answer already, and nobody else has to be told.
    return Escalation(None, Reason.PAUSED_BY_PERSON, f"paused by @{pause.actor}")


def by_archive(view: View) -> Escalation | None:
    """Its repository is archived, so that nothing can be written there until it is so no more."""
    if not view.facts.archived:
        return None
    # Without a key: GitHub takes no comment in which anybody could be told.
    return Escalation(None, Reason.REPOSITORY_ARCHIVED, "the repository is archived")


def by_budget(view: View) -> Escalation | None:
    """A budget is used up; before the first run the session waits in the queue for it."""
    return exhausted(view) if view.past.begun else None


def by_usage_limit(view: View) -> Escalation | None:
    """The agent's provider gives it no more until a time it named, or a person restarts it."""
    agent = view.facts.agent
    until = agent.limit_until
    if until is None or view.stands not in (Availability.BLOCKED, Availability.INTERRUPTED):
        return None
    if agent.since is not None and view.commanded_since(agent.since, "restart"):
        return None
    if view.passed(until, 0):
        return None
    key = keys.usage_limit(until, agent.run)
    why = f"the agent's usage limit is reached; it goes on by itself at {clock(until)}"
    return Escalation(key, Reason.USAGE_LIMIT, why)


PAUSES: Final[tuple[Callable[[View], Escalation | None], ...]] = (
    by_archive,
    by_person,
    by_budget,
    by_usage_limit,
)


def frozen_by(facts: Facts) -> Frozen | None:
    """Who stopped every effect on this session, if somebody did and nobody has undone it."""
    outside = facts.frozen or facts.issue.frozen or _by_label_on_pull(facts)
    if outside is not None or not facts.commands:
        return outside
    said = [command for command in facts.commands if command.kind in ("freeze", "unfreeze")]
    last = max(said, key=lambda command: command.at, default=None)
    if last is None or last.kind == "unfreeze":
        return None
    return Frozen(scope="session", by=last.actor, at=last.at)


def _by_label_on_pull(facts: Facts) -> Frozen | None:
    for pull in facts.pulls:
        if pull.frozen is not None and pull.state is _OPEN:
            return pull.frozen
    return None
