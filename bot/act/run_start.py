"""Starts runs: prepares the workspace, restores the home, starts the program."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from msgspec import Struct

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
from runtimes.workspaces.base import Workspace, WorkspaceChanges
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import hold_files, prepare

#: How soon a handover to an agent at its cap is tried again.
_AT_CAP = timedelta(seconds=10)

#: The last so many characters of the progress file, commits and files are sent.
_MOST_OF_PROGRESS, _MOST_LINES = 8_000, 30


class _Prepared(Struct, frozen=True, kw_only=True):
    """A workspace that is ready for a run."""

    workspace: Workspace
    base_branch: str
    base: str  #: The commit the session's work begins at.
    #: The files that were restored from the base branch and differ on the session's branch.
    held: Collection[str]


class AgentDirectory(Protocol):
    """Configured agents, and the assignment of a session to another one."""

    @property
    def names(self) -> Collection[str]: ...

    def system_prompt(self, agent: str) -> str: ...

    def tools(self, agent: str) -> tuple[str, ...]: ...

    def handover_blocker(self, session: Session, name: str) -> str: ...

    def hand_over(self, session: Session, name: str, run: int) -> Session: ...


class Starting:
    """Starts runs. Safe to repeat after a crash."""

    def __init__(
        self,
        facts: FactsReader,
        github: GitHub,
        locations: Locations,
        prompts: Prompts,
        archive: Archive,
        assignment: AgentDirectory,
        models: ModelEndpoints,
        steering: tuple[str, ...],
        clock: Clock,
    ) -> None:
        """`steering` are patterns of the files that are restored from the base branch."""
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
        """End earlier runs, prepare the workspace and start the program."""
        if start.agent:
            if full := self._assignment.handover_blocker(session, start.agent):
                return RetryLater(full, self._clock() + _AT_CAP)
            session = self._handed_over(session, start)
        prepared = self._prepare(session, start)
        if isinstance(prepared, Rejected):
            return prepared
        run = self._locations.run_of(session, start.run)
        try:
            spec = self._spec(session, start, prepared, run)
        except ModelUnavailable as missing:
            return Rejected(str(missing), Reason.SPAWN_FAILED)
        if stopped := check():  # Preparing a workspace can take minutes.
            return stopped
        conversation = self._locations.host.runs.start(run, spec)
        status = prepared.workspace.status()
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
                base=prepared.base,
                head=status.head or prepared.base,
            ),
        )
        return Completed(result=f"run {start.run}", observed=seen)

    def _handed_over(self, session: Session, start: Start) -> Session:
        """Assign the session to the agent that takes over."""
        # First, so that what the former agent wrote is archived as its own.
        end_programs(self._locations, self._archive, session, start.run - 1)
        return self._assignment.hand_over(session, start.agent, start.run)

    def _prepare(self, session: Session, start: Start) -> _Prepared | Rejected:
        """Prepare the workspace; programs of earlier runs are ended first."""
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
        return _Prepared(workspace=workspace, base_branch=base_branch, base=base, held=held)

    def _spec(self, session: Session, start: Start, prepared: _Prepared, run: RunRef) -> StartSpec:
        """The run's first message and limits; also restores the session's home from the archive."""
        self._archive.put_back(session.id)
        host = self._locations.host
        handover = host.records.handover(run)
        values = {
            **values_of(session, prepared.base_branch),
            "summary": handover.summary_path if handover.writable else "",
            "progress": handover.progress_path if handover.writable else "",
            "template": self._locations.mirror(session.project).pull_template(prepared.base),
        }
        text = self._prompts.render(start.prompt, values, keys.visible(session.id, start.key))
        if prepared.held:
            held = Prompt(name="held", values={"files": ", ".join(prepared.held)})
            text = f"{text}\n\n{self._prompts.render(held, {}, '')}"
        if start.run > 1 and not host.runs.resumes(run, start.resume):
            # It does not know the work that the message is about.
            changes = prepared.workspace.changes(prepared.base)
            known = _notes(handover.progress, changes, start.waiting)
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
        """The configured limits of a run. Raises `ModelUnavailable`."""
        return RunLimits(
            system=self._assignment.system_prompt(session.agent_name),
            endpoint=self._models.endpoint(session, run),
            tools=self._assignment.tools(session.agent_name),
        )

    def _foreign_branch(self, session: Session, workspace: Workspace) -> Rejected | None:
        """The rejection of a branch that somebody else pushed under the session's branch name."""
        branch, mirror = session.branch, self._locations.mirror(session.project)
        if workspace.status().exists or mirror.head_of(branch) is None or mirror.pushed(branch):
            return None
        if not any(key.kind is KeyKind.PUSH for key in self._facts.get(session.id).done):
            return Rejected(messages.foreign_branch(branch), Reason.SPAWN_FAILED)
        return None

    def _default_branch(self, session: Session) -> str:
        return self._github.read.repository(session.repository).default_branch


def values_of(session: Session, base_branch: str) -> Mapping[str, str]:
    """The values that every message to a session's agent may use."""
    return {
        "repository": session.repository,
        "branch": session.branch,
        "base_branch": base_branch,
        "number": str(session.issue.number),
        "title": session.issue.title,
        "body": session.issue.body,
    }


def _lost_work(session: Session, workspace: Workspace, mirror: Mirror) -> Rejected | None:
    """The rejection of a session whose commits are lost."""
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


def _notes(
    progress: str, changes: WorkspaceChanges, waiting: Iterable[Mapping[str, str]]
) -> Prompt:
    """The prompt with the earlier agent's progress file, its commits and files, and open messages.

    `waiting` is as in `lifecycle.model.actions.Start`.
    """
    values = {
        "progress": progress[-_MOST_OF_PROGRESS:],
        "commits": _last(changes.commits),
        "uncommitted": _last(changes.uncommitted),
    }
    return Prompt(name="notes", values=values, items=tuple(waiting))


def _last(lines: Sequence[str]) -> str:
    left_out = len(lines) - _MOST_LINES
    more = [f"({left_out} more before these)"] if left_out > 0 else []
    return "\n".join([*more, *lines[-_MOST_LINES:]])
