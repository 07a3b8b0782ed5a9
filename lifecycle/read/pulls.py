"""Queries about a session's pull requests that need no other facts."""

from collections.abc import Sequence
from typing import Final

from lifecycle.model import keys
from lifecycle.model.facts import Pull
from lifecycle.model.key import Key
from lifecycle.model.status import PullState

_WEIGHT: Final = (PullState.CLOSED, PullState.MERGED, PullState.OPEN)


def landing_key(pull: Pull) -> Key:
    """Return the key of the head's merge; each removal from the merge queue leads to a new key."""
    return keys.merge(pull.head, pull.dequeued.at if pull.dequeued else None)


def foremost(pulls: Sequence[Pull]) -> Pull | None:
    """Return the newest open pull request, else the newest merged, else the newest closed one.

    None if there are no pull requests.
    """
    if len(pulls) == 1:  # As in nearly every session.
        return pulls[0]
    return max(pulls, key=lambda one: (_WEIGHT.index(one.state), one.number), default=None)
