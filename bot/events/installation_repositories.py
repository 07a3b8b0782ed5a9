"""`installation_repositories`: the App may see more repositories, or fewer."""

import msgspec
from msgspec import Struct

from bot.events.base import Outcome, Repository


class _Payload(Struct, frozen=True):
    repositories_added: tuple[Repository, ...]


def read(body: bytes) -> Outcome:
    """Look over the repositories that were added; those taken away cannot be read any more."""
    payload = msgspec.json.decode(body, type=_Payload)
    return Outcome(touches=tuple(one.touch_whole() for one in payload.repositories_added))
