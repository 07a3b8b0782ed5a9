"""`installation`: the App was installed, removed, suspended, or given other permissions."""

import msgspec
from msgspec import Struct

from bot.intake.events.base import Outcome, Repository

#: After these nothing can be read any more: looking would only be refused.
_GONE = frozenset({"deleted", "suspend"})


class _Payload(Struct, frozen=True):
    action: str
    #: GitHub lists them when the App is installed, and not when it may speak again.
    repositories: tuple[Repository, ...] = ()


def read(body: bytes) -> Outcome:
    """Look at our rights, and over the repositories that can be read now."""
    payload = msgspec.json.decode(body, type=_Payload)
    if payload.action in _GONE:
        return Outcome(rights=True)
    return Outcome(
        refreshes=tuple(one.refresh_whole() for one in payload.repositories), rights=True
    )
