"""The runs of this machine: a runtime for the processes, an adapter for each agent's files."""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from lifecycle.model.status import Probe
from runtimes import supervised
from runtimes.agents.base import AgentAdapter, Reader, RunFiles
from runtimes.agents.shared.dialogs import AnswerStep, Dialog
from runtimes.base import Handle, Launch, Press, Runtime, RuntimeFailure, Seen, Send
from runtimes.host import (
    Look,
    OpenDialog,
    RunQuery,
    RunReading,
    RunRef,
    StartSpec,
    Unreadable,
    UnsentInput,
    run_name,
)
from runtimes.workspaces.worktree import WorktreeHead

log = logging.getLogger(__name__)

_UNKNOWN: Final = Seen(runtime=Probe.UNKNOWN, program=Probe.UNKNOWN)
_MISSING: Final = Seen(runtime=Probe.DEAD, program=Probe.DEAD)
#: Without a sign at the terminal, files are read again after this time, or up to twice as long.
_AGAIN = timedelta(seconds=60)
#: Runtimes give the time of the last output in whole seconds: what came just after counts too.
_OUTPUT_TICK = timedelta(seconds=2)
#: A run that nobody asks for is forgotten after this time.
_FORGOTTEN = timedelta(hours=1)


class _Watched(Struct, kw_only=True):
    """The state of a run that is kept between two looks."""

    run: int
    reader: Reader
    head: WorktreeHead
    asked_at: datetime
    seen: Seen | None = None  #: What its files were last read with; None: read them at once.
    read_at: datetime
    again_at: datetime


class LocalRuns:
    """See `runtimes.host.Runs`. Each look continues where the last one stopped reading."""

    def __init__(
        self,
        runtime: Runtime,
        adapters: Mapping[str, AgentAdapter],
        files_of: Callable[[RunRef], RunFiles],
        head_of: Callable[[str, str], WorktreeHead],
    ) -> None:
        """`head_of` is given a session and its branch."""
        self._runtime = runtime
        self._adapters = adapters
        self._files_of = files_of
        self._head_of = head_of
        self._watched: dict[str, _Watched] = {}  # By session.
        self._unreadable: set[str] = set()
        self._lock = threading.Lock()

    def look(self, queries: Sequence[RunQuery], now: datetime) -> Look:
        """One call of the runtime, one more for the screens that are needed, and new lines."""
        with self._lock:
            for session, watched in list(self._watched.items()):
                if now - watched.asked_at > _FORGOTTEN:
                    del self._watched[session]
            failure, found = "", dict[Handle, Seen]()
            try:
                found = dict(self._runtime.look())
            except RuntimeFailure as failed:
                failure = str(failed)
            probes: dict[str, Seen] = {}
            news: list[tuple[RunQuery, _Watched, Seen]] = []
            for query in queries:
                seen = found.get(self._runtime.handle(query.run.name), _MISSING)
                if seen is not _MISSING:
                    probes[query.run.name] = seen
                elif not query.alive:
                    continue
                if seen.program is Probe.DEAD and seen.exit is None and query.alive:
                    seen = _UNKNOWN  # Without a proof the caller decides what it means.
                try:
                    watched = self._watch(query.run, now)
                except Exception:
                    if self._fails_first(query.run.session):
                        log.exception("%s: its agent could not be read", query.run.session)
                    continue
                if not (query.unchanged and _is_quiet(watched, seen, now)):
                    news.append((query, watched, seen))
            screens = self._screens([query.run for query, _, _ in news])
            readings = {}
            for place, (query, watched, seen) in enumerate(news):
                screen = screens.get(self._runtime.handle(query.run.name))
                if reading := self._read(query, watched, seen, screen, now):
                    readings[query.run.name] = reading
                    watched.seen, watched.read_at = seen, now
                    # Spread out, so that runs which were first read together are not read so again.
                    watched.again_at = now + _AGAIN * (1 + place / len(news))
            return Look(probes=probes, readings=readings, failure=failure)

    def running(self) -> Collection[str]:
        """See `Runs.running`."""
        return list(self._runtime.look())

    def resumes(self, run: RunRef, conversation: str) -> bool:
        """Ask the run's adapter, which looks for the conversation's file."""
        adapter, files = self._adapters[run.agent_type], self._files_of(run)
        if not conversation or not adapter.remembers:
            return False
        files.dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return adapter.prepare(files, "", conversation).native_id == conversation

    def start(self, run: RunRef, spec: StartSpec) -> str:
        """See `Runs.start`."""
        files = self._files_of(run)
        files.dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        adapter = self._adapters[run.agent_type]
        command = adapter.prepare(files, spec.prompt, spec.resume, spec.limits)
        launch = Launch(
            name=run.name,
            argv=_bootstrapped(spec.bootstrap, command.argv),
            cwd=files.workspace,
            env=command.env,
            dir=files.dir,
        )
        self._runtime.start(launch)
        return command.native_id

    def send(self, run: RunRef, text: str, key: str) -> None:
        """See `Runs.send`."""
        adapter, handle = self._adapters[run.agent_type], self._runtime.handle(run.name)
        if words := adapter.unsent_text(self.screen(run)):
            raise UnsentInput(words)
        send = Send(text=text, key=key, submit_seconds=adapter.submit_seconds)
        self._runtime.send(handle, send)

    def dialog(self, run: RunRef, answer: str = "") -> OpenDialog | None:
        """See `Runs.dialog`."""
        found = self._dialog(run)
        if found is None:
            return None
        accepts = bool(answer) and found.step(answer) is not None
        name = _digest(found.id) if found.id else ""
        return OpenDialog(id=name, state=_digest(found.state), accepts=accepts)

    def answer(self, run: RunRef, dialog: OpenDialog, answer: str, key: str) -> bool:
        """See `Runs.answer`."""
        found = self._dialog(run)
        if found is None or (_digest(found.id), _digest(found.state)) != (dialog.id, dialog.state):
            return False
        step = found.step(answer)
        if step is None:
            return False
        pause = self._adapters[run.agent_type].submit_seconds
        try:
            handle = self._runtime.handle(run.name)
            take(self._runtime, handle, step, f"{key}:{dialog.state}", pause)
        except OSError as failure:
            raise Unreadable(str(failure)) from failure
        return True

    def screen(self, run: RunRef) -> str:
        """See `Runs.screen`."""
        handle = self._runtime.handle(run.name)
        return self._runtime.screens([handle]).get(handle, "")

    def output(self, session: str, run: int) -> str:
        """See `Runs.output`."""
        return supervised.tail(self._files_of(_named(session, run)).output)

    def attach(self, session: str, run: int) -> tuple[str, ...]:
        """See `Runs.attach`."""
        return self._runtime.attach(self._runtime.handle(run_name(session, run)))

    def stop(self, name: str, grace_seconds: float = 5.0) -> None:
        """See `Runs.stop`."""
        self._runtime.stop(self._runtime.handle(name), grace_seconds)

    def _watch(self, run: RunRef, now: datetime) -> _Watched:
        watched = self._watched.get(run.session)
        if watched is None or watched.run != run.run:
            watched = self._watched[run.session] = _Watched(
                run=run.run,
                reader=self._adapters[run.agent_type].reader(self._files_of(run)),
                head=self._head_of(run.session, run.branch),
                asked_at=now,
                read_at=now,
                again_at=now,
            )
        watched.asked_at = now
        return watched

    def _screens(self, runs: Sequence[RunRef]) -> Mapping[Handle, str]:
        curious = [run for run in runs if self._adapters[run.agent_type].wants_screen]
        try:
            handles = [self._runtime.handle(run.name) for run in curious]
            return self._runtime.screens(handles) if handles else {}
        except RuntimeFailure as failure:
            log.warning("no terminal could be read: %s", failure)
            return {}

    def _read(
        self, query: RunQuery, watched: _Watched, seen: Seen, screen: str | None, now: datetime
    ) -> RunReading | None:
        """Read one run. A failure is logged, so that the other runs are still read."""
        session = query.run.session
        try:
            agent = watched.reader.read(seen, screen, now)
            reading = RunReading(
                agent=agent,
                head=watched.head.commit(),
                received=frozenset(filter(watched.reader.received, query.awaiting)),
            )
        except Exception:
            if self._fails_first(session):
                log.exception("%s: its agent could not be read", session)
            watched.seen = None
            return None
        self._unreadable.discard(session)
        return reading

    def _fails_first(self, session: str) -> bool:
        """Note that a session cannot be read; returns whether that is new."""
        known = session in self._unreadable
        self._unreadable.add(session)
        return not known

    def _dialog(self, run: RunRef) -> Dialog | None:
        handle = self._runtime.handle(run.name)
        screen = self._runtime.screens([handle]).get(handle)
        if screen is None:
            raise Unreadable("its terminal cannot be read")
        try:
            return self._adapters[run.agent_type].dialog(self._files_of(run), screen)
        except OSError as failure:
            raise Unreadable(str(failure)) from failure


def take(runtime: Runtime, handle: Handle, step: AnswerStep, key: str, pause: float) -> None:
    """Take one step of an answer, once for each key.

    `pause` is what the program needs before a paste and before Enter, in seconds. Raises `Gone`,
    and `OSError` where the program's port does not take it.
    """
    if step.request is not None:
        step.request()
    if step.keys:
        runtime.press(handle, Press(keys=step.keys, key=f"{key}:keys"))
    if step.text:
        time.sleep(pause if step.keys else 0)
        runtime.send(handle, Send(text=step.text, key=key, submit_seconds=pause))


def _is_quiet(watched: _Watched, seen: Seen, now: datetime) -> bool:
    """Whether nothing can have changed: the terminal was inactive since the files were read."""
    return (
        watched.seen == seen
        and now < watched.again_at
        and (seen.output_at is None or seen.output_at + _OUTPUT_TICK < watched.read_at)
    )


def _bootstrapped(lines: tuple[str, ...], argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that runs the project's setup lines before the agent's command."""
    if not lines:
        return argv
    return ("/bin/sh", "-ec", "\n".join((*lines, 'exec "$@"')), "bootstrap", *argv)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _named(session: str, run: int) -> RunRef:
    return RunRef(session=session, run=run, agent_type="")
