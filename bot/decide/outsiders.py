"""Notifies people without write access that their commands do not count, once for an issue."""

from collections.abc import Callable

from bot.store import Outsider, OutsidersTable
from bot.system.clock import Clock
from lifecycle.model import keys
from lifecycle.model.actions import Comment


def notify_outsiders(
    outsiders: OutsidersTable, is_silenced: Callable[[str], bool], clock: Clock
) -> int:
    """Add a comment for each recorded person to the outbox. Returns how many people were settled.

    People in a silenced repository are settled without a comment.
    """
    recorded = outsiders.unnotified()
    for one in recorded:
        actions = () if is_silenced(one.repository) else (_comment(one),)
        outsiders.settle(one, actions, clock())
    return len(recorded)


def _comment(one: Outsider) -> Comment:
    return Comment(
        key=keys.outsider(one.issue, one.login),
        number=one.number,
        topic="outsider",
        values={"login": one.login},
    )
