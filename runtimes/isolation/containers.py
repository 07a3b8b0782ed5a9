"""Isolation by containers of Docker or Podman, which offer the same API.

The engine makes the container and sees nothing else of a run: the terminal, the program's command
and its environment go through a socket between `runtimes.containers.client`, which the supervisor
starts, and the container's first process. So the engine keeps no secrets, and may be restarted.

The container runs as the bot's user, because that user owns the session's files on disk. If the
user is root, see `runtimes.containers.first`.
"""

import hashlib
import logging
import marshal
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from runtimes import containers, supervised
from runtimes.base import PORT_SOCKET, Launch, RuntimeFailure
from runtimes.containers.client import CLIENT, UNMARKED
from runtimes.containers.engine import Engine, EngineError
from runtimes.files import replacing, write_private
from runtimes.isolation import machine_image, seccomp
from runtimes.isolation.base import OF_THIS_MACHINE, PROXY_PORT, Container, Limits, Sandbox
from runtimes.isolation.bubblewrap import Bubblewrap
from runtimes.isolation.machine import ETC, ETC_MADE, made_etc, mounts
from runtimes.isolation.programs import python, python_files
from runtimes.isolation.trial import run_once

_CLIENT = Path(containers.__file__).with_name("client.py")
#: The folder in a container with `first.py` and the files that it needs.
_INSIDE = "/run/mergewright"
_FILES = {
    "first.py": _CLIENT.with_name("first.py"),
    "inner.py": Path(__file__).with_name("inner.py"),
}
_PORT = 8
_USER = 1000
#: Labels of containers: all runs of an installation, session, run.
_SESSIONS, _SESSION, _RUN = "mergewright.sessions", "mergewright.session", "mergewright.run"
_TMP_SHARE = 2  #: As in `bubblewrap`.
_TMP_MB = 2048
#: The time-out of an engine's responses at a start. Podman takes more than five seconds on a busy
#: machine (seen in the tests).
_SECONDS = 20.0
_LOOK_SECONDS = 5.0  #: The time-out in `remove_orphans`, which all runs wait for.
_PATIENCE_SECONDS = 60  #: How long to wait for an engine that restarts while it makes a container.
_PING_SECONDS = 1.0
_UNSTARTED_SECONDS = 600  #: After this time no client starts a container that it made.
_NOT_FOUND = 404
_REMOVED = (_NOT_FOUND, 409)  #: 409: the engine is about to remove it.

log = logging.getLogger(__name__)

#: For each engine: the variable with the address of its socket, the paths of the socket below the
#: folders of this user and of the system, and what a person has to do if none answers.
_ENGINES = {
    "docker": (
        "DOCKER_HOST",
        ("docker.sock",),
        "install it (apt-get install docker.io), start it, and add this user to the group docker"
        " (its members can become root)",
    ),
    "podman": (
        "CONTAINER_HOST",
        ("podman/podman.sock",),
        "install it (apt-get install podman) and start its API (systemctl --user enable --now"
        " podman.socket)",
    ),
}


class Containers:
    """Wraps programs in containers of one engine."""

    def __init__(self, engine: str, bubblewrap: Bubblewrap) -> None:
        self._name, self._bubblewrap = engine, bubblewrap
        self._worked: set[Container] = set()
        self._rootless: dict[tuple[str, int, int], bool] = {}  #: Of the last engine, by its socket.
        self._user = f"{os.getuid()}:{os.getgid()}"

    def unavailable(self, container: Container = OF_THIS_MACHINE) -> str:
        """Return why containers do not work, after a trial; see `Isolation.unavailable`."""
        try:
            engine = self._engine()
            self._make_image(engine, container)  # Each time: people clean up images.
            if container not in self._worked:
                self._check_oci_runtime(engine, container.oci_runtime)
                if why := self._failure(container):
                    return f"{self._name} does not work here: {why}"
                self._worked.add(container)
            return ""
        except EngineError as error:
            if error.status:
                return f"{self._name} does not work here: {error}"
            return f"{self._name} does not work here: {error}; {_ENGINES[self._name][2]}"
        except ValueError as error:
            return str(error)

    def answers(self) -> bool:
        """Whether the engine answers now; see `Isolation.answers`."""
        return self._engine(_PING_SECONDS).answers()

    def unlimited(self, limits: Limits) -> str:
        """Return which of these limits the engine cannot set; all if it does not answer."""
        try:
            info: Any = self._engine().call("GET", "/info")
        except EngineError:
            info = {}
        wanted = {
            "memory": (limits.memory_mb, "MemoryLimit"),
            "pids": (limits.processes, "PidsLimit"),
            "cpu": (limits.cpus, "CpuCfsQuota"),
        }
        return ", ".join(
            kind for kind, (value, field) in wanted.items() if value and not info.get(field)
        )

    def wrap(self, launch: Launch, sandbox: Sandbox) -> Launch:
        """Return a launch that runs the given program in a container; see `Isolation.wrap`."""
        return self._wrap(launch, sandbox, _PATIENCE_SECONDS)

    def _wrap(self, launch: Launch, sandbox: Sandbox, patience: int) -> Launch:
        return replace(
            launch,
            argv=self._client(launch, sandbox, has_terminal=True, patience=patience),
            cwd=Path("/"),
            contained=True,
            listens={_PORT: PORT_SOCKET} if sandbox.port else {},
        )

    def _client(
        self, launch: Launch, sandbox: Sandbox, *, has_terminal: bool, patience: int
    ) -> tuple[str, ...]:
        """Write the files that `client.py` reads, and return its command line.

        `patience` is how long the client waits for an engine that does not answer, in seconds.
        """
        own = launch.dir / "sandbox"
        link = own / "link"
        link.mkdir(parents=True, exist_ok=True, mode=0o700)
        user = os.getuid() or _USER
        for name, text in made_etc(user, launch.env.get("HOME", "/")).items():
            write_private(own / "etc" / name, text)
        (link / "seccomp").write_bytes(seccomp.program())
        engine = self._engine()
        rootless = self._is_rootless(engine)
        proxy = PROXY_PORT if sandbox.proxy else 0
        is_run = has_terminal and patience > 0
        described = self._container(launch, sandbox, own, rootless=rootless, is_run=is_run)
        spec = {
            "engine": engine.path,
            "name": f"mergewright-{_id(launch.dir.parent)}-{launch.name}",
            "container": msgspec.json.encode(described),
            "program": {"cwd": str(launch.cwd), "proxy": proxy, "port": sandbox.port},
            "terminal": has_terminal,
            "patience": patience,
        }
        with replacing(own / "container") as file:
            file.write(marshal.dumps(spec))
        return (python(), "-E", "-s", "-S", str(_CLIENT), str(own), *launch.argv)

    @contextmanager
    def command(
        self, argv: Sequence[str], cwd: Path, sandbox: Sandbox
    ) -> Iterator[tuple[Sequence[str], Sequence[int]]]:
        """Yield a command line for the program in a sandbox; see `Isolation.command`.

        The program runs in bubblewrap if that works, because it starts a hundred times faster
        (measured), otherwise in a container for this command alone.
        """
        if not self._bubblewrap.unavailable():
            with self._bubblewrap.command(argv, cwd, sandbox) as wrapped:
                yield wrapped
            return
        with tempfile.TemporaryDirectory(prefix="mergewright-") as folder:
            run = Path(folder).resolve() / "command"
            launch = Launch(name=run.name, argv=tuple(argv), cwd=cwd, env={}, dir=run)
            limits = replace(sandbox.limits, cpus=0.0)
            own = Sandbox(writable=sandbox.writable, readable=sandbox.readable, limits=limits)
            try:
                self._make_image(self._engine(), own.container)
            except EngineError as error:
                raise RuntimeFailure(f"{self._name} does not answer: {error}") from None
            yield self._client(launch, own, has_terminal=False, patience=_PATIENCE_SECONDS), ()

    def remove_orphans(self, sessions: Path) -> bool:
        """Remove containers of runs that have ended or have not recorded a start; see `Isolation`.

        Also removes old containers that were never started. Returns False without an engine.
        """
        engine = self._engine(_LOOK_SECONDS)
        if not Path(engine.path).exists():
            return False
        labels = {"label": [f"{_SESSIONS}={sessions}"]}
        try:
            found: Any = engine.call("GET", "/containers/json", all="1", filters=labels)
            for container in found:
                run = sessions / container["Labels"][_RUN]
                if not supervised.started(run) or supervised.outcome(run) is not None:
                    log.warning("%s: removing its container, which outlived it", run.name)
                    self._remove(engine, container["Id"])
            self._remove_unstarted(engine)
        except EngineError as error:
            raise RuntimeFailure(
                f"{self._name}: containers of ended runs cannot be removed: {error}"
            ) from None
        return bool(found)

    def _remove_unstarted(self, engine: Engine) -> None:
        """Remove containers of any installation, made over ten minutes ago and never started.

        Their client was killed before it could start them. A started container ends with its
        client.
        """
        made = {"label": [_SESSIONS], "status": ["created"]}
        found: Any = engine.call("GET", "/containers/json", all="1", filters=made)
        for container in found:
            if time.time() - container["Created"] > _UNSTARTED_SECONDS:
                self._remove(engine, container["Id"])

    @staticmethod
    def _remove(engine: Engine, container: str) -> None:
        try:
            engine.call("DELETE", f"/containers/{container}", force="1", v="1")
        except EngineError as error:
            if error.status not in _REMOVED:
                raise

    def _is_rootless(self, engine: Engine) -> bool:
        """Whether an engine runs as an ordinary user; cached, as a request takes 30 ms.

        Raises `RuntimeFailure` if the engine does not answer.
        """
        try:
            socket = Path(engine.path).stat()  # Another one after a restart.
            asked = engine.path, socket.st_ino, socket.st_ctime_ns
            if asked not in self._rootless:
                info: Any = engine.call("GET", "/info")
                options = info.get("SecurityOptions") or ()
                self._rootless = {asked: any("rootless" in option for option in options)}
        except (OSError, EngineError) as error:
            raise RuntimeFailure(f"{self._name} does not answer: {error}") from None
        return self._rootless[asked]

    def _engine(self, seconds: float = _SECONDS) -> Engine:
        variable, places, _ = _ENGINES[self._name]
        address = os.environ.get(variable, "")
        if address:
            return Engine(address.removeprefix("unix://"), seconds)
        own = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
        folders = ("/run",) if os.getuid() == 0 else (own, "/run")
        paths = [f"{folder}/{place}" for folder in folders for place in places]
        return Engine(next(filter(os.path.exists, paths), paths[-1]), seconds)

    def _make_image(self, engine: Engine, container: Container) -> None:
        """Make sure that the engine has the container's image.

        Imports a missing `machine_image`. Raises `EngineError`, also if any other image is missing.
        """
        name = container.image or machine_image.name()
        try:
            engine.call("GET", f"/images/{name}/json")
        except EngineError as error:
            if error.status != _NOT_FOUND:
                raise
            if container.image:
                raise EngineError(
                    f"it has no image {name}: build or pull it as this user, or remove `image`"
                    " under [sandbox] to use the programs of this machine",
                    _NOT_FOUND,
                ) from None
            content = machine_image.content()
            engine.call("POST", "/images/create", content, fromSrc="-", repo=name)

    def _check_oci_runtime(self, engine: Engine, wanted: str) -> None:
        """Raise `EngineError` for an OCI runtime that Podman's API would ignore (seen with 4.3)."""
        if wanted and self._name == "podman":
            info: Any = engine.call("GET", "/info")
            if info.get("DefaultRuntime") != wanted:
                raise EngineError(
                    f"its API cannot choose the OCI runtime: name {wanted} in its containers.conf",
                    _NOT_FOUND,
                )

    def _failure(self, container: Container) -> str:
        """Try a program in a container; return why it does not run, or an empty string."""
        with tempfile.TemporaryDirectory(prefix="mergewright-") as folder:
            place = Path(folder).resolve()
            run = place / f"try{os.getpid()}"
            run.mkdir()
            launch = Launch(name=run.name, argv=("/bin/true",), cwd=run, env={}, dir=run)
            sandbox = Sandbox(writable=(run,), container=container)
            try:
                return run_once(self._wrap(launch, sandbox, patience=0))
            except (OSError, RuntimeFailure, subprocess.TimeoutExpired) as error:
                return f"it cannot be tried: {error}"

    def _container(
        self, launch: Launch, sandbox: Sandbox, own: Path, *, rootless: bool, is_run: bool
    ) -> dict[str, object]:
        """Return the description of a container for the engine. `own` is the folder of its files.

        https://docs.docker.com/reference/api/engine/version/v1.41/
        """
        container, limits = sandbox.container, sandbox.limits
        size = (limits.memory_mb // _TMP_SHARE or _TMP_MB) * 1024 * 1024
        tmpfs = f"rw,exec,nosuid,nodev,mode=1777,size={size}"
        options = ["no-new-privileges", "label=disable"]
        for_namespace: list[str] = []
        user, namespace = self._user, "host"
        if rootless and self._name == "podman":
            namespace = "keep-id"
        elif rootless:
            user = "0:0"  # That is the engine's user, and so the bot's.
        if user.startswith("0:"):
            # For the user namespace that `first.py` makes, where our filter takes over.
            options.append("seccomp=unconfined")
            for_namespace.append("SETFCAP")
        interpreter = "python3" if container.image else python()
        host = {
            "Binds": list(_binds(launch, sandbox, own)),
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "CapAdd": for_namespace,
            "SecurityOpt": options,
            "UsernsMode": namespace,
            "IpcMode": "private",
            "Tmpfs": {"/tmp": tmpfs, "/var/tmp": tmpfs},  # noqa: S108 - the container's.
            "ShmSize": size,
            "Memory": limits.memory_mb * 1024 * 1024,
            "MemorySwap": limits.memory_mb * 1024 * 1024,
            "PidsLimit": limits.processes or -1,
            "NanoCpus": int(limits.cpus * 1e9),
            "LogConfig": {"Type": "none"},
            # Not for a run: a restart of Docker 20.10 would then kill its container in spite of
            # live-restore (measured). Its client or `remove_orphans` removes the container. Other
            # containers end with their client.
            "AutoRemove": not is_run,
        }
        if container.oci_runtime:
            host["Runtime"] = container.oci_runtime
        return {
            "Image": container.image or machine_image.name(),
            "Entrypoint": [interpreter, "-E", "-s", "-S", f"{_INSIDE}/first.py"],
            "Cmd": [],
            "User": user,
            "WorkingDir": "/",
            "Hostname": "sandbox",
            "Labels": {
                _SESSIONS: str(launch.dir.parent),
                _SESSION: launch.name.rpartition("_")[0],
                _RUN: launch.name,
                CLIENT: UNMARKED,
            },
            **({"Healthcheck": {"Test": ["NONE"]}} if container.image else {}),
            "HostConfig": host,
        }


def _binds(launch: Launch, sandbox: Sandbox, own: Path) -> Iterator[str]:
    """Yield the files of this machine that a container mounts, as `source:target:options`.

    Engines refuse duplicate targets, so each occurs once, even if the operator names /usr too.
    """
    shown: dict[str | Path, str | Path] = {}
    further: list[Path] = []
    if not sandbox.container.image:
        shown |= {folder: folder for folder in machine_image.folders()}
        shown |= {f"/etc/{name}": f"/etc/{name}" for name in ETC if Path("/etc", name).exists()}
        further = python_files(sandbox.writable)
    shown |= {f"/etc/{name}": own / "etc" / name for name in ETC_MADE}
    shown |= {f"{_INSIDE}/{name}": file for name, file in _FILES.items()}
    shown[f"{_INSIDE}/link"] = own / "link"
    if sandbox.proxy:
        shown[f"{_INSIDE}/proxy"] = sandbox.proxy
    binds = {str(target): _bind(source, target, "ro") for target, source in shown.items()}
    for path, is_writable in mounts(launch.cwd, sandbox, further).items():
        binds[str(path)] = _bind(path, path, "rw" if is_writable else "ro")
    yield from binds.values()


def _bind(source: str | Path, target: str | Path, how: str) -> str:
    if ":" in f"{source}{target}":
        raise RuntimeFailure(f"{source} cannot be given to a container: its path has a colon")
    return f"{source}:{target}:{how},rprivate"


def _id(folder: Path) -> str:
    """Return a short id of an installation: a hash of the path of the folder of its runs."""
    return hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]
