"""The interface of isolations: sandboxes that limit a program to the files and hosts it needs."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from runtimes.base import Launch

#: The port of 127.0.0.1 at which programs in a sandbox reach the bot's proxy.
PROXY_PORT = 18089
#: The name of the proxy's socket in the folder `Sandbox.proxy`.
PROXY_SOCKET = "proxy.sock"


class Limits(Struct, frozen=True, kw_only=True):
    """The most that all processes of one run may use together; 0 means no limit.

    Without control groups, bubblewrap limits memory for each process separately, and does not limit
    processor time.
    """

    memory_mb: int = 0  #: In units of 1024 * 1024 bytes.
    processes: int = 0  #: The number of processes, threads included.
    cpus: float = 0.0  #: Processors; 1.5 allows the time of one and a half.


#: No limits but the machine's own.
UNLIMITED = Limits()


class Container(Struct, frozen=True, kw_only=True):
    """The image and the OCI runtime of containers; other kinds of isolation ignore them."""

    image: str = ""  #: If empty, an image with the programs of this machine.
    oci_runtime: str = ""  #: Its name at the engine, such as `runsc`; if empty, the default.


#: A container with the programs of this machine and the engine's default OCI runtime.
OF_THIS_MACHINE = Container()


class Sandbox(Struct, frozen=True, kw_only=True):
    """What a run's program may use, besides the system's programs and a temporary folder.

    The bot chooses every path itself. No path may come from a file that an agent can write.
    """

    writable: tuple[Path, ...]  #: Files and folders, which must exist.
    readable: tuple[Path, ...] = ()  #: Files and folders.
    #: The folder in which the proxy's socket is or will be made. If None, there is no network.
    proxy: Path | None = None
    limits: Limits = UNLIMITED
    #: The port of 127.0.0.1 in the sandbox that the bot reaches by `PORT_SOCKET`; 0 means none.
    port: int = 0
    container: Container = OF_THIS_MACHINE


class IsolationSpec(Struct, frozen=True, kw_only=True):
    """The part of a run's isolation that the configuration decides. The host adds the paths."""

    kind: str  #: A name in `runtimes.isolation.ISOLATIONS`.
    readable: tuple[Path, ...] = ()  #: This and the next three are as in `Sandbox`.
    proxy: Path | None = None
    limits: Limits = UNLIMITED
    container: Container = OF_THIS_MACHINE
    env: Mapping[str, str] = {}  #: Variables with which programs use the proxy.


#: No sandbox: the program has all rights of the bot's user.
NOT_ISOLATED = IsolationSpec(kind="none")


class Isolation(Protocol):
    """Wraps programs in a sandbox. Runtimes start the result like any other program."""

    def unavailable(self, container: Container = OF_THIS_MACHINE) -> str:
        """Return why this isolation does not work here, and a remedy; empty if it works.

        Runs a program in a sandbox to find out, unless one has worked before. Containers are made
        from `container`.
        """
        ...

    def answers(self) -> bool:
        """Whether the container engine answers within a second.

        True for isolations without an engine.
        """
        ...

    def unlimited(self, limits: Limits) -> str:
        """Return the limits that cannot be set for a whole run, such as "memory, cpu", or ""."""
        ...

    def wrap(self, launch: Launch, sandbox: Sandbox) -> Launch:
        """Return the launch of the same program in a sandbox.

        Writes what the sandbox needs into the run's folder. Raises `RuntimeFailure` if a path
        cannot be given to the program, or if the engine of a container does not answer.
        """
        ...

    def command(
        self, argv: Sequence[str], cwd: Path, sandbox: Sandbox
    ) -> AbstractContextManager[tuple[Sequence[str], Sequence[int]]]:
        """Yield a command line that runs a short-lived program in a sandbox.

        Also yields the descriptors that the process must inherit. The program can use this
        machine's programs and gets the caller's environment. It has no terminal and no network, and
        sees no other processes. `proxy`, `port`, `container` and the limit `cpus` do not apply. The
        program is killed when the thread that started it ends. Raises `RuntimeFailure` as `wrap`
        does.
        """
        ...

    def remove_orphans(self, sessions: Path) -> bool:
        """Remove the containers of runs that have ended.

        `sessions` is the folder of all runs. Returns whether any of these runs, ended or not, had a
        container. Raises `RuntimeFailure` if containers cannot be listed or removed.
        """
        ...
