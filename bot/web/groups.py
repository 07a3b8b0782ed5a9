"""How the page shows statuses: in groups, the ones that want a person first, each with a tone."""

from collections.abc import Mapping

from msgspec import Struct

from bot.show.session_summary import SessionSummary
from lifecycle.model.status import Status


class StatusGroup(Struct, frozen=True, kw_only=True):
    """Statuses that are shown together, the ones that want a person first."""

    key: str
    title: str
    statuses: Mapping[Status, str]  #: Each with its tone, a class of the style sheet.


GROUPS = (
    StatusGroup(
        key="people",
        title="Needs a person",
        statuses={
            Status.NEEDS_INPUT: "warn",
            Status.STUCK: "bad",
            Status.PAUSED: "warn",
        },
    ),
    StatusGroup(
        key="review",
        title="In review",
        statuses={
            Status.CI_FAILED: "bad",
            Status.CHANGES_REQUESTED: "warn",
            Status.MERGEABLE: "good",
            Status.APPROVED: "good",
            Status.REVIEW_PENDING: "busy",
            Status.PR_OPEN: "busy",
        },
    ),
    StatusGroup(
        key="work",
        title="At work",
        statuses={
            Status.WORKING: "busy",
            Status.SPAWNING: "busy",
            Status.QUEUED: "calm",
        },
    ),
    StatusGroup(
        key="over",
        title="Finished",
        statuses={
            Status.CLEANUP: "calm",
            Status.MERGED: "landed",
            Status.DONE: "landed",
            Status.ERRORED: "bad",
            Status.KILLED: "calm",
            Status.TERMINATED: "calm",
        },
    ),
)
_GROUP_OF: Mapping[str, StatusGroup] = {
    status: group for group in GROUPS for status in group.statuses
}


def tone(status: str) -> str:
    """How a status looks, as a class of the style sheet."""
    return _GROUP_OF[status].statuses[Status(status)]


def group_of(row: SessionSummary) -> str:
    """The key of the group a session is shown in."""
    return _GROUP_OF[row.status].key


def sort_key(row: SessionSummary) -> str:
    """Newest first, as a word that a browser can compare."""
    return f"{row.created.timestamp():017.6f} {row.id}"
