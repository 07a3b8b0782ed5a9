"""`push`: a branch or a tag was moved, created or deleted."""

import msgspec
from msgspec import Struct

from bot.intake.events.base import Outcome, Repository

_BRANCH = "refs/heads/"


class _Payload(Struct, frozen=True):
    repository: Repository
    ref: str


def read(body: bytes) -> Outcome:
    """Look at the branch again; tags concern no session."""
    payload = msgspec.json.decode(body, type=_Payload)
    if not payload.ref.startswith(_BRANCH):
        return Outcome()
    return Outcome(refreshes=(payload.repository.refresh("branch", payload.ref[len(_BRANCH) :]),))
