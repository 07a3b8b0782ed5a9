"""Locates a session's parts: its project's mirror, its host, and its workspace and runs."""

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import convert

from bot.system.paths import Paths
from config.settings import AgentTypeSettings, ProjectSettings, Settings
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentAdapter, AgentType
from runtimes.base import Runtime
from runtimes.host import RunRef
from runtimes.local_host import LocalHost
from runtimes.local_records import LocalRecords
from runtimes.workspaces.mirror import Fork, Mirror
from runtimes.workspaces.worktree import Worktree


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


class Locations:
    """Finds mirrors by project, and workspaces and runs by session."""

    def __init__(
        self,
        paths: Paths,
        projects: Mapping[str, ProjectSettings],
        git_base: str,
        header: Callable[[str], str],
        runtime: Runtime,
        adapters: Mapping[str, AgentAdapter],
        called: Callable[[str], str] = str,
    ) -> None:
        """`header` authorises requests for a repository; `called` is its name after renames.

        `adapters` by agent type.
        """
        self.paths = paths
        self.projects = projects
        self.adapters = adapters
        self.host = LocalHost(runtime, adapters, paths.host)
        self._git_base = git_base
        self._header = header
        self._called = called
        self._mirrors: dict[str, Mirror] = {}

    def mirror(self, project: str) -> Mirror:
        """The project's mirror; one object, because it keeps fetches apart."""
        repository = self.projects[project].repository
        url = f"{self._git_base}{self._called(repository)}.git"
        if project not in self._mirrors:
            made = Mirror(
                self.paths.mirror(project),
                url,
                lambda: self._header(repository),
                self._fork(self.projects[project]),
            )
            self._mirrors.setdefault(project, made)
        mirror = self._mirrors[project]
        mirror.url = url
        return mirror

    def _fork(self, project: ProjectSettings) -> Fork | None:
        if project.push_to != "fork":
            return None
        return Fork(
            url=f"{self._git_base}{project.fork}.git",
            header=lambda: self._header(project.fork),
            branches=project.branch.partition("{")[0],
        )

    def workspace_of(self, session: _Named) -> Worktree:
        """The session's workspace at its host, made or not."""
        origin = self.mirror(session.project).path
        sign_off = self.projects[session.project].sign_off
        return self.host.workspace(session.id, session.branch, origin, sign_off)

    def run_of(self, session: _Named, run: int = 0) -> RunRef:
        """Names a run of a session; 0: the last one."""
        return RunRef(
            session=session.id,
            run=run or session.run,
            agent_type=session.agent_type,
            branch=session.branch,
        )


def local_records(paths: Paths, adapters: Mapping[str, AgentAdapter]) -> LocalRecords:
    """The recorded files of this machine, without its runtime."""
    return LocalRecords(adapters, paths.host)


def agent_type(kind: AgentTypeSettings) -> AgentType:
    """Return the part of a configured agent type that its adapter uses."""
    return convert(kind, AgentType, from_attributes=True)


def programs(settings: Settings) -> dict[str, AgentAdapter]:
    """The adapters of the configured agent types."""
    return {
        name: AGENTS[kind.program](agent_type(kind)) for name, kind in settings.agent_types.items()
    }
