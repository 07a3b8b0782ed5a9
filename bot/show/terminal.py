"""The terminal, output and transcripts of sessions, for the pages and the API."""

import shlex
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from bot.show.run_log import LogPage, NoLog, log_page
from bot.show.transcripts import NoTranscript, Transcript, Transcripts
from bot.store import Store
from bot.system.locations import Locations
from bot.system.redaction import Redaction
from runtimes.agents.shared.messages import Message
from runtimes.host import output_of, run_name


class Terminal(Struct, frozen=True, kw_only=True):
    """Functions that return what a session shows; each takes the session's ID first."""

    attach: Callable[[str], str]  #: The command line that opens its terminal; empty: there is none.
    log: Callable[[str], str]  #: The last lines of its output.
    #: Lines that a run (0: the last) printed, from a place on (None: the last lines), at most so
    #: many. Raises `NoLog`.
    log_page: Callable[[str, int, int | None, int], LogPage]
    #: The messages of a run (0: the last), from a number on, at most so many.
    #: Raises `NoTranscript`.
    transcript: Callable[[str, int, int, int], list[Message]]
    #: The last messages of a run, at most so many, preceded by the number of the first.
    last: Callable[[str, int, int], tuple[int, list[Message]]]


def terminal(store: Store, locations: Locations, redact: Redaction) -> Terminal:
    """The functions over a store and its sessions' hosts."""
    transcripts = Transcripts(
        store, locations.host.records, locations.adapters, locations.paths.archive, redact
    )

    def attach(id: str) -> str:
        session = store.sessions.get(id)
        if session is None or not session.run or session.ended is not None:
            return ""
        return shlex.join(locations.host.runtime.attach(run_name(id, session.run)))

    def output(id: str) -> str:
        session = store.sessions.get(id)
        if session is None or not session.run:
            return ""
        return redact(locations.host.runs.output(id, session.run))

    def page(id: str, run: int, start: int | None, most: int) -> LogPage:
        session = store.sessions.get(id)
        number = run or (session.run if session else 0)
        records, name = locations.host.records, output_of(id, number)
        try:
            size = records.size(id, name)
        except FileNotFoundError:
            raise NoLog(f"{id} has no output in run {number}") from None
        over = session is None or session.ended is not None or number < session.run
        read = partial(records.read, id, name)
        return replace(log_page(read, size, start, most, redact, ended=over), run=number)

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

    return Terminal(attach=attach, log=output, log_page=page, transcript=transcript, last=last)
