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
from bot.store import FactsReader, Observation, Session
from bot.system.clock import Clock
from bot.system.locations import Locations
from bot.text import messages
from bot.text.prompts import BEGINNINGS, Prompts
from lifecycle.model import keys
from lifecycle.model.actions import Prompt, Start
from lifecycle.model.facts import Agent, Work
from lifecycle.model.key import KeyKind
from lifecycle.model.status import Probe, Reason
from runtimes.agents.base import RunLimits
from runtimes.host import RunRef, StartSpec, run_name
from runtimes.workspaces.base import Workspace
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import hold_files, prepare

#: How soon an agent that has as much to do as it may is asked again to take a session over.
_NO_ROOM = timedelta(seconds=10)


class _Ground(Struct, frozen=True, kw_only=True):
    """Where a run begins: the workspace, at a commit, with what it may not change held."""

    workspace: Workspace
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
        facts: FactsReader,
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
        self._facts = facts
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
        run = self._locations.run_of(session, start.run)
        try:
            spec = self._spec(session, start, ground, run)
        except ModelUnavailable as missing:
            return Rejected(str(missing), Reason.SPAWN_FAILED)
        if stopped := check():  # Making a workspace may have taken minutes.
            return stopped
        conversation = self._locations.host.runs.start(run, spec)
        status = ground.workspace.status()
        seen = Observation(
            session=session.id,
            run=start.run,
            agent=Agent(
                run=start.run,
                since=self._clock(),
                runtime=Probe.ALIVE,
                program=Probe.ALIVE,
                native_id=conversation or start.resume,
                evidence="its program was started",
            ),
            work=Work(
                path=status.location,
                branch=session.branch,
                base=ground.base,
                head=status.head or ground.base,
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
            self._locations.host.runs.stop(run_name(session.id, earlier))
        mirror.refresh()
        workspace = self._locations.workspace_of(session)
        lost = _lost_work(session, workspace, mirror) or self._foreign_branch(session, workspace)
        if lost:
            return lost
        before = start.run - 1
        base = prepare(mirror, workspace, base_branch, before)
        tip = mirror.head_of(base_branch) or base
        held = hold_files(mirror, workspace, tip, self._steering, before)
        return _Ground(workspace=workspace, base_branch=base_branch, base=base, held=held)

    def _spec(self, session: Session, start: Start, ground: _Ground, run: RunRef) -> StartSpec:
        """The run's first message and limits, with the session's home restored."""
        self._archive.put_back(session.id)
        host = self._locations.host
        handover = host.records.handover(run)
        values = {
            **values_of(session, ground.base_branch),
            "summary": handover.summary_path if handover.writable else "",
            "progress": handover.progress_path if handover.writable else "",
            "template": self._locations.mirror(session.project).pull_template(ground.base),
        }
        text = self._prompts.render(start.prompt, values, keys.visible(session.id, start.key))
        if ground.held:
            held = Prompt(name="held", values={"files": ", ".join(ground.held)})
            text = f"{text}\n\n{self._prompts.render(held, {}, '')}"
        if start.run > 1 and not host.runs.resumes(run, start.resume):
            # A message alone would be about work that it does not know.
            changes = ground.workspace.changes(ground.base)
            known = notes(handover.progress, changes, start.waiting)
            parts = [self._prompts.render(known, {}, "")]
            if start.agent or start.prompt.name in BEGINNINGS:
                parts.insert(0, text)
            else:
                parts = [self._prompts.render(Prompt(name="resume"), values, ""), *parts, text]
            text = "\n\n".join(parts)
        return StartSpec(
            prompt=text,
            resume=start.resume,
            limits=self._limits(session, start.run),
            bootstrap=self._locations.projects[session.project].bootstrap,
        )

    def _limits(self, session: Session, run: int) -> RunLimits:
        """What the configuration holds this run to. Raises `ModelUnavailable`."""
        return RunLimits(
            system=self._assignment.system_prompt(session.agent_name),
            endpoint=self._models.endpoint(session, run),
            tools=self._assignment.tools(session.agent_name),
        )

    def _foreign_branch(self, session: Session, workspace: Workspace) -> Rejected | None:
        """The refusal to begin on a branch of this name that somebody else pushed."""
        branch, mirror = session.branch, self._locations.mirror(session.project)
        if workspace.status().exists or mirror.head_of(branch) is None or mirror.pushed(branch):
            return None
        if not any(key.kind is KeyKind.PUSH for key in self._facts.get(session.id).done):
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


def _lost_work(session: Session, workspace: Workspace, mirror: Mirror) -> Rejected | None:
    """The refusal to restart a session whose commits are nowhere to be found."""
    had_commits = session.work.head not in ("", session.work.base)
    known = mirror.known_work(session.id, session.branch)
    status = workspace.status()
    if had_commits and not status.exists and not known:
        return Rejected(
            f"the branch {session.branch} is gone from GitHub, the workspace"
            f" {status.location} is gone too, and the mirror {mirror.path} has"
            f" preserved no work of {session.id}",
            Reason.BRANCH_GONE,
        )
    return None
