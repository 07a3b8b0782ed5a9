"""Finds labels, assignments and reopenings that trigger a session, and who caused them."""

from collections.abc import Container, Iterable, Mapping
from datetime import datetime

from bot.github.snapshots import IssueSnapshot, Labeling
from bot.github.write_access import WriteAccess
from bot.store import Session
from config.settings import ProjectSettings
from lifecycle.model.candidates import Candidate, Reopened
from lifecycle.model.facts import Frozen
from lifecycle.model.names import FREEZES


def triggers_of(project: ProjectSettings, agents: Iterable[str]) -> Mapping[str, str]:
    """Return the agent that each label or assignee requests.

    The keys are labels, and assignees as `@login`, in lower case.
    """
    label, assignee = project.label.lower(), project.assignee.removeprefix("@").lower()
    named = {f"{label}:{agent.lower()}": agent for agent in sorted(agents)}
    assigned = {f"@{assignee}": project.agent} if assignee else {}
    return {label: project.agent, **named, **assigned}


def has_any(labels: Iterable[str], wanted: Container[str]) -> bool:
    """Whether one of the labels, converted to lower case, is in `wanted`.

    `wanted` must be in lower case. GitHub treats `Bug` and `bug` as the same label.
    """
    return any(name.lower() in wanted for name in labels)


def last_labeling(reading: IssueSnapshot, wanted: Container[str]) -> Labeling | None:
    """Return the last known event, if any, that added a wanted label that is still set."""
    # GitHub's times are whole seconds; of two events in one second, the last one listed counts.
    events = sorted(reading.labelings, key=lambda event: event.at)
    last = {event.label.lower(): event for event in events if event.label.lower() in wanted}
    current = [event for event in events if event.added and last.get(event.label.lower()) is event]
    return current[-1] if current else None


def frozen_by_label(reading: IssueSnapshot, before: Frozen | None, now: datetime) -> Frozen | None:
    """Return the freeze that a label sets; None without such a label.

    Everybody who may set labels may freeze.

    If the timeline that was read lacks the event that added the label, returns `before`, the last
    known freeze; if that is None, returns a freeze by an unknown person at `now`.
    """
    if not has_any(reading.labels, {FREEZES}):
        return None
    labeling = last_labeling(reading, {FREEZES})
    if labeling is None:
        return before or Frozen(scope="session", by="", at=now)
    return Frozen(scope="session", by=labeling.actor, at=labeling.at)


def reopening(session: Session, reading: IssueSnapshot, people: WriteAccess) -> Candidate | None:
    """Return a candidate for the last reopening of an ended session's issue or pull request.

    None if the session has not ended or nobody ever reopened it. The caller checks that the
    reopening is new. Raises `GitHubFailure` if the permission cannot be read.
    """
    opened = reading.reopened
    if session.ended is None or opened is None:
        return None
    number = reading.issue.number
    return Candidate(
        project=session.project,
        repository=session.repository,
        number=session.issue.number,
        trigger=Reopened(actor=opened.actor, at=opened.at, number=number),
        allowed=people.may_command(session.repository, opened.actor, fresh=True),
        session=session.id,
    )
