"""Locates files below the data directory, and a session's mirror, host, workspace and runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec import Struct, convert

from bot.system.isolation import NotIsolated
from config.settings import AgentTypeSettings, ProjectSettings, Settings
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType
from runtimes.agents.shared.adapter import AgentAdapter
from runtimes.base import Runtime, RuntimeFailure
from runtimes.host import RunRef, run_name
from runtimes.isolation import ISOLATIONS
from runtimes.isolation.base import Isolation
from runtimes.local_host import LocalHost
from runtimes.workspaces.mirror import Fork, Mirror
from runtimes.workspaces.worktree import Worktree


class Paths(Struct, frozen=True):
    """The files below the data directory of an installation; no other module builds their paths."""

    data: Path  #: `Settings.data`.

    @property
    def database(self) -> Path:
        """The store's database."""
        return self.data / "mergewright.db"

    def remains(self) -> str:
        """Return something that only a database in use leaves here; empty if there is nothing."""
        wal = self.database.with_name(f"{self.database.name}-wal")
        if wal.exists() and wal.stat().st_size:
            return wal.name
        for folder in (self.host / "workspaces", self.host / "sessions", self.archive):
            if folder.is_dir() and (found := next(folder.iterdir(), None)):
                return f"{folder.name}/{found.name}"
        return ""

    @property
    def last_reload(self) -> Path:
        """How the last reload of the configuration ended."""
        return self.data / "reload.json"

    @property
    def runtime(self) -> Path:
        """The runtime's own data; its path is short because it contains sockets."""
        return self.data / "runtime"

    @property
    def mirrors(self) -> Path:
        """The bare mirrors, which agents cannot write to."""
        return self.data / "mirrors"

    @property
    def model_port(self) -> Path:
        """The model proxy's port, kept for agents that outlive the bot."""
        return self.data / "model-port"

    @property
    def proxy_socket(self) -> Path:
        """The proxy's UNIX socket; isolated runs see its folder."""
        return self.data / "proxy" / "proxy.sock"

    @property
    def sandboxes(self) -> Path:
        """The sandboxes of people, which are removed at their end."""
        return self.data / "sandboxes"

    def mirror(self, project: str) -> Path:
        """The bare mirror of one project."""
        return self.mirrors / f"{project}.git"

    @property
    def host(self) -> Path:
        """The folder of the local host; only the host opens what is in it."""
        return self.data

    @property
    def archive(self) -> Path:
        """Copies of the agents' files."""
        return self.data / "archive"

    def run_token(self, session: str, run: int) -> Path:
        """The run token, which is deleted when the run ends."""
        return self.data / "run-tokens" / run_name(session, run)


class _Named(Protocol):
    """What names a session's run and workspace."""

    @property
    def id(self) -> str: ...
    @property
    def project(self) -> str: ...
    @property
    def branch(self) -> str: ...
    @property
    def agent_type(self) -> str: ...
    @property
    def run(self) -> int: ...


@dataclass(eq=False)
class Locations:
    """Finds mirrors by project, and workspaces and runs by session."""

    paths: Paths
    projects: Mapping[str, ProjectSettings]
    git_base: str
    password: Callable[[str], str]  #: Of a repository, for git.
    runtime: Runtime
    adapters: Mapping[str, AgentAdapter]  #: By agent type.
    #: The isolation of a project's runs of an agent type; see `bot.system.isolation.isolation_of`.
    isolation_of: Callable[[str, str], str]
    called: Callable[[str], str] = str  #: The name of a repository after renames.

    def __post_init__(self) -> None:
        self.host = LocalHost(self.runtime, self.adapters, self.paths.host)
        self._mirrors: dict[str, Mirror] = {}

    def mirror(self, project: str) -> Mirror:
        """The project's mirror; one object, because it keeps fetches apart."""
        repository = self.projects[project].repository
        url = f"{self.git_base}{self.called(repository)}.git"
        if project not in self._mirrors:
            path, fork = self.paths.mirror(project), self._fork(self.projects[project])
            made = Mirror(path, url, lambda: self.password(repository), fork)
            self._mirrors.setdefault(project, made)
        mirror = self._mirrors[project]
        mirror.url = url
        return mirror

    def _fork(self, project: ProjectSettings) -> Fork | None:
        if project.push_to != "fork":
            return None
        return Fork(
            url=f"{self.git_base}{project.fork}.git",
            password=lambda: self.password(project.fork),
            branches=project.branch.partition("{")[0],
        )

    def workspace_of(self, session: _Named) -> Worktree:
        """The session's workspace at its host, made or not."""
        origin = self.mirror(session.project).path
        sign_off = self.projects[session.project].sign_off
        isolation = partial(self.isolation, session.project, session.agent_type)
        return self.host.workspace(session.id, session.branch, origin, isolation, sign_off)

    def isolation(self, project: str, agent_type: str) -> Isolation:
        """The isolation of what an agent of this type wrote. Raises `RuntimeFailure`."""
        try:
            return ISOLATIONS[self.isolation_of(project, agent_type)]
        except NotIsolated as problem:
            raise RuntimeFailure(str(problem)) from None

    def run_of(self, session: _Named, run: int = 0) -> RunRef:
        """Names a run of a session; 0: the last one."""
        run, kind = run or session.run, session.agent_type
        return RunRef(session=session.id, run=run, agent_type=kind, branch=session.branch)


def agent_type(kind: AgentTypeSettings) -> AgentType:
    """Return the part of a configured agent type that its adapter uses."""
    return convert(kind, AgentType, from_attributes=True)


def programs(settings: Settings) -> dict[str, AgentAdapter]:
    """The adapters of the configured agent types."""
    return {
        name: AGENTS[kind.program](agent_type(kind)) for name, kind in settings.agent_types.items()
    }
