"""Detects what pauses a session (a command, a limit, no access to its repository) or freezes it.

A person's push pauses no session: `SessionView.handed_to_human` holds back requests to the agent.
"""

from typing import Final

from lifecycle.judge.stalls import Finding, Found, Row, first
from lifecycle.model import keys
from lifecycle.model.facts import Command, Facts, Frozen
from lifecycle.model.key import Key
from lifecycle.model.status import DiskLimit, PullState, Reason
from lifecycle.read.availability import Availability
from lifecycle.read.budgets import UNREACHED, budget_key, describe, end_of_day
from lifecycle.read.sentences import clock, person
from lifecycle.read.session_view import RESUMING, Recheck, SessionView, earliest

_OPEN = PullState.OPEN


def by_person(view: SessionView) -> Finding | None:
    """A person commanded `pause`, and no later command resumes the session."""
    pause = view.command("pause")
    if pause is None or view.commanded_since(pause.at, *RESUMING):
        return None
    # Without a key: the command was answered already, and nobody else has to be notified.
    return Finding(None, Reason.PAUSED_BY_PERSON, f"paused by {person(pause.actor)}")


def by_archive(view: SessionView) -> Finding | None:
    """The repository is archived and therefore read-only until it is unarchived.

    https://docs.github.com/en/repositories/archiving-a-github-repository/archiving-repositories
    """
    if not view.facts.archived:
        return None
    # Without a key: GitHub takes no comment there.
    return Finding(None, Reason.REPOSITORY_ARCHIVED, "the repository is archived")


def by_removal(view: SessionView) -> Finding | None:
    """The project is no longer configured, or the App was removed from the repository."""
    if not view.facts.removed:
        return None
    why = "is no longer in the configuration, or the App was removed from its repository"
    return Finding(None, Reason.PROJECT_REMOVED, f"{view.facts.project} {why}")


def by_disk(view: SessionView) -> Finding | None:
    """The session's checkout, home and outputs together exceed a limit or cannot be measured."""
    excess = view.facts.work.disk
    if excess is None:
        return None
    key = keys.disk_limit(excess.since) if excess.since else None
    return Finding(key, Reason.DISK_LIMIT, _EXCEEDS[excess.limit].format(most=excess.most))


_FILES: Final = "the session's files on the server (checkout, home folder, outputs)"
_EXCEEDS: Final = {
    DiskLimit.MEGABYTES: f"{_FILES} take up more than {{most}} MB of disk, the limit that `disk-mb`"
    " under `[sandbox]` sets",
    DiskLimit.FILES: "the session has more than {most} files on the server (checkout, home folder,"
    " outputs), which is the limit",
    DiskLimit.LEVELS: f"{_FILES} are in folders nested more than {{most}} levels deep, which is the"
    " limit",
    DiskLimit.READABLE: f"a folder among {_FILES} cannot be read, so that its size is unknown",
}


def by_budget(view: SessionView) -> Finding | Recheck | None:
    """A budget is used up, and a run was started. Before the first run, the session is queued."""
    return exhausted(view) if view.history.started else None


def exhausted(view: SessionView) -> Finding | Recheck | None:
    """Return a finding for the first used-up budget, or else a `Recheck`, or None.

    The `Recheck` is for when the turn in progress reaches a budget's warning threshold or limit.
    """
    state, facts, now = view.budgets, view.facts, view.now
    if not state.exhausted:
        return Recheck(state.changes_at) if state.changes_at else None
    reached = state.exhausted[0]
    why = f"{describe(reached, facts, view.policy)} is used up"
    midnight = end_of_day(now) if reached.row.of_day else None
    if midnight:
        why += "; at midnight UTC a new one begins, and the session continues by itself"
    key = budget_key(reached, facts, now)
    until = earliest(midnight, state.changes_at)
    return Finding(key, Reason.BUDGET_EXHAUSTED, why, until)


def by_usage_limit(view: SessionView) -> Finding | None:
    """The provider refuses requests until a time it named. A person may restart the agent."""
    agent = view.facts.agent
    until = agent.limit_until
    if until is None or view.last_availability not in _LIMITED or view.now >= until:
        return None
    if agent.since is not None and view.commanded_since(agent.since, "restart"):
        return None
    key = keys.usage_limit(until, agent.run)
    why = f"the agent's usage limit is reached; the agent resumes by itself at {clock(until)}"
    return Finding(key, Reason.USAGE_LIMIT, why, until)


def by_chat(view: SessionView) -> Finding | Recheck | None:
    """A chat has been silent for too long, or its program has ended. A person resumes the chat."""
    if not view.is_chat or view.instructed_at is None:
        return None
    agent, parked = view.facts.agent, view.facts.run in view.history.ended
    if view.availability in _OVER and (agent.exit is not None or not parked):
        if agent.exit is not None and view.commanded_since(agent.exit.at, *RESUMING):
            return None
        return Finding(None, Reason.CHAT_PAUSED, agent.evidence or "the agent's program has ended")
    if view.availability in _AT_WORK or not view.policy.chat_idle_seconds:
        return None
    commands = [one.at for one in view.facts.commands if one.kind in RESUMING]
    times = [view.instructed_at, agent.since, agent.seen, *commands]
    if wait := view.wait(max(filter(None, times)), view.policy.chat_idle_seconds):
        return wait
    return Finding(None, Reason.CHAT_PAUSED, _QUIET)


_QUIET: Final = "nobody has written in this chat for a while, so its program was stopped"
_OVER: Final = (Availability.EXITED, Availability.CRASHED)
#: The availabilities in which a chat is not paused even if nobody writes.
_AT_WORK: Final = (Availability.ACTIVE, Availability.UNKNOWN, Availability.INTERRUPTED)
_LIMITED: Final = (Availability.BLOCKED, Availability.INTERRUPTED)
PAUSES: Final[tuple[Row, ...]] = (
    by_removal,
    by_archive,
    by_person,
    by_disk,
    by_budget,
    by_usage_limit,
    by_chat,
)


def pause(view: SessionView) -> Found:
    """Return the first finding of `PAUSES`, and when time alone may change it.

    Either may be None. If the facts rule out every finding, no function of `PAUSES` is called.
    """
    facts = view.facts
    may_rest = facts.removed or facts.archived or facts.work.disk or view.is_chat
    if may_rest or facts.commands or facts.agent.limit_until or view.budgets is not UNREACHED:
        return first(PAUSES, view)
    return None, None


def frozen_by(facts: Facts) -> Frozen | None:
    """Return the freeze that applies to this session, or None."""
    outside = _frozen_outside(facts)
    if outside is not None or not facts.commands:
        return outside
    freeze = freezing(facts)
    return None if freeze is None else Frozen(scope="session", by=freeze.actor, at=freeze.at)


def _frozen_outside(facts: Facts) -> Frozen | None:
    """Return a freeze that was not ordered by a command to this session; None if there is none.

    It is one of everything or of the project, or a label on the issue or an open pull request.
    """
    outside = facts.frozen or facts.issue.frozen
    for pull in facts.pulls:
        if pull.frozen is not None and pull.state is _OPEN:
            outside = outside or pull.frozen
    return outside


def frozen_by_label(facts: Facts) -> bool:
    """Whether the freeze that applies to this session is by a label, which a person removes."""
    by_label = (facts.issue.frozen, *(pull.frozen for pull in facts.pulls))
    frozen = frozen_by(facts)
    return frozen is not None and frozen in by_label


def freezing(facts: Facts) -> Command | None:
    """Return the session's own command `freeze` that no `unfreeze` has undone, or None."""
    commands = [command for command in facts.commands if command.kind in ("freeze", "unfreeze")]
    last = max(commands, key=lambda command: command.at, default=None)
    return last if last is not None and last.kind == "freeze" else None


def is_undone(command: Command, facts: Facts) -> bool:
    """Whether the command is a `freeze` that a later `unfreeze` undid, so that it gets no reply."""
    later = (one for one in facts.commands if one.kind == "unfreeze" and one.at > command.at)
    return command.kind == "freeze" and any(later)


def exempt(facts: Facts) -> frozenset[Key]:
    """Return the keys of a `freeze` command's reaction and reply, which the freeze lets through.

    Empty if no such command is in effect, or if something else freezes the session too.
    """
    freeze = freezing(facts)
    if freeze is None or _frozen_outside(facts) is not None:
        return frozenset()
    return frozenset({keys.reaction(freeze.key), keys.command_applied(freeze.key)})
