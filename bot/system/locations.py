"""What belongs to a session on this machine: mirror, workspace, its runs' files and programs."""

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import convert

from bot.system.paths import Paths, run_name
from config.settings import AgentTypeSettings, ProjectSettings, Settings
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentAdapter, AgentType, RunFiles
from runtimes.base import Handle, Runtime
from runtimes.workspaces.mirror import Fork, Mirror
from runtimes.workspaces.worktree import Worktree


class Sites:
    """Finds the place of everything by session and run."""

    def __init__(
        self,
        paths: Paths,
        projects: Mapping[str, ProjectSettings],
        git_base: str,
        header: Callable[[str], str],
        runtime: Runtime,
        programs: Mapping[str, AgentAdapter],
        called: Callable[[str], str] = str,
    ) -> None:
        """`called`: what a configured repository is called today."""
        self.paths = paths
        self.projects = projects
        self.runtime = runtime
        self.programs = programs
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

    def workspace(self, project: str, session: str, branch: str) -> Worktree:
        """The session's workspace, made or not."""
        return Worktree(
            self.paths.workspaces,
            session,
            branch,
            str(self.paths.mirror(project).absolute()),
            sign_off=self.projects[project].sign_off,
        )

    def files(self, session: str, run: int, branch: str, workspace: Path) -> RunFiles:
        """Where a run keeps its files."""
        return RunFiles(
            session=session,
            run=run,
            dir=self.paths.run(session, run),
            workspace=workspace,
            branch=branch,
        )

    def handle(self, session: str, run: int) -> Handle:
        """The runtime's name for a run, whether it lives or not."""
        return self.runtime.handle(run_name(session, run))


def agent_type(kind: AgentTypeSettings) -> AgentType:
    """What of a configured agent type is its program's business."""
    return convert(kind, AgentType, from_attributes=True)


def programs(settings: Settings) -> dict[str, AgentAdapter]:
    """The agent types of the configuration, ready to be started."""
    return {
        name: AGENTS[kind.program](agent_type(kind)) for name, kind in settings.agent_types.items()
    }
