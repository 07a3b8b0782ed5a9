"""The states of a session that programs and people can wait for."""

from typing import Literal

from bot.show.session_summary import SessionSummary
from lifecycle.model.status import Status

Goal = Literal["merged", "needs_input"]


def is_reached(session: SessionSummary, goal: Goal) -> bool:
    """Whether a session has reached the goal: it is merged, or it waits for a person."""
    return session.outcome == Status.MERGED if goal == "merged" else session.needs_person


def is_over(session: SessionSummary, goal: Goal) -> bool:
    """Whether to stop waiting: the goal is reached, or the session has ended without it."""
    return is_reached(session, goal) or bool(session.outcome)
