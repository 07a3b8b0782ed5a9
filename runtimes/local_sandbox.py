"""Sandboxes in which a person on this machine runs one command as an agent's program would run.

ROOT/NAME/lock       locked while the sandbox is used; folders that are not locked are removed
ROOT/NAME/origin.git the repository that the workspace is made from
ROOT/NAME/proxy      the folder of its proxy's socket
ROOT/NAME/sessions, ROOT/NAME/workspaces   as at a host (`runtimes.local_host`)
"""

import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Timer

from msgspec import Struct
from msgspec.structs import replace

from runtimes import supervised
from runtimes.agents.base import AgentType, LaunchSpec
from runtimes.agents.shared.adapter import begin_run
from runtimes.files import write_private
from runtimes.host import RunRef, StartSpec, WorkspaceOptions
from runtimes.isolation import ISOLATIONS
from runtimes.isolation.base import NOT_ISOLATED, PROXY_SOCKET
from runtimes.local_records import LocalRecords
from runtimes.local_runs import launch_of
from runtimes.supervise import MARK
from runtimes.workspaces import lfs
from runtimes.workspaces.env_files import place_env_files
from runtimes.workspaces.git import GitFailure, init
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.repositories import remove_tree
from runtimes.workspaces.submodules import LeftOut, Submodules
from runtimes.workspaces.worktree import Worktree

_RUN = RunRef(session="sandbox-1", run=1, branch="sandbox")
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")
#: Shows the folder, and allows Ctrl-Z again, which is off until a shell has job control.
_BASHRC = """PS1='[sandbox] \\W\\$ '
stty susp '^Z'
"""
_SHELL_ANYWAY = """trap 'echo "mergewright: the set-up failed with exit code $?;" \\
    "an agent would not start. This shell is where it stopped." >&2
trap - EXIT
exec "$@"' EXIT"""
_GRACE_SECONDS = 2.0
_CHUNK = 65_536


class SandboxEnd(Struct, frozen=True, kw_only=True):
    """How the set-up and the command of a sandbox ended."""

    code: int  #: The exit code; as in a shell, 128 + N if signal N ended the command.
    seconds: float  #: From the start of the set-up to the end of the command.
    #: The duration of the set-up. None if it failed: a command is then not started, but the shell
    #: for a person is.
    setup_seconds: float | None
    expired: bool  #: Whether the set-up or the command was ended at the time limit.
    memory_kills: int  #: How many processes were killed at the memory limit.


class LocalSandbox:
    """A sandbox for one command. `opened` makes it and removes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = LocalRecords({}, folder).run_files(_RUN)
        self.socket = folder / "proxy" / PROXY_SOCKET  #: Its proxy's UNIX socket.
        self._origin = folder / "origin.git"
        self.left_out: list[LeftOut] = []  #: Submodules that are not in the workspace.

    def make_workspace(
        self,
        mirror: Mirror,
        base: str,
        env_files: Mapping[str, str],
        options: WorkspaceOptions,
        submodules: Submodules,
    ) -> None:
        """Check out the branch `base` as it is at GitHub now, with the operator's `env_files`.

        Submodules and files of Git LFS are checked out as in an agent's workspace. `mirror` is the
        bot's mirror of the project. Its URL and password are used and, if its repository exists,
        the objects there. The mirror is not changed. Raises `GitFailure` and `OSError`.
        """
        lender = [mirror.path] if mirror.path.is_dir() else []
        init(self._origin, borrow=lender)
        own = Mirror(self._origin, mirror.url, mirror.password)
        own.refresh()
        root, isolation = self._folder / "workspaces", ISOLATIONS[NOT_ISOLATED.kind]
        made = Worktree(  # No agent has worked in it, so git needs no sandbox.
            root, _RUN.session, _RUN.branch, self._origin, lambda: isolation, options
        )
        prepare(own, made, base)
        place_env_files(made, env_files)
        self.left_out = submodules.fill(own, made)
        if most := options.lfs_max_mb:
            _fetch_lfs(own, made, most)
        copied = made.origin != self._origin
        self._lent = (made.origin,) if copied else (self._origin, *lender)

    def run(
        self,
        command: Sequence[str],
        agent: AgentType,
        program: Sequence[str],
        spec: StartSpec,
        *,
        hidden: Sequence[Path],
        on_output: Callable[[bytes], object] | None = None,
        seconds: float = 0.0,
    ) -> SandboxEnd:
        """Run the set-up and a command to their end; without a command, a shell for a person.

        Call `make_workspace` first. The command has the environment of an agent of the type
        `agent`, and sees the files that `program`, the agent's own command, needs; see
        `program_files` for `hidden`. The command uses this process's terminal. With `on_output`,
        the command has no input, and that function gets its output. The set-up and the command
        together are ended after `seconds`; 0 means no limit. Raises `RuntimeFailure`.
        """
        files = self._files
        _, _, env = begin_run(agent, files, "", "")
        ready = files.outputs / "ready"
        # The caller reports a failed set-up: see `SandboxEnd.setup_seconds`.
        first, argv = ["trap - EXIT"], tuple(command)
        if not argv:
            first, argv = [_SHELL_ANYWAY], (next(filter(os.path.exists, _SHELLS)), "-i")
            write_private(files.home / ".bashrc", _BASHRC)
        last = [f": >{shlex.quote(str(ready))}", "trap - EXIT"]
        isolation = spec.isolation
        spec = replace(
            spec,
            bootstrap=(*first, *spec.bootstrap, *last),
            isolation=replace(isolation, readable=(*isolation.readable, *self._lent)),
        )
        launch = launch_of(_RUN.name, files, program, LaunchSpec(argv=argv, env=env), spec, hidden)
        term, path = os.environ.get("TERM", "dumb"), os.environ.get("PATH", os.defpath)
        supervised.prepare(launch, {"PATH": path, "LANG": "C.UTF-8", "TERM": term, **launch.env})
        began, expired = time.time(), False

        def expire() -> None:
            nonlocal expired
            expired = True
            supervised.end(launch.dir, _GRACE_SECONDS)

        timer = Timer(seconds, expire)
        if seconds:
            timer.start()
        try:
            code = _supervise(launch.dir, path, on_output)
        finally:
            timer.cancel()
            supervised.end(launch.dir, _GRACE_SECONDS)
        set_up = None
        with suppress(OSError):
            set_up = max(0.0, ready.lstat().st_mtime - began)
        return SandboxEnd(
            code=code,
            seconds=time.time() - began,
            setup_seconds=set_up,
            expired=expired,
            memory_kills=supervised.memory_kills(launch.dir),
        )

    def end(self) -> None:
        """End the processes that still run in the sandbox. Raises `RuntimeFailure`."""
        if self._files.dir.is_dir():
            supervised.end(self._files.dir, _GRACE_SECONDS)


@contextmanager
def opened(root: Path) -> Iterator[LocalSandbox]:
    """Make a sandbox in the folder `root`, and remove it at the end with everything in it.

    First, sandboxes that a killed process left in `root` are removed.
    """
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    root = root.resolve()
    with ExitStack() as ends:
        with _locked(root / "lock"):
            for left in filter(Path.is_dir, root.iterdir()):
                with suppress(BlockingIOError), _locked(left / "lock", wait=False):
                    _remove(left)
            folder = Path(tempfile.mkdtemp(prefix="", dir=root))
            ends.enter_context(_locked(folder / "lock"))
        ends.callback(_remove, folder)
        (folder / "proxy").mkdir(mode=0o700)
        yield LocalSandbox(folder)


def _fetch_lfs(mirror: Mirror, workspace: Worktree, most_mb: int) -> None:
    """Write the files of Git LFS into a new workspace. Raises `GitFailure`."""
    if not lfs.uses_lfs(mirror, workspace.head() or ""):
        return
    if not shutil.which("git-lfs"):
        raise GitFailure("lfs", mirror.url, "git-lfs is missing", "install git-lfs")
    try:
        lfs.fetch(mirror, workspace, most_mb)
    except lfs.TooManyLfsFiles as large:
        words = f"the checkout has {large.megabytes} MB of Git LFS files"
        raise GitFailure(
            "lfs", mirror.url, words, f"raise lfs-max-mb, which is {most_mb}"
        ) from None


def _remove(folder: Path) -> None:
    LocalSandbox(folder).end()
    remove_tree(folder)


@contextmanager
def _locked(file: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock on a file; without `wait`, raise `BlockingIOError` if another process does."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def _supervise(folder: Path, path: str, on_output: Callable[[bytes], object] | None) -> int:
    """Run a prepared launch and return its exit code; if this process ends, the launch ends too."""
    supervisor = Path(supervised.__file__).with_name("supervise.py")
    argv = (sys.executable, "-I", "-S", supervisor, folder, str(os.getpid()))
    env = {"PATH": path, MARK: str(folder)}
    if on_output is None:
        with _lent_terminal():
            return subprocess.run(argv, env=env, check=False).returncode
    reads, writes = os.pipe()
    with subprocess.Popen(
        argv, env=env, stdin=subprocess.DEVNULL, stdout=writes, stderr=writes
    ) as process:
        os.close(writes)
        with os.fdopen(reads, "rb", buffering=0) as output:
            while chunk := output.read(_CHUNK):
                on_output(chunk)
    return process.returncode


@contextmanager
def _lent_terminal() -> Iterator[None]:
    """Lend the terminal to a command, with Ctrl-Z switched off, and restore it at the end.

    Ctrl-Z would stop the command for ever: no shell outside could continue it.
    """
    if not os.isatty(0):
        yield
        return
    before = termios.tcgetattr(0)
    without = termios.tcgetattr(0)
    without[6][termios.VSUSP] = b"\0"  # _POSIX_VDISABLE of termios(3).
    termios.tcsetattr(0, termios.TCSADRAIN, without)
    try:
        yield
    finally:
        handler = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, os.getpgrp())
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        signal.signal(signal.SIGTTOU, handler)
