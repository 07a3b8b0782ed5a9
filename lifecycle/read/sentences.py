"""Fills in the placeholders of the sentences in the tables of rules and blockers."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Final

from lifecycle.model.facts import Agent, Check
from lifecycle.model.key import KeyKind
from lifecycle.model.names import API, CLI, NAME, PAGE
from lifecycle.model.status import Activity, Blocker, Review
from lifecycle.read.availability import Availability
from lifecycle.read.holds import held_by
from lifecycle.read.merging import barred, missing_checks
from lifecycle.read.session_view import SessionView

_PENDING = Review.PENDING


def short(sha: str) -> str:
    """Return the first 7 digits of a commit's hash."""
    return sha[:7]


def names(checks: Sequence[Check]) -> str:
    """Return the names of the checks, separated by commas."""
    return ", ".join(check.name for check in checks)


def clock(at: datetime) -> str:
    """Format a time in UTC with its date, to the minute: `2026-01-31 14:05 UTC`."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def person(actor: str) -> str:
    """Return the words for an actor: a GitHub login gets `@`, other actors are described.

    If `actor` is empty, the actor is unknown, and the result is "somebody".
    """
    if actor.startswith(CLI):
        return f"{actor.removeprefix(CLI)} (on the server)"
    return _OTHERS.get(actor, f"@{actor}")


_OTHERS: Final = {
    "": "somebody",
    NAME: "Mergewright",
    API: "a program with the page token",
    PAGE: "somebody with the page token",
}


def duration(time: timedelta) -> str:
    """Return a duration in words, in its largest unit from minutes to days, rounded down."""
    seconds = int(time.total_seconds())
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if count := seconds // length:
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return "less than a minute"


def _asked(view: SessionView) -> str:
    """Return who requested changes, and with whom else conversations are unresolved."""
    objectors, pull = set(view.objectors), view.pull
    threads = view.open_threads if view.policy.threads_block else ()
    others = {thread.remarks[-1].author for thread in threads} - objectors
    parts = [f"changes were requested by {_people(objectors)}"] if objectors else []
    if pull is not None and pull.review is Review.CHANGES_REQUESTED and not objectors:
        parts.append("changes were requested in the review")
    parts += [f"unresolved conversations with {_people(others)}"] if others else []
    return "; ".join(parts)


def _people(names: set[str]) -> str:
    return ", ".join(f"@{name}" for name in sorted(names))


def blocked(error: str) -> str:
    """Say that the agent is blocked, and by which error. `error` is empty if it reports none."""
    return f"the agent is blocked: {error}" if error else _BLOCKED_SILENTLY


_BLOCKED_SILENTLY: Final = "the agent is blocked and reports no error message"


def _cleanup(view: SessionView) -> str:
    """Return what a session with the status `cleanup` waits for.

    This is the removal of the workspace if that action is pending, otherwise the program's end.
    """
    if any(key.kind is KeyKind.RELEASE for key in view.facts.pending):
        return "the session's workspace is being removed"
    return "the agent's program is being stopped"


def _activity(view: SessionView) -> str:
    """Return what the agent does, whether a new run follows, and why the session has no slot."""
    agent, waits = view.facts.agent, view.facts.waits
    if view.last_availability is Availability.BLOCKED:
        known = blocked(agent.error)
        return f"{known}; {waits}" if waits else known
    if view.is_chat and view.last_availability in _LISTENS:
        return f"the agent waits for a message in this chat; {waits}".removesuffix("; ")
    known = _explained(agent)
    if view.last_availability in RESTARTED:
        known += "; it will be started again"
    return f"{known}; {waits}" if waits else known


def _explained(agent: Agent) -> str:
    """Return what the agent does, with the evidence for it in parentheses."""
    words = _DOES.get(agent.activity)
    if agent.activity is Activity.EXITED or words is None:  # The evidence of an exit is plain.
        return agent.evidence or words or "the agent was started"
    return f"{words} ({agent.evidence})" if agent.evidence else words


_LISTENS: Final = (Availability.NONE, Availability.IDLE)
#: The availabilities after which a new run resumes the work.
RESTARTED: Final = (Availability.CRASHED, Availability.INTERRUPTED)
_DOES: Final = {
    Activity.ACTIVE: "the agent works",
    Activity.READY: "the agent ended its turn",
    Activity.IDLE: "the agent ended its turn",
    Activity.EXITED: "the agent's program ended",
}


def _pending(view: SessionView) -> str:
    if view.pending_checks:
        silent = [check for check in view.pending_checks if not check.reported]
        running = [check for check in view.pending_checks if check.reported]
        parts = [f"checks in progress: {names(running)}"] if running else []
        parts += [f"required checks that have not reported yet: {names(silent)}"] if silent else []
        return "; ".join(parts)
    if view.pull is not None and not view.pull.checks_complete:
        return "not all checks and reviews could be read from GitHub"
    return "GitHub did not say when the last push was, so checks may still start"


def _conversations(view: SessionView) -> str:
    """Return the unresolved conversations; branch rules on GitHub can make them block a merge."""
    threads = view.pull.threads if view.pull else ()
    where = [
        f"@{thread.remarks[0].author} on {thread.path}{f':{thread.line}' if thread.line else ''}"
        for thread in threads
        if not thread.resolved and thread.remarks
    ]
    return f"; unresolved conversations: {', '.join(where)}" if where else ""


def _ignored(view: SessionView) -> str:
    """Return why the approvals or the requester's `merge` command do not suffice as a review.

    The text says what is needed instead. It is empty if nothing has to be explained.
    """
    if view.approved:
        return ": GitHub requires another approval, such as a code owner's"
    said = [f"the approval of @{one}, who {why}, does not count" for one, why in view.ignored]
    why = "; ".join(said)
    if not why:
        command = view.merge_command
        if command is None or command.actor != view.facts.requester or ":" in command.actor:
            return ""  # A user of the command line approves nothing on GitHub.
        why = f"@{command.actor} requested this work and cannot approve it"
    if view.pull is not None and view.pull.review is _PENDING:
        return f": {why}; another approval is needed"
    return f": {why}; another approval is needed, or the setting `policy.require-review = false`"


def _barred(view: SessionView) -> str:
    why = barred(view)
    return f", but not by the bot: {why}" if why else ""


def _holds(view: SessionView) -> str:
    pull = view.pull
    return held_by(pull.title, pull.labels, view.policy) if pull else ""


def _failed(view: SessionView) -> str:
    """Return the failed checks, marking those that fail on the base branch too."""
    return ", ".join(
        f"{check.name} (also fails on the base branch)" if check.red_on_base else check.name
        for check in view.failed_checks
    )


NAMES: Final[Mapping[str, Callable[[SessionView], str]]] = {
    "number": lambda view: str(view.pull.number) if view.pull else "",
    "activity": _activity,
    "head": lambda view: short(view.pull.head) if view.pull else "",
    "failed": _failed,
    "held": lambda view: names(view.held_checks),
    "parent": lambda view: str(view.parent.number) if view.parent else "",
    "pending": _pending,
    "barred": _barred,
    "holds": _holds,
    "ignored": _ignored,
    "conversations": _conversations,
    "expected": lambda view: ", ".join(missing_checks(view)),
    "asked": _asked,
    "cleanup": _cleanup,
}


@cache
def _parts(template: str) -> tuple[str, ...]:
    """Split a template into texts and the names of placeholders, alternating, a text first."""
    return tuple(re.split(r"\{(\w+)\}", template))


def sentence(
    template: str, view: SessionView, why: str = "", blockers: Sequence[Blocker] = ()
) -> str:
    """Return a template with its placeholders filled in.

    `{why}` and `{blockers}` get the arguments of these names, and the others what `NAMES` says.
    """
    if "{" not in template:
        return template
    texts = _parts(template)
    if len(texts) == 3 and (fill := NAMES.get(texts[1])):  # As in nearly every decision.
        return texts[0] + fill(view) + texts[2]
    parts = list(texts)
    for place in range(1, len(parts), 2):
        name = parts[place]
        if name == "why":
            parts[place] = why
        elif name == "blockers":
            parts[place] = "; ".join(blocker.sentence for blocker in blockers)
        else:
            parts[place] = NAMES[name](view)
    return "".join(parts)
