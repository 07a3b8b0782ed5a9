"""The beginning of a run: its workspace made whole, its files written, its program started."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Protocol

from msgspec import Struct

from bot.act.handover_notes import notes
from bot.act.releasing import end_programs
from bot.act.results import ActionResult, Completed, FinalCheck, Rejected, RetryLater
from bot.archive.archiver import Archive
from bot.github.client import GitHub
from bot.model_proxy.endpoints import ModelEndpoints, ModelUnavailable
from bot.store import Observation, Session, Store
from bot.system.clock import Clock
from bot.system.locations import Locations
from bot.text import messages
from bot.text.prompts import BEGINNINGS, Prompts
from lifecycle.model import keys
from lifecycle.model.actions import Prompt, Start
from lifecycle.model.facts import Agent, Work
from lifecycle.model.status import Probe, Reason
from runtimes.agents.base import LaunchSpec, RunFiles, RunLimits
from runtimes.base import Launch
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import hold_files, prepare
from runtimes.workspaces.worktree import Worktree

#: How soon an agent that has as much to do as it may is asked again to take a session over.
_NO_ROOM = timedelta(seconds=10)


class _Ground(Struct, frozen=True, kw_only=True):
    """Where a run begins: the workspace, at a commit, with what it may not change held."""

    workspace: Worktree
    base_branch: str
    base: str  #: The commit the session's work begins at.
    held: Collection[str]  #: The files that are as on the base branch, whatever the work says.


class Handover(Protocol):
    """Configured agents, and the assignment of a session to another one."""

    @property
    def names(self) -> Collection[str]: ...

    def system_prompt(self, agent: str) -> str: ...

    def tools(self, agent: str) -> tuple[str, ...]: ...

    def handover_blocker(self, session: Session, name: str) -> str: ...

    def hand_over(self, session: Session, name: str, run: int) -> Session: ...


class Starting:
    """Starts runs. May be repeated after a crash."""

    def __init__(
        self,
        store: Store,
        github: GitHub,
        locations: Locations,
        prompts: Prompts,
        archive: Archive,
        assignment: Handover,
        models: ModelEndpoints,
        steering: tuple[str, ...],
        clock: Clock,
    ) -> None:
        """`steering` are patterns of the files that are held as on the base branch."""
        self._store = store
        self._github = github
        self._locations = locations
        self._prompts = prompts
        self._archive = archive
        self._assignment = assignment
        self._models = models
        self._steering = steering
        self._clock = clock

    def start(self, session: Session, start: Start, check: FinalCheck) -> ActionResult:
        """End what an earlier run left, make the workspace whole, start the program."""
        if start.agent:
            if full := self._assignment.handover_blocker(session, start.agent):
                return RetryLater(full, self._clock() + _NO_ROOM)
            session = self._handed_over(session, start)
        ground = self._made(session, start)
        if isinstance(ground, Rejected):
            return ground
        workspace = ground.workspace
        files = self._locations.files(session.id, start.run, session.branch, workspace.path)
        files.dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            command = self._prepared(session, start, ground, files)
        except ModelUnavailable as missing:
            return Rejected(str(missing), Reason.SPAWN_FAILED)
        launch = Launch(
            name=files.dir.name,
            argv=_bootstrapped(self._locations.projects[session.project].bootstrap, command.argv),
            cwd=workspace.path,
            env=command.env,
            dir=files.dir,
        )
        if stopped := check():  # Making a workspace may have taken minutes.
            return stopped
        self._locations.runtime.start(launch)
        seen = Observation(
            session=session.id,
            run=start.run,
            agent=Agent(
                run=start.run,
                since=self._clock(),
                runtime=Probe.ALIVE,
                program=Probe.ALIVE,
                native_id=command.native_id or start.resume,
                evidence="its program was started",
            ),
            work=Work(
                path=str(workspace.path),
                branch=session.branch,
                base=ground.base,
                head=workspace.head() or ground.base,
            ),
        )
        return Completed(result=f"run {start.run}", observed=seen)

    def _handed_over(self, session: Session, start: Start) -> Session:
        """The session with the agent that it is to go on with."""
        # Before anything of the new one is there: what the old one wrote is read as its own.
        end_programs(self._locations, self._archive, session, start.run - 1)
        return self._assignment.hand_over(session, start.agent, start.run)

    def _made(self, session: Session, start: Start) -> _Ground | Rejected:
        """The workspace, made whole, with nothing of earlier runs at work in it."""
        mirror = self._locations.mirror(session.project)
        base_branch = self._locations.projects[session.project].base_branch
        base_branch = base_branch or self._default_branch(session)
        for earlier in range(1, start.run):
            self._locations.runtime.stop(self._locations.handle(session.id, earlier))
        mirror.refresh()
        workspace = self._locations.workspace(session.project, session.id, session.branch)
        lost = _lost_work(session, workspace, mirror) or self._foreign_branch(session, workspace)
        if lost:
            return lost
        before = start.run - 1
        base = prepare(mirror, workspace, base_branch, before)
        tip = mirror.head_of(base_branch) or base
        held = hold_files(mirror, workspace, tip, self._steering, before)
        return _Ground(workspace=workspace, base_branch=base_branch, base=base, held=held)

    def _prepared(
        self, session: Session, start: Start, ground: _Ground, files: RunFiles
    ) -> LaunchSpec:
        """How its program is started, with its first message and its home as they have to be."""
        program = self._locations.programs[session.agent_type]
        values = {
            **values_of(session, ground.base_branch),
            "summary": str(files.summary) if program.writes_outside else "",
            "progress": str(files.progress) if program.writes_outside else "",
            "template": self._locations.mirror(session.project).pull_template(ground.base),
        }
        text = self._prompts.render(start.prompt, values, keys.visible(session.id, start.key))
        if ground.held:
            told = Prompt(name="held", values={"files": ", ".join(ground.held)})
            text = f"{text}\n\n{self._prompts.render(told, {}, '')}"
        self._archive.put_back(session.id)
        run_limits = self._terms(session, start.run)
        command = program.prepare(files, text, start.resume, run_limits)
        goes_on = start.resume and start.resume == command.native_id
        if start.run == 1 or (goes_on and program.remembers):
            return command
        # It remembers nothing: a message alone would be about work it does not know.
        known = notes(files.progress, ground.workspace, ground.base, start.waiting)
        parts = [self._prompts.render(known, {}, "")]
        if start.agent or start.prompt.name in BEGINNINGS:
            parts.insert(0, text)
        else:
            parts = [self._prompts.render(Prompt(name="resume"), values, ""), *parts, text]
        return program.prepare(files, "\n\n".join(parts), start.resume, run_limits)

    def _terms(self, session: Session, run: int) -> RunLimits:
        """What the configuration holds this run to. Raises `ModelUnavailable`."""
        return RunLimits(
            system=self._assignment.system_prompt(session.agent_name),
            endpoint=self._models.endpoint(session, run),
            tools=self._assignment.tools(session.agent_name),
        )

    def _foreign_branch(self, session: Session, workspace: Worktree) -> Rejected | None:
        """The refusal to begin on a branch of this name that somebody else pushed."""
        branch, mirror = session.branch, self._locations.mirror(session.project)
        if workspace.place.exists() or mirror.head_of(branch) is None or mirror.pushed(branch):
            return None
        if not any(key.startswith("push:") for key in self._store.facts.get(session.id).done):
            return Rejected(messages.foreign_branch(branch), Reason.SPAWN_FAILED)
        return None

    def _default_branch(self, session: Session) -> str:
        return self._github.read.repository(session.repository).default_branch


def values_of(session: Session, base_branch: str) -> Mapping[str, str]:
    """What every message to the agent of a session may name."""
    return {
        "repository": session.repository,
        "branch": session.branch,
        "base_branch": base_branch,
        "number": str(session.issue.number),
        "title": session.issue.title,
        "body": session.issue.body,
    }


def _bootstrapped(lines: tuple[str, ...], argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command, after the project's own lines that make a workspace ready."""
    if not lines:
        return argv
    return ("/bin/sh", "-ec", "\n".join((*lines, 'exec "$@"')), "bootstrap", *argv)


def _lost_work(session: Session, workspace: Worktree, mirror: Mirror) -> Rejected | None:
    """The refusal to restart a session whose commits are nowhere to be found."""
    had_commits = session.work.head not in ("", session.work.base)
    known = mirror.known_work(session.id, session.branch)
    if had_commits and not workspace.place.exists() and not known:
        return Rejected(
            f"the branch {session.branch} is gone from GitHub, the workspace"
            f" {workspace.place} is gone too, and the mirror {mirror.path} has"
            f" preserved no work of {session.id}",
            Reason.BRANCH_GONE,
        )
    return None
