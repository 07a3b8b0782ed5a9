"""`check_run`: one check was created, finished or rerun."""

import msgspec
from msgspec import Struct

from bot.intake.events.base import Checked, Outcome, Repository


class _Payload(Struct, frozen=True):
    repository: Repository
    check_run: Checked


def read(body: bytes) -> Outcome:
    """Look at the pull requests of the commit again."""
    payload = msgspec.json.decode(body, type=_Payload)
    return Outcome(refreshes=payload.check_run.refreshes(payload.repository))
