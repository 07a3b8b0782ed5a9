"""Isolation by bubblewrap: namespaces, a seccomp filter and control groups, without a daemon.

The program runs as user 1000 of a user namespace of its own, without capabilities. Outside the
namespace it has the user ID of the bot, which owns the program's files on disk. If the bot is root,
the kernel lets the program open some files of /proc, because for these files it checks only the
user ID, not capabilities. They are read-only or hidden here (`_PROC_READ_ONLY`, `_PROC_HIDDEN`).

The program keeps the terminal of its pane, and with it job control and the window's size. The
seccomp filter refuses the system calls that type into a terminal, so the program needs no terminal
session of its own (setsid(2)).

https://github.com/containers/bubblewrap
"""

import hashlib
import marshal
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from msgspec.structs import replace

from runtimes import supervise, supervised
from runtimes.base import PORT_SOCKET, Launch, RuntimeFailure
from runtimes.isolation import seccomp
from runtimes.isolation.base import (
    OF_THIS_MACHINE,
    PROXY_PORT,
    PROXY_SOCKET,
    Container,
    Limits,
    Sandbox,
)
from runtimes.isolation.cgroups import ControlGroups
from runtimes.isolation.machine import ETC, made_etc, mounts
from runtimes.isolation.programs import python, python_files

_INNER = Path(__file__).with_name("inner.py")
#: Where a sandbox has `inner.py`, compiled, and the folder with the proxy's socket.
_INNER_INSIDE = "/run/mergewright/inner.pyc"
_PROXY_INSIDE = "/run/mergewright/proxy"
_TMP = "/tmp"  # noqa: S108 - that of the sandbox.
_SECCOMP = 9  #: The descriptor of the filter.
_PORT = 8  #: The descriptor of the socket by which the bot reaches the program's port.
_FIRST_FILE = 10  #: The descriptor of the first of `_files`; the others follow in their order.
_USER = 1000
_ETC = tuple(Path("/etc", name) for name in ETC)
_TRY_SECONDS = 20
#: The run's memory limit is divided by this to get the size of each temporary folder, whose files
#: count towards that limit.
_TMP_SHARE = 2
_TMP_MB = 2048  #: The size of each temporary folder if the run has no memory limit.
_SHORT_TMP_BYTES = 16 * 1024 * 1024  #: The size of the temporary folder of a short program.
_NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
    *("--unshare-cgroup-try", "--uid", str(_USER), "--gid", str(_USER)),
    *("--hostname", "sandbox", "--cap-drop", "ALL", "--die-with-parent"),
)
#: bubblewrap leaves /proc/sys writable for root, and core_pattern there runs programs on the host.
_PROC_READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger", "/proc/mtrr", "/proc/pressure")
#: Files that show the machine's memory, keys and timers to programs with the user ID of root.
#: Containers hide the first four, too.
_PROC_HIDDEN = (
    *("/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/timer_list"),
    *("/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup"),
    *("/proc/pagetypeinfo", "/proc/slabinfo", "/proc/vmallocinfo"),
)
_REMEDIES = {
    "Creating new namespace failed": (
        "unprivileged user namespaces are switched off here: set the sysctl"
        " kernel.unprivileged_userns_clone=1, or user.max_user_namespaces to 10000"
    ),
    "setting up uid map": (
        "AppArmor restricts user namespaces here: install the profile of bubblewrap, or set the"
        " sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    ),
    "loopback": (
        "AppArmor restricts user namespaces here: install the profile of bubblewrap, or set the"
        " sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    ),
}


class Bubblewrap:
    """Wraps programs in `bwrap`."""

    def __init__(self) -> None:
        self._worked = False

    @cached_property
    def _groups(self) -> ControlGroups:
        groups = ControlGroups()
        groups.remove_empty()
        return groups

    def unavailable(self, container: Container = OF_THIS_MACHINE) -> str:
        """Try a program in a sandbox, unless one has worked; see `Isolation.unavailable`."""
        why = "" if self._worked else self._failure()
        self._worked = not why
        return why

    def _failure(self) -> str:
        for program, package in {"bwrap": "bubblewrap", "prlimit": "util-linux"}.items():
            if not shutil.which(program):
                return f"{package} is not installed: apt-get install {package}"
        try:
            seccomp.program()
        except ValueError as error:
            return str(error)
        with tempfile.TemporaryDirectory(prefix="mergewright-") as folder:
            place = Path(folder).resolve()
            launch = Launch(name="try", argv=("/bin/echo", "works"), cwd=place, env={}, dir=place)
            try:
                return _try(self.wrap(launch, Sandbox(writable=(place,))))
            except (OSError, RuntimeFailure, subprocess.TimeoutExpired) as error:
                return f"bubblewrap cannot be tried: {error}"

    def answers(self) -> bool:
        """Return True: there is no engine; see `Isolation.answers`."""
        return True

    def unlimited(self, limits: Limits) -> str:
        """Return which of these limits cannot be set; see `Isolation.unlimited`."""
        wanted = {"memory": limits.memory_mb, "pids": limits.processes, "cpu": limits.cpus}
        missing = [name for name, value in wanted.items() if value and name not in self.limited]
        return ", ".join(missing)

    @property
    def limited(self) -> frozenset[str]:
        """The cgroup controllers that can limit a run here: any of `memory`, `pids` and `cpu`."""
        return self._groups.limited

    def wrap(self, launch: Launch, sandbox: Sandbox) -> Launch:
        """Return the launch of `bwrap` with the program; see `Isolation.wrap`."""
        files = dict(_files(launch.env.get("HOME", "/")))
        limits = sandbox.limits
        per_process = 0 if "memory" in self.limited else limits.memory_mb * 1024 * 1024
        numbers: tuple[object, ...] = (
            PROXY_PORT if sandbox.proxy else 0,
            f"{_PROXY_INSIDE}/{PROXY_SOCKET}",
        )
        numbers += (_PORT if sandbox.port else 0, sandbox.port, limits.processes, per_process)
        inner = (python(), "-I", "-S", _INNER_INSIDE, *numbers, "--")
        argv = (
            *("bwrap", *_NAMESPACES, "--as-pid-1", "--seccomp", _SECCOMP),
            *_system(limits.memory_mb // _TMP_SHARE or _TMP_MB),
            *_copied(files),
            *_given(launch.cwd, sandbox, python_files(sandbox.writable)),
            *(("--ro-bind", sandbox.proxy, _PROXY_INSIDE) if sandbox.proxy else ()),
            *("--remount-ro", "/", "--chdir", launch.cwd, "--", *inner, *launch.argv),
        )
        # Other bots of this machine may have runs of the same name.
        number = hashlib.sha256(os.fsencode(launch.dir)).hexdigest()[:8]
        return replace(
            launch,
            argv=tuple(map(str, argv)),
            cwd=Path("/"),
            contained=True,
            opens={_SECCOMP: seccomp.program()} | dict(enumerate(files.values(), _FIRST_FILE)),
            listens={_PORT: PORT_SOCKET} if sandbox.port else {},
            groups=self._groups.groups(f"{launch.name}-{number}", limits),
        )

    @contextmanager
    def command(
        self, argv: Sequence[str], cwd: Path, sandbox: Sandbox
    ) -> Iterator[tuple[Sequence[str], Sequence[int]]]:
        """Yield the command line of `bwrap` with the program; see `Isolation.command`."""
        limits = sandbox.limits
        limited = {"core": 0, "data": limits.memory_mb * 1024 * 1024, "nproc": limits.processes}
        options = [
            f"--{name}={value}" for name, value in limited.items() if value or name == "core"
        ]
        with os.fdopen(os.memfd_create("seccomp"), "wb", buffering=0) as file:
            file.write(seccomp.program())
            file.seek(0)
            wrapped = (
                *("bwrap", *_NAMESPACES, "--seccomp", file.fileno(), *_programs()),
                *("--dev", "/dev", "--size", _SHORT_TMP_BYTES, "--tmpfs", _TMP),
                *_given(cwd, sandbox),
                *("--remount-ro", "/", "--chdir", cwd, "--", "prlimit", *options, "--", *argv),
            )
            yield tuple(map(str, wrapped)), (file.fileno(),)

    def remove_orphans(self, sessions: Path) -> bool:
        """Find nothing and return False: a run makes only processes and files, no containers."""
        return False


def _programs() -> Iterator[str | Path]:
    """Yield the options of `bwrap` that mount the system's programs and libraries."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        folder = Path("/", name)
        if folder.is_symlink():
            yield from ("--symlink", str(folder.readlink()), folder)
        elif folder.is_dir():
            yield from ("--ro-bind", folder, folder)


def _system(tmp_mb: int) -> Iterator[str | Path]:
    """Yield the options of `bwrap` for programs, /etc, /proc, /dev and temporary folders.

    `tmp_mb`: the size of each temporary folder, in units of 1024 * 1024 bytes.
    """
    yield from _programs()
    for folder in filter(Path.is_dir, _ETC):
        yield from ("--ro-bind", folder, folder)
    yield from ("--proc", "/proc", "--dev", "/dev")
    for file in _PROC_READ_ONLY:
        yield from ("--ro-bind-try", file, file)
    for file in _PROC_HIDDEN:
        if os.path.exists(file):  # noqa: PTH110 - the machine's, which has no type here.
            yield from ("--ro-bind", "/dev/null", file)
    size = str(tmp_mb * 1024 * 1024)
    for temporary in (_TMP, f"/var{_TMP}", "/dev/shm"):  # noqa: S108 - those of the sandbox.
        yield from ("--perms", "1777", "--size", size, "--tmpfs", temporary)
    yield from ("--remount-ro", "/dev")


def _files(home: str) -> Iterator[tuple[str, Path | bytes]]:
    """Yield each file to copy into a sandbox: its path there, with its source or its content.

    They are files of /etc, and the code of the first process. They are copied, because mounting
    takes longer: `bwrap` reads the list of all mounts for each mount. `home` is the value of HOME.
    """
    for file in _ETC:
        if file.is_file() and os.access(file, os.R_OK):
            yield str(file), file
    for name, text in made_etc(_USER, home).items():
        yield f"/etc/{name}", text.encode()
    yield _INNER_INSIDE, _inner()


def _copied(places: Iterable[str]) -> Iterator[str | int]:
    """Yield the options of `bwrap` that copy the files of `_files` to their places, read-only."""
    for number, place in enumerate(places, _FIRST_FILE):
        yield from ("--perms", "0444", "--file", number, place)


@cache
def _inner() -> bytes:
    """Return `inner.py` as a .pyc file: Python would take 1.5 ms to compile it at each start.

    https://peps.python.org/pep-0552/
    """
    code = compile(_INNER.read_bytes(), _INNER_INSIDE, "exec", dont_inherit=True)
    return MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


def _given(cwd: Path, sandbox: Sandbox, further: Iterable[Path] = ()) -> Iterator[str | Path]:
    """Yield the options of `bwrap` that mount the paths of a sandbox and, read-only, `further`."""
    for path, is_writable in mounts(cwd, sandbox, further).items():
        yield from ("--bind" if is_writable else "--ro-bind", path, path)


def _try(launch: Launch) -> str:
    """Run a wrapped program that prints something; return why it failed, or an empty string."""
    supervised.prepare(launch, {"PATH": os.environ.get("PATH", os.defpath)})
    done = subprocess.run(
        (sys.executable, "-I", "-S", supervise.__file__, launch.dir),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TRY_SECONDS,
        check=False,
    )
    if done.returncode == 0 and done.stdout:
        return ""
    words = " ".join((done.stderr or done.stdout).split())[:500]
    return f"bubblewrap does not work here: {words}; {_remedy(words, _REMEDIES.items())}"


def _remedy(words: str, remedies: Iterable[tuple[str, str]]) -> str:
    return next(
        (remedy for sign, remedy in remedies if sign in words),
        "see what `bwrap --ro-bind / / --unshare-all true` prints",
    )
