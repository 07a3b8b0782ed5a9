"""`workflow_run`: a run of GitHub Actions was asked for, began or finished."""

import msgspec
from msgspec import Struct

from bot.intake.events.base import Checked, Outcome, Repository


class _Payload(Struct, frozen=True):
    repository: Repository
    workflow_run: Checked


def read(body: bytes) -> Outcome:
    """Look at the pull requests of the commit again."""
    payload = msgspec.json.decode(body, type=_Payload)
    return Outcome(refreshes=payload.workflow_run.refreshes(payload.repository))
