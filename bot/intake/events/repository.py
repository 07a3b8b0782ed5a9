"""`repository`: a repository was renamed, transferred, archived, ..."""

import msgspec
from msgspec import Struct

from bot.intake.events.base import Outcome, Repository

#: A repository that is new has nothing in it yet, and one that is deleted nothing any more.
_EMPTY = frozenset({"created", "deleted"})


class _Payload(Struct, frozen=True):
    action: str
    repository: Repository


def read(body: bytes) -> Outcome:
    """Look where it is and whether it can be written to, and over all of it."""
    payload = msgspec.json.decode(body, type=_Payload)
    if payload.action in _EMPTY:
        return Outcome(rights=True)
    return Outcome(refreshes=(payload.repository.refresh_whole(),), rights=True)
