"""How a session's program is looked at from outside: its terminal, and what it printed."""

import shlex
from collections.abc import Callable
from contextlib import AbstractContextManager

from msgspec import Struct

from bot.show.transcripts import NoTranscript, Transcript, Transcripts
from bot.store import Store
from bot.system.locations import Locations
from bot.system.redaction import Redaction
from runtimes.agents.shared.messages import Message


class Terminal(Struct, frozen=True, kw_only=True):
    """How the pages learn of a session's program; each is given the session's id."""

    attach: Callable[[str], str]  #: The command line to look at it; empty: there is none.
    log: Callable[[str], str]  #: The last lines it printed.
    #: What was said in a run (0: the last), from a message on, so many. Raises `NoTranscript`.
    transcript: Callable[[str, int, int, int], list[Message]]
    #: The last ones, at most so many, behind the place of the first. Raises `NoTranscript`.
    last: Callable[[str, int, int], tuple[int, list[Message]]]


def terminal(store: Store, locations: Locations, redact: Redaction) -> Terminal:
    """How the page shows a session's program."""
    transcripts = Transcripts(
        store, locations.host.records, locations.adapters, locations.paths.archive, redact
    )

    def attach(id: str) -> str:
        session = store.sessions.get(id)
        if session is None or not session.run or session.ended is not None:
            return ""
        return shlex.join(locations.host.runs.attach(id, session.run))

    def output(id: str) -> str:
        session = store.sessions.get(id)
        if session is None or not session.run:
            return ""
        return redact(locations.host.runs.output(id, session.run))

    def of(id: str, run: int) -> AbstractContextManager[Transcript]:
        session = store.sessions.get(id)
        if session is None:
            raise NoTranscript(f"there is no session {id}")
        return transcripts.of(session, run or session.run)

    def transcript(id: str, run: int, first: int, most: int) -> list[Message]:
        with of(id, run) as found:
            return found.page(first, most)

    def last(id: str, run: int, most: int) -> tuple[int, list[Message]]:
        with of(id, run) as found:
            return found.last(most)

    return Terminal(attach=attach, log=output, transcript=transcript, last=last)
