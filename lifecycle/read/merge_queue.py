"""GitHub's merge queue: which head we asked it to land, and whether it put that one out again."""

from lifecycle.model import keys
from lifecycle.model.facts import Dequeued, Pull
from lifecycle.model.key import Key, KeyKind
from lifecycle.model.status import Merge
from lifecycle.read.moment import Moment

# Looked up once: a member of an enumeration costs a search each time it is named.
_QUEUED, _MERGE = Merge.QUEUED, KeyKind.MERGE


def landing_key(pull: Pull) -> Key:
    """The key of having a head merged; what the queue has put out is asked for under another."""
    return keys.merge(pull.head, pull.dequeued.at if pull.dequeued else None)


def called_off(moment: Moment) -> bool:
    """Whether a person has taken merging back, and nobody has said `merge` since."""
    merge, cancel = moment.command("merge"), moment.command("cancel")
    return cancel is not None and (merge is None or cancel.at > merge.at)


def dequeued(moment: Moment, pull: Pull) -> Dequeued | None:
    """That the queue put this head out after we had it queued, and nobody has said `merge` since.

    A head that was never queued by us is not the one that was put out; one that a person wanted
    out is no news.
    """
    if pull.dequeued is None or pull.merge is _QUEUED or called_off(moment):
        return None
    done, key = moment.facts.done, landing_key(pull)
    if key in done or not any(one.kind is _MERGE and one.cause[0] == pull.head for one in done):
        return None
    command = moment.command("merge")
    again = command is not None and command.head == pull.head and command.at > pull.dequeued.at
    return None if again else pull.dequeued
