"""`check_suite`: all checks of one application on a commit finished."""

import msgspec
from msgspec import Struct

from bot.intake.events.base import Checked, Outcome, Repository


class _Payload(Struct, frozen=True):
    repository: Repository
    check_suite: Checked


def read(body: bytes) -> Outcome:
    """Look at the pull requests of the commit again."""
    payload = msgspec.json.decode(body, type=_Payload)
    return Outcome(refreshes=payload.check_suite.refreshes(payload.repository))
