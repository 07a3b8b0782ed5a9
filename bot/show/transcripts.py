"""What was said in a run, wherever it is kept: in the session's home, or in the archive."""

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
from bot.system.paths import Paths, run_name
from bot.system.redaction import Redaction
from lifecycle.model.text import plain
from runtimes.agents.base import AgentAdapter, RunFiles
from runtimes.agents.shared.messages import Message, Messages

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class NoTranscript(Exception):
    """There is none; the message says why."""


class Transcript:
    """The messages of one run without secrets; remembers how far it read. For one thread."""

    def __init__(
        self, messages: Messages, begun: datetime, over: datetime, redact: Redaction
    ) -> None:
        """Those of a conversation from `begun` on until it was `over`; what tells no time, too."""
        self._messages = messages
        self._begun = begun
        self._over = over
        self._redact = redact

    def new(self) -> list[Message]:
        """Those since the last call, in order, but not too many at once; empty: that was all."""
        while read := self._messages.new():
            if found := [self._harmless(each) for each in read if self._is_of_run(each)]:
                return found
        return []

    def page(self, first: int, most: int) -> list[Message]:
        """At most so many, from a place on; the first message of the run has place 0."""
        return list(islice(self._all(), first, first + most))

    def last(self, most: int) -> tuple[int, list[Message]]:
        """The last of them, at most so many, behind the place of the first of these."""
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
    """Finds them. May be used from any thread."""

    def __init__(
        self, store: Store, paths: Paths, programs: Mapping[str, AgentAdapter], redact: Redaction
    ) -> None:
        self._store = store
        self._paths = paths
        self._programs = programs
        self._redact = redact

    @contextmanager
    def of(self, session: Session, run: int) -> Iterator[Transcript]:
        """The transcript of a run. Raises `NoTranscript`."""
        if not 0 < run <= session.run:
            raise NoTranscript(f"{session.id} has no run {run}")
        kind = self._store.agents.type_of_run(session, run)
        program = self._programs.get(kind)
        if program is None:
            raise NoTranscript(f"no [agent-types.{kind}] is configured any more")
        runs = self._store.outbox.run_starts(session.id)
        begun, over = runs.get(run, _FIRST), runs.get(run + 1, _LAST)
        with self._kept(session, run, program) as files:
            yield Transcript(program.messages(files), begun, over, self._redact)

    @contextmanager
    def _kept(self, session: Session, run: int, program: AgentAdapter) -> Iterator[RunFiles]:
        """The files of a run, with its session's home: as they are, or as they were archived."""
        files = _files(session, run, self._paths.sessions)
        archived = self._paths.archive / session.id
        if any(path.exists() for path in program.records(files)) or not archived.is_dir():
            yield files
            return
        with tempfile.TemporaryDirectory(prefix="mw-") as folder:
            lay_out(archived, Path(folder))
            yield _files(session, run, Path(folder))


def _files(session: Session, run: int, sessions: Path) -> RunFiles:
    return RunFiles(
        session=session.id,
        run=run,
        dir=sessions / run_name(session.id, run),
        workspace=Path(session.work.path),
        branch=session.branch,
    )
