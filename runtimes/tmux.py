"""Runs each program under a supervisor, in the only pane of a private tmux server of its own."""

import glob
import hashlib
import logging
import os
import re
import secrets
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from msgspec.structs import replace

from lifecycle.model.facts import Exit
from lifecycle.model.status import Probe
from lifecycle.model.times import from_seconds
from runtimes import supervised
from runtimes.base import Gone, Launch, Options, RuntimeFailure, Seen, Unavailable, printable
from runtimes.supervise import MARK
from runtimes.tmux_keys import presses
from runtimes.tmux_servers import TmuxServers, TmuxSessionAbsent

log = logging.getLogger(__name__)

_HERE = Path(__file__).parent
_LOOK = "#{pane_dead} #{window_activity} #{pane_dead_status} #{pane_dead_signal}"
_NAME = re.compile(r"[a-z0-9_-]+")
#: The most of a run's output that is kept, in blocks of 512 bytes: 1 GiB, as in the archive.
_LOG_BLOCKS = 2 * 1024**2
#: A screen without new output is captured again after this time.
_SAME_SECONDS = 30.0
_ENV = {"LANG": "C.UTF-8", "TERM": "screen-256color"}


class _Printed(NamedTuple):
    """The state of a program's log, which changes with all output until the log is full."""

    at: float  #: When it was written last, in seconds since 1970.
    size: int  #: In bytes.

    @property
    def full(self) -> bool:
        return self.size >= _LOG_BLOCKS * 512


class _Captured(NamedTuple):
    """The text of a terminal, and the state of its log just before the text was captured."""

    printed: _Printed
    until: float  #: When it must be captured again, by the monotonic clock.
    text: str


class Tmux:
    """The tmux runtime. Its folder has, for each run, a socket and a link to the run's own folder.

    Each run has its own server, because a program's output can make tmux use memory without limit:
    tmux 3.3a keeps all titles that are pushed (`CSI 22 t`), and every version keeps each
    combination of characters that was ever shown. A server that exceeds the limit in `tmux.sh`
    ends, and only its own run ends with it.

    The exit that tmux reports counts only if the supervisor has recorded none in the run's folder.
    """

    def __init__(self, options: Options) -> None:
        self._data = options.data.absolute()
        self._runs = self._data / "runs"
        self._servers = TmuxServers(self._data)
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._runs.mkdir(mode=0o700, exist_ok=True)
        self._env = {"PATH": options.path, **_ENV}
        self._exits: dict[str, Exit] = {}
        #: The supervisors that were found alive, by run. Their parent processes are tmux servers.
        self._living: dict[str, supervised.Living] = {}
        self._captured: dict[str, _Captured] = {}
        #: The runs for which `_asked` has had the server run another child.
        self._collected: set[str] = set()
        #: The runs with a killed supervisor of which no process is left.
        self._without_orphans: set[str] = set()

    def start(self, launch: Launch) -> None:
        """Start the program under its supervisor in a new tmux session; see `Runtime.start`."""
        if not _NAME.fullmatch(launch.name):
            raise RuntimeFailure(f"{launch.name!r} cannot name a run: use a-z, 0-9, _ and - only")
        folder = launch.dir.resolve()
        if supervised.spent(folder):
            return
        supervised.prepare(launch, {**self._env, **launch.env})
        with suppress(FileExistsError):
            (self._runs / launch.name).symlink_to(folder)
        # With the mark `stop` finds a supervisor that has not written its pid yet.
        session = ("-s", launch.name, "-e", f"{MARK}={folder}", "-c", "/")
        program = (sys.executable, "-I", "-S", str(_HERE / "supervise.py"), str(folder))
        # tmux finishes a command sequence before it reads a pane's output, so the log is complete.
        log_file, own = folder / "output.log", self._servers.socket(launch.name)
        log = (_HERE / "output.sh", log_file, own, launch.name, _LOG_BLOCKS)
        words = shlex.join(("exec", *map(str, log)))
        pipe = ("pipe-pane", "-t", f"={launch.name}:", words.replace("#", "##").replace("%", "%%"))
        try:
            self._servers.run(
                launch.name, "new-session", "-d", *session, "--", *program, ";", *pipe
            )
        except RuntimeFailure as failure:
            if "duplicate session" not in str(failure):
                raise

    def look(self) -> Mapping[str, Seen]:
        """Probe all runs by their supervisors' records and by their sockets; see `Runtime.look`.

        Asks tmux only about runs without a record of their start, ended runs without a recorded
        exit code or signal, and runs with a full log. Ends processes that outlived a killed
        supervisor: a test server would keep its port, for example, and a tool that still writes
        would disturb the next run in the same workspace.
        """
        try:
            known = [entry.name for entry in os.scandir(self._runs)]
        except OSError as error:
            raise Unavailable(f"{self._runs} cannot be read: {error.strerror}") from error
        found = {name: self._look(name) for name in known}
        looked = {name: seen for name, seen in found.items() if seen is not None}
        self._end_orphans(looked)
        return looked

    def _look(self, name: str) -> Seen | None:
        """Return the probe of one run; None if it was not started."""
        printed = _printed(self._log(name))
        full, at = (printed.full, from_seconds(printed.at)) if printed else (False, None)
        if not full and (known := self._living.get(name)) and supervised.lives(known):
            return Seen(runtime=Probe.ALIVE, program=Probe.ALIVE, output_at=at)
        run = self._runs / name
        # Read first: a server that answers afterwards was the supervisor's parent then.
        living = self._supervisor(run)
        end, started = self._record(name), supervised.started(run)
        # After `started` was read: a server answers before its run is recorded as started.
        runtime = Probe.ALIVE if self._servers.serve(name) else Probe.DEAD
        if not started and runtime is Probe.DEAD:
            return None
        unproved = not started or (end is not None and end.code is None and end.signal is None)
        if runtime is Probe.ALIVE and living:
            self._living[name] = living
        if runtime is Probe.ALIVE and (unproved or full) and not self._servers.hang(name):
            asked, at = self._asked(name, end)
            end = asked if unproved else end
        program = Probe.ALIVE if end is None else Probe.DEAD
        return Seen(runtime=runtime, program=program, exit=end, output_at=at)

    def send(self, name: str, text: str, key: str, submit_seconds: float = 0.0) -> None:
        """Paste and submit in one command sequence; see `Runtime.send`.

        The same sequence records the key as an option of the tmux session, so that either
        everything or nothing has been done if the bot is killed.
        """
        data = printable(text).encode(errors="replace")
        if not data:
            raise ValueError(f"nothing to send to {name}: the message is empty")
        buffer, enter = f"mergewright_{_short(name, key)}", f"send-keys -t ={name}: Enter"
        if submit_seconds:  # The server waits, so that Enter follows even if the bot is killed.
            later = f"{enter} ; wait-for -S {buffer}"
            enter = f"run-shell -b -d {submit_seconds:.3f} -C '{later}' ; wait-for {buffer}"
        paste = f"paste-buffer -p -d -b {buffer} -t ={name}: ; {enter}"
        with self._file(self._runs / name, data) as path:
            load = ("load-buffer", "-b", buffer, path.replace("#", "##"), ";")
            self._once(name, key, *load, do=paste, otherwise=f"delete-buffer -b {buffer}")

    def press(self, name: str, keys: Sequence[str], key: str) -> None:
        """Press `keys`, unless an earlier call with the same `key` did; see `Runtime.press`."""
        self._once(name, key, do=f"send-keys -t ={name}: {shlex.join(keys)}")

    def type(self, name: str, keys: Sequence[str], paste: str = "") -> None:
        """Paste and press in one command sequence; see `Runtime.type`."""
        target, data = f"={name}:", printable(paste).encode(errors="replace")
        commands = [*presses(target, keys)]
        with self._file(self._runs / name, data) as path:
            if data:
                buffer = f"mergewright_{secrets.token_hex(8)}"
                commands.insert(0, f"paste-buffer -p -d -b {buffer} -t {target}")
                commands.insert(
                    0, f"load-buffer -b {buffer} {shlex.quote(path.replace('#', '##'))}"
                )
            self._if_running(name, (), "#{pane_dead}", commands)

    def _once(self, name: str, key: str, *first: str, do: str, otherwise: str = "") -> None:
        """Run the tmux commands `first`, and then `do`, but `do` only once for each `key`.

        If `do` has already run with this `key`, or if the program has ended, `otherwise` runs in
        place of `do`. Raises `Gone` if the program has ended, and, without running anything, if the
        run has no tmux session.
        """
        mark = f"@mergewright_sent_{_short(name, key)}"
        done, do = f"#{{||:#{{pane_dead}},#{{{mark}}}}}", f"set-option -t ={name}: {mark} 1 ; {do}"
        self._if_running(name, first, done, [do], otherwise)

    def _if_running(
        self, name: str, first: Sequence[str], done: str, do: Sequence[str], otherwise: str = ""
    ) -> None:
        """Run the tmux commands `first`, and then `otherwise` if `done` is true, or else `do`.

        `done` is a condition as a tmux format. It must be true if the program has ended. If the
        program has ended, `Gone` is raised after `otherwise`. If the run has no tmux session,
        `Gone` is raised, and no command runs.

        `do` is passed in a file, because it may hold a password. The file is removed when this
        process gives up, so a server that hung meanwhile types nothing late.
        """
        target = f"={name}:"
        exists = ("has-session", "-t", f"={name}", ";")
        state = ("display-message", "-p", "-t", target, "#{pane_dead}")
        with self._file(self._runs / name, " ; ".join(do).encode()) as script:
            source = shlex.join(("source-file", glob.escape(script)))
            check = ("if-shell", "-F", "-t", target, done, otherwise, source)
            try:
                printed = self._servers.run(name, *exists, *first, *state, ";", *check)
            except TmuxSessionAbsent as absent:
                raise Gone(f"{name} does not run any more: {absent}") from None
        if printed != ["0"]:
            raise Gone(f"the program of {name} has ended")

    def screens(
        self, names: Iterable[str], *, coloured: bool = False, recent: bool = False
    ) -> Mapping[str, str]:
        """Capture the terminals; see `Runtime.screens`.

        With `recent` and without `coloured`, a captured text is used for 30 seconds, or until the
        log has new output. Meanwhile the terminal may have changed: a person may have changed its
        size, and the log lags behind the terminal, or misses output while the disk is full.
        """
        capture = ("capture-pane", *(("-e",) if coloured else ()), "-p")
        found: dict[str, str] = {}
        failed: Unavailable | None = None
        for name in names:
            # Read before the capture: tmux shows output before it writes it to the log.
            printed = _printed(self._log(name))
            known = self._captured.get(name) if recent and not coloured else None
            if known and known.printed == printed and monotonic() < known.until:
                found[name] = known.text
                continue
            if recent and self._servers.hang(name):
                continue
            try:
                found[name] = "\n".join(
                    self._servers.run(name, *capture, "-t", f"={name}:")
                ).rstrip()
            except TmuxSessionAbsent:
                continue
            except Unavailable as failure:
                failed = failure
                continue
            if printed and not coloured and not printed.full:
                until = monotonic() + _SAME_SECONDS
                self._captured[name] = _Captured(printed, until, found[name])
        if failed and not found:
            raise failed
        return found

    def stop(self, name: str, grace_seconds: float = 5.0) -> None:
        """End the run's processes, then its tmux session; see `Runtime.stop`."""
        run = self._runs / name
        if run.is_dir():
            supervised.end(run, grace_seconds)
        self._servers.end(name)
        if run.is_dir():  # Again, for a supervisor that was starting the first time.
            supervised.end(run, grace_seconds)
        run.unlink(missing_ok=True)
        self._collected.discard(name)
        for known in (self._exits, self._living, self._captured):
            known.pop(name, None)

    def attach(self, name: str) -> tuple[str, ...]:
        """Return the tmux command that opens the program's terminal; `C-b d` detaches."""
        server = str(self._servers.socket(name))
        return ("tmux", "-u", "-S", server, "attach-session", "-t", f"={name}")

    def _asked(self, name: str, end: Exit | None) -> tuple[Exit | None, datetime | None]:
        """Ask tmux how a run ended and when it last printed; return both, None if unknown.

        `end` is the exit that was read from the run's folder, or None. If the program still runs or
        tmux has no session of the run, `end` is returned unchanged. Otherwise the exit is read
        again, and gets its code or signal from tmux if the supervisor has recorded neither.

        On a busy machine, tmux 3.3a misses one exit in fifty until another child of its server
        exits (measured). So if tmux has no code for an ended program, the server is made to run
        another child, and a later call gets the code.
        """
        try:
            lines = self._servers.run(name, "list-panes", "-t", f"={name}:", "-F", _LOOK)
        except TmuxSessionAbsent:
            return end, None
        dead, active, code, killed = lines[0].split(" ")
        at = from_seconds(int(active))
        # A process that exits closes its terminal first, and is found in /proc a little longer.
        if dead == "1" and not self._supervisor(self._runs / name):
            end = self._record(name) or Exit(at=at)  # Without one, the supervisor could not start.
            if end.code is None and end.signal is None:
                if not code and not killed and name not in self._collected:
                    self._collected.add(name)  # Before 3.3, tmux never names a signal.
                    self._servers.run(name, "run-shell", "-b", "true")
                number = int(killed) if killed else None  # On Linux tmux names no signals.
                end = replace(end, code=int(code) if code else None, signal=number)
        return end, at

    def _end_orphans(self, looked: Mapping[str, Seen]) -> None:
        """End processes that outlived killed supervisors, and remove their control groups."""
        lost = {
            name: self._runs / name
            for name, seen in looked.items()
            if seen.exit is not None and seen.exit.lost == supervised.VANISHED
        }
        self._without_orphans &= lost.keys()
        doubtful = {name: run for name, run in lost.items() if name not in self._without_orphans}
        try:
            found = supervised.end_orphans(doubtful.values())
        except OSError as error:
            log.warning("could not look for processes without a supervisor: %s", error)
            return
        for name, run in doubtful.items():
            if run in found:
                log.warning("%s: ended processes that outlived their supervisor", name)
            elif supervised.remove_groups(run):
                self._without_orphans.add(name)

    def _record(self, name: str) -> Exit | None:
        """Return the run's `supervised.outcome`, or None; cached, as an outcome never changes.

        Raises `Unavailable` if a fault of the machine prevents reading the record.
        """
        with self._readable():
            if name not in self._exits and (end := supervised.outcome(self._runs / name)):
                self._exits[name] = end
        return self._exits.get(name)

    def _supervisor(self, run: Path) -> supervised.Living | None:
        with self._readable():
            return supervised.living(run)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Convert a fault of the machine, which says nothing about a run, to `Unavailable`."""
        try:
            yield
        except OSError as error:
            raise Unavailable(f"runs in {self._runs} cannot be read: {error.strerror}") from error

    def _log(self, name: str) -> str:
        """Return the path of a run's output as text, which costs less than a `Path`."""
        return f"{self._runs}/{name}/output.log"

    @contextmanager
    def _file(self, folder: Path, text: bytes) -> Iterator[str]:
        """Yield the path of a temporary file with a text that may be too long for an argument."""
        if not folder.is_dir():
            raise Gone(f"{folder.name} is not a run of {self._data}")
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(text)
            file.flush()
            yield file.name


def _short(name: str, key: str) -> str:
    """Return a short hash of a run's name and `key`, the ID of an input that is sent only once."""
    return hashlib.sha256(f"{name} {key}".encode()).hexdigest()[:16]


def _printed(log: str) -> _Printed | None:
    """Return the state of a program's log; None if there is no readable log."""
    try:
        found = os.stat(log)  # noqa: PTH116 - a path object for each run costs more than the call
    except OSError:
        return None
    return _Printed(found.st_mtime, found.st_size)
