"""Locates files below the data directory, and the mirror, host, workspace and runs of a session."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec import Struct, convert

from bot.system.isolation import NotIsolated
from config.settings import DATABASE, AgentTypeSettings, ProjectSettings, Settings
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType
from runtimes.agents.shared.adapter import AgentAdapter
from runtimes.base import Runtime, RuntimeFailure
from runtimes.host import RunRef, WorkspaceOptions, run_name
from runtimes.isolation import ISOLATIONS
from runtimes.isolation.base import Isolation
from runtimes.local_host import LocalHost
from runtimes.workspaces.mirror import Fork, Mirror
from runtimes.workspaces.submodules import AllowedRepository, Submodules
from runtimes.workspaces.worktree import Worktree


class Paths(Struct, frozen=True):
    """The paths of files below an installation's data directory."""

    data: Path  #: `Settings.data`.

    @property
    def database(self) -> Path:
        """The store's database."""
        return self.data / DATABASE

    def remains(self) -> str:
        """Return a file or folder that shows that there was a database here, or ""."""
        wal = self.database.with_name(f"{self.database.name}-wal")
        if wal.exists() and wal.stat().st_size:
            return wal.name
        for folder in (self.host / "workspaces", self.host / "sessions", self.archive):
            if folder.is_dir() and (found := next(folder.iterdir(), None)):
                return f"{folder.name}/{found.name}"
        return ""

    @property
    def last_reload(self) -> Path:
        """The file with the result of the last reload of the configuration."""
        return self.data / "reload.json"

    @property
    def runtime(self) -> Path:
        """The folder for the runtime's own data. Its path is short because it contains sockets."""
        return self.data / "runtime"

    @property
    def mirrors(self) -> Path:
        """The folder of the bare mirrors, which agents cannot write to."""
        return self.data / "mirrors"

    @property
    def model_port(self) -> Path:
        """The file with the model proxy's port, which is kept because agents outlive the bot."""
        return self.data / "model-port"

    @property
    def proxy_socket(self) -> Path:
        """The proxy's UNIX socket. Its folder is visible to isolated runs."""
        return self.data / "proxy" / "proxy.sock"

    @property
    def sandboxes(self) -> Path:
        """The folder of the sandboxes that people start. Each is deleted when it ends."""
        return self.data / "sandboxes"

    @property
    def submodules(self) -> Path:
        """The folder of the commits of submodules, which agents cannot write to."""
        return self.mirrors / "submodules"

    def mirror(self, project: str) -> Path:
        """Return the folder of a project's bare mirror."""
        return self.mirrors / f"{project}.git"

    @property
    def host(self) -> Path:
        """The folder of the local host, which contains folders such as `sessions`."""
        return self.data

    @property
    def archive(self) -> Path:
        """The folder of the archived copies of agents' files."""
        return self.data / "archive"

    def run_token(self, session: str, run: int) -> Path:
        """Return the file with a run's token, which is deleted when the bot ends the run."""
        return self.data / "run-tokens" / run_name(session, run)

    def step_token(self, session: str) -> Path:
        """Return the file with the proxy token of a session's `setup` and `teardown` commands.

        With this token, the proxy gives access to the project's allowed hosts, but not to a model.
        """
        return self.data / "run-tokens" / f"{session}_steps"


class _Named(Protocol):
    """The fields of a session that identify its runs and its workspace."""

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
    """Finds the mirror of a project, and the workspace and the runs of a session."""

    paths: Paths
    projects: Mapping[str, ProjectSettings]
    git_base: str
    password: Callable[[str], str]  #: Returns git's password for a repository (`owner/name`).
    runtime: Runtime
    adapters: Mapping[str, AgentAdapter]  #: By agent type.
    #: Returns the isolation of a project's runs of an agent type; see
    #: `bot.system.isolation.isolation_of`.
    isolation_of: Callable[[str, str], str]
    called: Callable[[str], str] = str  #: Returns a repository's current name, after renames.

    def __post_init__(self) -> None:
        self.host = LocalHost(self.runtime, self.adapters, self.paths.host)
        self._mirrors: dict[str, Mirror] = {}

    def mirror(self, project: str) -> Mirror:
        """Return the project's mirror.

        It is always the same object, which serializes its fetches.
        """
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
        """Return the session's workspace on its host, whether it exists or not."""
        origin, own = self.mirror(session.project).path, self.projects[session.project]
        isolation = partial(self.isolation, session.project, session.agent_type)
        options = workspace_options(own)
        return self.host.workspace(session.id, session.branch, origin, isolation, options)

    def submodules_of(self, project: str) -> Submodules:
        """Return the submodules that a project's workspaces may have."""
        return Submodules(
            self.paths.submodules,
            allowed_submodules(self.projects[project], self.git_base, self.password),
        )

    def isolation(self, project: str, agent_type: str) -> Isolation:
        """Return the isolation for commands, such as git, that read what agents of a type wrote.

        An isolation by an engine is returned even while the engine does not answer, because these
        commands rarely need the engine. Raises `RuntimeFailure` if the isolation does not work.
        """
        try:
            return ISOLATIONS[self.isolation_of(project, agent_type)]
        except NotIsolated as problem:
            if problem.waits_for:
                return ISOLATIONS[problem.waits_for]
            raise RuntimeFailure(str(problem)) from None

    def run_of(self, session: _Named, run: int = 0) -> RunRef:
        """Return the reference of a session's run. If `run` is 0, it is the last one."""
        run, kind = run or session.run, session.agent_type
        return RunRef(session=session.id, run=run, agent_type=kind, branch=session.branch)


def allowed_submodules(
    project: ProjectSettings, git_base: str, password: Callable[[str], str]
) -> list[AllowedRepository]:
    """Return the repositories that a project's submodules may be.

    `password` returns git's password for a repository (`owner/name`).
    """
    return [
        AllowedRepository(one, str)
        if "://" in one
        else AllowedRepository(f"{git_base}{one}.git", partial(password, one))
        for one in project.submodules
    ]


def workspace_options(project: ProjectSettings) -> WorkspaceOptions:
    """Return how the workspaces of a project are made."""
    return WorkspaceOptions(
        sign_off=project.sign_off,
        excluded=project.env_files,
        kind=project.workspace,
        depth=project.fetch_depth,
        lfs_max_mb=project.lfs_max_mb,
        sparse=project.sparse,
    )


def agent_type(kind: AgentTypeSettings) -> AgentType:
    """Return the part of a configured agent type that its adapter uses."""
    return convert(kind, AgentType, from_attributes=True)


def programs(settings: Settings) -> dict[str, AgentAdapter]:
    """Return the adapters of the configured agent types, by agent type."""
    return {
        name: AGENTS[kind.program](agent_type(kind)) for name, kind in settings.agent_types.items()
    }
