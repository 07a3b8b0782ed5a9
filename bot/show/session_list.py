"""Lists of sessions for pages, the API and the command line."""

from typing import Final

from bot.show.session_summary import SessionSummary, summarize
from bot.store import SessionQuery, Store
from lifecycle.judge.capacity import Caps
from lifecycle.judge.reasons import needs_person
from lifecycle.model.status import Reason, Status

#: Each `STATUS REASON` with which a session waits for a person. An ended session does so only while
#: its issue is open.
WAITING: Final = frozenset(
    f"{status} {reason}"
    for status in Status
    for reason in ("", *Reason)
    if needs_person(status, reason)
)


def list_sessions(
    store: Store, query: SessionQuery, caps: Caps
) -> tuple[list[SessionSummary], str]:
    """Return a page of sessions, and the next page's cursor, which is empty on the last page.

    `caps`, the limits on running sessions, are needed to compute the positions of queued sessions.
    """
    page = store.session_list.page(query, WAITING)
    queued = {one.session: one for one in store.slots.queue(caps)}
    return [summarize(one, queued.get(one.id)) for one in page.sessions], page.cursor
