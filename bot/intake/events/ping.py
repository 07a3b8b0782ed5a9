"""`ping`: GitHub tries a webhook that was just set up."""

from bot.intake.events.base import Outcome


def read(_body: bytes) -> Outcome:
    """Nothing to look at: that it arrived is all it says."""
    return Outcome()
