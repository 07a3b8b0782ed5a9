"""What labels say: which are on an issue or a pull request, and who put them there."""

from collections.abc import Container, Iterable
from datetime import datetime

from bot.github.snapshots import IssueReading, Labeling
from lifecycle.model.facts import Frozen
from lifecycle.model.names import FREEZES


def wears(labels: Iterable[str], triggers: Container[str]) -> bool:
    """Whether any of these is among the labels; for GitHub `Bug` and `bug` are one."""
    return any(name.lower() in triggers for name in labels)


def labelling(reading: IssueReading, triggers: Container[str]) -> Labeling | None:
    """Who last put one of these on that is on it still."""
    # Of two in one second, which is all that GitHub tells, the later in the timeline counts.
    events = sorted(reading.labelings, key=lambda event: event.at)
    last = {event.label.lower(): event for event in events if event.label.lower() in triggers}
    standing = [event for event in events if event.added and last.get(event.label.lower()) is event]
    return standing[-1] if standing else None


def frozen_by_label(reading: IssueReading, before: Frozen | None, now: datetime) -> Frozen | None:
    """Who stopped all effects by a label, which takes no more than the right to put one on.

    `before`: what was known of it, for a timeline that does not tell any more.
    """
    if not wears(reading.labels, {FREEZES}):
        return None
    put = labelling(reading, {FREEZES})
    if put is None:
        return before or Frozen(scope="session", by="", at=now)
    return Frozen(scope="session", by=put.actor, at=put.at)
