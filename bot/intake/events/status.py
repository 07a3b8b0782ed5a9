"""`status`: a commit status was set, the older way of reporting a check."""

import msgspec
from msgspec import Struct

from bot.intake.events.base import Outcome, Repository


class _Payload(Struct, frozen=True):
    repository: Repository
    sha: str


def read(body: bytes) -> Outcome:
    """Look at what stands at the commit again."""
    payload = msgspec.json.decode(body, type=_Payload)
    return Outcome(refreshes=(payload.repository.refresh("sha", payload.sha),))
