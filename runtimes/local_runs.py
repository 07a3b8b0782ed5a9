"""The runs of this machine: a runtime for the processes, an adapter for each agent's files."""

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from msgspec import Struct

from lifecycle.model.status import Probe
from runtimes import supervised
from runtimes.agents.base import LaunchSpec, RunFiles
from runtimes.agents.shared.adapter import AgentAdapter
from runtimes.agents.shared.dialogs import AnswerStep, Dialog
from runtimes.agents.shared.reader import Reader
from runtimes.base import Launch, Runtime, RuntimeFailure, Seen
from runtimes.host import (
    Look,
    OpenDialog,
    Resources,
    RunQuery,
    RunReading,
    RunRef,
    StartSpec,
    Unreadable,
    UnsentInput,
)
from runtimes.isolation import ISOLATIONS
from runtimes.isolation.base import Sandbox
from runtimes.isolation.programs import program_files
from runtimes.resources import resources_of
from runtimes.workspaces.refs import Tip, branch_tip

log = logging.getLogger(__name__)

_UNKNOWN: Final = Seen(runtime=Probe.UNKNOWN, program=Probe.UNKNOWN)
_MISSING: Final = Seen(runtime=Probe.DEAD, program=Probe.DEAD)
#: Without output at the terminal, files are read again after one to two times this time.
_AGAIN = timedelta(seconds=60)
#: Runtimes may report the time of the last output in whole seconds, so output up to a second later
#: may have the same time.
_OUTPUT_TICK = timedelta(seconds=2)
#: A run that no query names is forgotten after this time.
_FORGOTTEN = timedelta(hours=1)


class _Watched(Struct, kw_only=True):
    """The state of a run that is kept between two calls of `LocalRuns.look`."""

    run: int
    reader: Reader
    head: Tip
    asked_at: datetime
    seen: Seen | None = None  #: The probe at the last reading; if None, read at once.
    read_at: datetime
    again_at: datetime


@dataclass(eq=False)
class LocalRuns:
    """The runs of agents: processes, terminals, states.

    Every method may be called from any thread and repeated after a crash. If the runtime does not
    answer, the runs may still be running: the methods that use the runtime raise `Unavailable`,
    except `look`.
    """

    runtime: Runtime
    adapters: Mapping[str, AgentAdapter]  #: By agent type.
    files_of: Callable[[RunRef], RunFiles]  #: Returns the paths of a run's files.
    workspaces: Path  #: The folder of all workspaces.
    sessions: Path  #: The folder of all runs.

    def __post_init__(self) -> None:
        self._watched: dict[str, _Watched] = {}  # By session.
        self._unreadable: set[str] = set()
        #: The isolations to clean up after, with True once this host is known to use them.
        self._kinds = dict.fromkeys(ISOLATIONS, False)
        self._orphans_kept: dict[str, str] = {}  #: Why the last removal failed, by isolation.
        self._lock = threading.Lock()

    def look(self, queries: Sequence[RunQuery], now: datetime) -> Look:
        """Probe the runs in `queries`, and read what is new in their files and on their screens.

        Pass the queries of all sessions in one call, because each call makes the runtime probe all
        its runs. Files are read from where the previous call stopped reading. If the runtime does
        not answer, `Look.failure` has the error. Also removes what ended runs left behind, such as
        containers.
        """
        with self._lock:
            for session, watched in list(self._watched.items()):
                if now - watched.asked_at > _FORGOTTEN:
                    del self._watched[session]
            self._remove_orphans()
            failure, found = "", dict[str, Seen]()
            try:
                found = dict(self.runtime.look())
            except RuntimeFailure as failed:
                failure = str(failed)
            probes: dict[str, Seen] = {}
            news: list[tuple[RunQuery, _Watched, Seen]] = []
            for query in queries:
                seen = found.get(query.run.name, _MISSING)
                if seen is not _MISSING:
                    probes[query.run.name] = seen
                elif not query.alive:
                    continue
                if seen.program is Probe.DEAD and seen.exit is None and query.alive:
                    seen = _UNKNOWN  # Without a proof the caller decides what it means.
                with self._failures_logged(query.run.session):
                    watched = self._watch(query.run, now)
                    if not (query.unchanged and _is_quiet(watched, seen, now)):
                        news.append((query, watched, seen))
            screens = self._screens([query.run for query, _, _ in news])
            readings = {}
            for place, (query, watched, seen) in enumerate(news):
                name, session = query.run.name, query.run.session
                watched.seen = None
                with self._failures_logged(session):
                    readings[name] = RunReading(
                        agent=watched.reader.read(seen, screens.get(name), now),
                        head=watched.head.commit(),
                        received=frozenset(filter(watched.reader.received, query.awaiting)),
                    )
                    self._unreadable.discard(session)
                    watched.seen, watched.read_at = seen, now
                    # Spread out, so that runs which were first read together are not read so again.
                    watched.again_at = now + _AGAIN * (1 + place / len(news))
            return Look(probes=probes, readings=readings, failure=failure)

    def forget(self) -> None:
        """Have the next look read all files again, e.g. after the machine's clock has jumped."""
        with self._lock:
            self._watched.clear()

    def resumes(self, run: RunRef, conversation: str) -> bool:
        """Whether a run started with this conversation's id would resume it.

        Prepares the run's files, as `start` does.
        """
        adapter, files = self.adapters[run.agent_type], self.files_of(run)
        if not conversation or not adapter.remembers:
            return False
        files.dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        return adapter.prepare(files, "", conversation).native_id == conversation

    def start(self, run: RunRef, spec: StartSpec) -> str:
        """Start the program of a run in its session's workspace.

        Returns the agent's own ID of the conversation; empty if there is none yet. A run that was
        started before, or stopped, is not started again. Raises `RuntimeFailure`.
        """
        files = self.files_of(run)
        files.dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        adapter = self.adapters[run.agent_type]
        command = adapter.prepare(files, spec.prompt, spec.resume, spec.limits)
        hidden = [self.workspaces.parent]
        self._kinds[spec.isolation.kind] = True
        self.runtime.start(launch_of(run.name, files, adapter.command, command, spec, hidden))
        return command.native_id

    def send(self, run: RunRef, text: str, key: str) -> None:
        """Paste a message into the program's terminal and submit it, once for each key.

        Raises `UnsentInput` if the input box holds unsent text, and `Gone` if the program does not
        run.
        """
        adapter = self.adapters[run.agent_type]
        if words := adapter.unsent_text(self.screen(run)):
            raise UnsentInput(words)
        self.runtime.send(run.name, text, key, adapter.submit_seconds)

    def type(self, run: RunRef, keys: Sequence[str], paste: str = "") -> None:
        """Enter a person's input into the program's terminal: first the text `paste`, then `keys`.

        A repeated call types again. Raises `Gone` if the program does not run, and `Unavailable`.
        """
        pause = self.adapters[run.agent_type].submit_seconds
        if paste and keys and pause:
            self.runtime.type(run.name, (), paste)
            time.sleep(pause)
            paste = ""
        self.runtime.type(run.name, keys, paste)

    def is_isolated(self, run: RunRef) -> bool:
        """Whether the run was started in a sandbox; False if that is not recorded."""
        return supervised.contained(self.files_of(run).dir)

    def dialog(self, run: RunRef, answer: str = "") -> OpenDialog | None:
        """Return the dialog of a waiting program, and whether it accepts `answer`.

        The id is empty if no dialog is recognised. Returns None if the program takes answers as
        messages. Raises `Unreadable` if the screen, or the program's port, cannot be read.
        """
        found = self._dialog(run)
        if found is None:
            return None
        accepts = bool(answer) and found.step(answer) is not None
        name = _digest(found.id) if found.id else ""
        return OpenDialog(id=name, state=_digest(found.state), accepts=accepts)

    def answer(self, run: RunRef, dialog: OpenDialog, answer: str, key: str) -> bool:
        """Carry out the next step of an answer to a dialog; see `take` for a repeated call.

        Returns False, without doing anything, if another dialog or step is open by now, or if the
        dialog does not accept the answer. Raises `Gone` and `Unreadable`.
        """
        found = self._dialog(run)
        if found is None or (_digest(found.id), _digest(found.state)) != (dialog.id, dialog.state):
            return False
        step = found.step(answer)
        if step is None:
            return False
        pause = self.adapters[run.agent_type].submit_seconds
        try:
            take(self.runtime, run.name, step, f"{key}:{dialog.state}", pause)
        except OSError as failure:
            raise Unreadable(str(failure)) from failure
        return True

    def screen(self, run: RunRef) -> str:
        """Return the text that the run's terminal shows; empty if it has no terminal."""
        return self.runtime.screens([run.name]).get(run.name, "")

    def output(self, session: str, run: int) -> str:
        """Return the last lines that the program printed, as plain text; see `supervised.tail`."""
        return supervised.tail(self.files_of(RunRef(session=session, run=run)).output)

    def resources(self, session: str, run: int) -> Resources | None:
        """Return the memory and CPU time of a run; None if it has ended or cannot be measured."""
        return resources_of(self.files_of(RunRef(session=session, run=run)).dir)

    def _remove_orphans(self) -> None:
        """Remove what ended runs left behind, such as containers.

        The first call asks every container engine. Later calls ask only the engines that this
        installation is known to use, because the others may refuse access to the bot's user.
        """
        for kind in list(self._kinds):
            found = False
            try:
                found = ISOLATIONS[kind].remove_orphans(self.sessions)
                self._orphans_kept.pop(kind, None)
            except (RuntimeFailure, OSError) as failure:
                if self._kinds[kind] and self._orphans_kept.get(kind) != str(failure):
                    log.warning("%s", failure)
                self._orphans_kept[kind] = str(failure)
            if found:
                self._kinds[kind] = True
            elif not self._kinds[kind]:
                del self._kinds[kind]

    def _watch(self, run: RunRef, now: datetime) -> _Watched:
        watched = self._watched.get(run.session)
        if watched is None or watched.run != run.run:
            watched = self._watched[run.session] = _Watched(
                run=run.run,
                reader=self.adapters[run.agent_type].reader(self.files_of(run)),
                head=branch_tip(self.workspaces, run.session, run.branch),
                asked_at=now,
                read_at=now,
                again_at=now,
            )
        watched.asked_at = now
        return watched

    def _screens(self, runs: Sequence[RunRef]) -> Mapping[str, str]:
        curious = [run.name for run in runs if self.adapters[run.agent_type].wants_screen]
        try:
            return self.runtime.screens(curious, recent=True) if curious else {}
        except RuntimeFailure as failure:
            log.warning("no terminal could be read: %s", failure)
            return {}

    @contextmanager
    def _failures_logged(self, session: str) -> Iterator[None]:
        """Log a failure to read a session instead of raising it.

        Further failures of the session are not logged until a reading succeeds.
        """
        try:
            yield
        except Exception:
            if session not in self._unreadable:
                log.exception("%s: its agent could not be read", session)
            self._unreadable.add(session)

    def _dialog(self, run: RunRef) -> Dialog | None:
        screen = self.runtime.screens([run.name]).get(run.name)
        if screen is None:
            raise Unreadable("its terminal cannot be read")
        try:
            return self.adapters[run.agent_type].dialog(self.files_of(run), screen)
        except OSError as failure:
            raise Unreadable(str(failure)) from failure


def take(runtime: Runtime, name: str, step: AnswerStep, key: str, pause: float) -> None:
    """Carry out one step of an answer: call its request, or press its keys and enter its text.

    A repeated call with the same `key` presses and enters nothing again, but sends a request again.
    `pause` is the time in seconds that the program needs between keys and text, and before Enter.
    Raises `Gone`, and `OSError` if a request to the program's port fails.
    """
    if step.request is not None:
        step.request()
    if step.keys:
        runtime.press(name, step.keys, f"{key}:keys")
    if step.text:
        time.sleep(pause if step.keys else 0)
        runtime.send(name, step.text, key, pause)


def _is_quiet(watched: _Watched, seen: Seen, now: datetime) -> bool:
    """Whether the files need not be read: nothing changed, and the next reading is not due."""
    return (
        watched.seen == seen
        and now < watched.again_at
        and (seen.output_at is None or seen.output_at + _OUTPUT_TICK < watched.read_at)
    )


def launch_of(
    name: str,
    files: RunFiles,
    program: Sequence[str],
    command: LaunchSpec,
    spec: StartSpec,
    hidden: Sequence[Path],
) -> Launch:
    """Return the launch `name`, which runs `spec.bootstrap` and then `command` in isolation.

    `spec.isolation` describes the isolation. The sandbox shows the files of `program`, the agent's
    configured command, but no folders in `hidden`; see `program_files`. No path in the launch comes
    from a file that an agent can write. Raises `RuntimeFailure`.
    """
    argv = _bootstrapped(spec.bootstrap, command.argv)
    env = {**spec.isolation.env, **spec.env, **command.env}
    launch = Launch(name=name, argv=argv, cwd=files.workspace, env=env, dir=files.dir)
    path = env.get("PATH") or os.environ.get("PATH", os.defpath)
    programs = (*program_files(program, path, hidden=hidden), *command.reads)
    own = [files.workspace, files.repository, files.home, files.outputs]
    sandbox = Sandbox(
        writable=tuple(map(_real_parent, own)),
        readable=(_real_parent(files.inputs), *spec.isolation.readable, *programs),
        proxy=spec.isolation.proxy,
        limits=spec.isolation.limits,
        port=command.port,
        container=spec.isolation.container,
    )
    return ISOLATIONS[spec.isolation.kind].wrap(launch, sandbox)


def _bootstrapped(lines: tuple[str, ...], argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that runs the project's `bootstrap` lines before the agent's command.

    If a line fails, the command is not run, and the output says that a command of `bootstrap`
    failed, with its exit code but without the line. Otherwise people would see only an exit code
    that looks like the agent's.
    """
    if not lines:
        return argv
    # Without an apostrophe, because the script has the text in single quotes.
    failed = "A command of the setting bootstrap failed with exit code $?."
    script = (f"trap 'echo \"{failed}\"' EXIT", *lines, "trap - EXIT", 'exec "$@"')
    return ("/bin/sh", "-ec", "\n".join(script), "bootstrap", *argv)


def _real_parent(path: Path) -> Path:
    """Resolve links in all but the last part of a path; an operator may have made them."""
    return Path(os.path.realpath(path.parent), path.name)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
