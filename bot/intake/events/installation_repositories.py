"""`installation_repositories`: the App may see more repositories, or fewer."""

import msgspec
from msgspec import Struct

from bot.intake.events.base import Outcome, Repository


class _Payload(Struct, frozen=True):
    repositories_added: tuple[Repository, ...]


def read(body: bytes) -> Outcome:
    """Look at our rights, and over what was added; what was taken away cannot be read any more."""
    payload = msgspec.json.decode(body, type=_Payload)
    added = tuple(one.refresh_whole() for one in payload.repositories_added)
    return Outcome(refreshes=added, rights=True)
