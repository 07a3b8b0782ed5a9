"""The transcripts of runs, read from the session's host or from the archive."""

import tempfile
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from bot.archive.archiver import lay_out
from bot.store import Session, Store
from bot.system.redaction import Redaction
from lifecycle.model.text import plain
from runtimes.agents.shared.adapter import AgentAdapter
from runtimes.agents.shared.messages import Message
from runtimes.host import RunRef
from runtimes.local_records import LocalRecords

_AT_ONCE = 500  #: The messages that a host is asked for in one call.
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class NoTranscript(Exception):
    """A transcript cannot be read; the message says why."""


class Transcript:
    """The messages of one run, with secrets masked.

    Keeps a position in the conversation, so use it in one thread.
    """

    def __init__(
        self, records: LocalRecords, run: RunRef, begun: datetime, over: datetime, redact: Redaction
    ) -> None:
        """Select the messages from `begun` until before `over`, and all messages without a time."""
        self._records = records
        self._run = run
        self._begun = begun
        self._over = over
        self._redact = redact
        self._place = 0  #: The number of the next message in the conversation.

    def new(self) -> list[Message]:
        """Return the next messages in order, at most 500; empty if there are none yet."""
        while read := self._records.messages(self._run, self._place, _AT_ONCE):
            self._place += len(read)
            if found := [self._harmless(each) for each in read if self._is_of_run(each)]:
                return found
        return []

    def page(self, first: int, most: int) -> list[Message]:
        """Skip `first` messages from the current position on, and return at most `most` messages.

        For another page, use a new `Transcript`, because this method may read beyond the page.
        """
        return list(islice(self._all(), first, first + most))

    def last(self, most: int) -> tuple[int, list[Message]]:
        """Read on to the end; return the last `most` messages, preceded by the first one's number.

        Messages are numbered from 0 at the current position. If there are none, the number is 0.
        """
        kept = deque(enumerate(self._all()), maxlen=most)
        return (kept[0][0] if kept else 0), [message for _, message in kept]

    def _all(self) -> Iterator[Message]:
        while found := self.new():
            yield from found

    def _is_of_run(self, message: Message) -> bool:
        return message.at is None or self._begun <= message.at < self._over

    def _harmless(self, message: Message) -> Message:
        words = {name: plain(getattr(message, name)) for name in ("text", "tool", "model")}
        return self._redact(replace(message, **words))


class Transcripts:
    """Finds the transcripts of runs. Thread-safe."""

    def __init__(
        self,
        store: Store,
        records: LocalRecords,
        adapters: Mapping[str, AgentAdapter],
        archive: Path,
        redact: Redaction,
    ) -> None:
        """`archive` is the folder with the archives of all sessions."""
        self._store = store
        self._records = records
        self._adapters = adapters
        self._archive = archive
        self._redact = redact

    @contextmanager
    def of(self, session: Session, run: int) -> Iterator[Transcript]:
        """Open the transcript of a run. Raises `NoTranscript`."""
        if not session.run:
            raise NoTranscript(f"the agent of {session.id} has not started yet")
        if not 0 < run <= session.run:
            raise NoTranscript(f"{session.id} has no run {run}")
        kind = self._store.agents.type_of_run(session, run)
        if kind not in self._adapters:
            raise NoTranscript(
                f"[agent-types.{kind}] is no longer configured; the conversation needs it"
            )
        runs = self._store.outbox.run_starts(session.id)
        begun, over = runs.get(run, _FIRST), runs.get(run + 1, _LAST)
        ref = RunRef(session=session.id, run=run, agent_type=kind, branch=session.branch)
        with self._kept(ref) as records:
            yield Transcript(records, ref, begun, over, self._redact)

    @contextmanager
    def _kept(self, run: RunRef) -> Iterator[LocalRecords]:
        """Yield the run's records on its host or, if they are gone, in its unpacked archive."""
        archived = self._archive / run.session
        if self._records.files(run) or not archived.is_dir():
            yield self._records
            return
        with tempfile.TemporaryDirectory(prefix="mw-") as name:
            lay_out(archived, Path(name) / "sessions")
            yield LocalRecords(self._adapters, Path(name))
