"""Runs of agents: prepares the workspace, starts and ends the program, and cleans up after it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from bot.act.results import ActionResult, Completed, FinalCheck, Rejected, RetryLater
from bot.act.run_isolation import isolation_spec, not_isolated, session_ports
from bot.act.workspace_files import keep_lfs, place_files
from bot.act.workspace_steps import WorkspaceSteps, cancel
from bot.archive.archiver import Archive
from bot.github.client import GitHub
from bot.model_proxy.endpoints import ModelEndpoints, ModelUnavailable
from bot.store import FactsReader, Observation, Session
from bot.system.clock import Clock
from bot.system.isolation import NotIsolated
from bot.system.locations import Locations
from bot.system.profiles import NotEnforced, limits_of_profiles
from bot.text import messages
from bot.text.prompts import BEGINNINGS, Prompts
from config.settings import Settings
from lifecycle.model import keys
from lifecycle.model.actions import Prompt, Start
from lifecycle.model.facts import Agent, Issue, Work
from lifecycle.model.key import KeyKind
from lifecycle.model.status import Activity, Origin, Probe, Reason
from runtimes.agents.base import RunLimits
from runtimes.host import StartSpec, WorkspaceStep, home_of, run_name
from runtimes.isolation.base import PROXY_PORT
from runtimes.workspaces.changes import WorkspaceChanges
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import hold_files, prepare
from runtimes.workspaces.worktree import Worktree

#: How soon a handover to an agent at its cap is tried again.
_AT_CAP = timedelta(seconds=10)

#: The most characters of the progress file that a message contains, and the most lines of its
#: lists of commits and of files. The end of a longer text is sent.
_MOST_OF_PROGRESS, _MOST_LINES = 8_000, 30


class AgentDirectory(Protocol):
    """The configured agents, and the handover of a session to another agent."""

    @property
    def names(self) -> Collection[str]: ...

    def system_prompt(self, agent: str) -> str: ...

    def tools(self, agent: str) -> tuple[str, ...]: ...

    def handover_blocker(self, session: Session, name: str) -> str: ...

    def hand_over(self, session: Session, name: str, run: int) -> Session: ...


@dataclass(frozen=True)
class AgentRuns:
    """Starts, stops and releases runs. Every method is safe to repeat after a crash."""

    facts: FactsReader
    github: GitHub
    locations: Locations
    prompts: Prompts
    archive: Archive
    agents: AgentDirectory
    models: ModelEndpoints
    settings: Settings
    clock: Clock
    #: By project: the texts of its `env-files`, by file name.
    env_files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def start(self, session: Session, start: Start, check: FinalCheck) -> ActionResult:
        """End earlier runs, prepare the run's workspace and home, and start the agent's program."""
        if start.agent:
            if full := self.agents.handover_blocker(session, start.agent):
                return RetryLater(full, self.clock() + _AT_CAP)
            # First, so that what the former agent wrote is archived as its own.
            end_programs(self.locations, self.archive, session, start.run - 1)
            session = self.agents.hand_over(session, start.agent, start.run)
        host, mirror = self.locations.host, self.locations.mirror(session.project)
        project, before = self.locations.projects[session.project], start.run - 1
        base_branch = project.base_branch or self._default_branch(session)
        for earlier in range(1, start.run):
            host.runtime.stop(run_name(session.id, earlier))
        mirror.refresh()
        workspace = self.locations.workspace_of(session)
        if lost := _lost_work(session, workspace, mirror) or self._foreign(session, workspace):
            return lost
        if stopped := check():  # Fetching can take minutes.
            return stopped
        run = self.locations.run_of(session, start.run)
        held: Sequence[str] = ()
        steering = self.settings.runtime.steering_files
        if workspace.exists and run.name in host.runtime.look():
            # A crash left its start unrecorded: the agent works in it by now.
            base = workspace.base() or mirror.head_of(base_branch)
        else:
            adopted = session.work.base if session.origin is Origin.PULL else ""
            begins = adopted or base_branch
            base = prepare(mirror, workspace, begins, before, lambda: check() is None)
            if base is not None and check() is None:
                if refused := place_files(
                    *(self.locations, session, workspace, base),
                    env_files=self.env_files.get(session.project, {}),
                    steering=steering,
                ):
                    return refused
                cancel(self.locations, session, WorkspaceStep.TEARDOWN)
                if later := self._steps.set_up(session, start.run):
                    return later
                tip = mirror.head_of(base_branch) or base
                if workspace.made_at != tip:  # Its files are not those of that commit.
                    held = hold_files(mirror, workspace, tip, steering, before)
        if stopped := check():
            return stopped
        if base is None:
            return RetryLater("its workspace could not be made: this bot may no longer act")
        self.archive.put_back(session.id)
        try:
            isolation = isolation_spec(
                self.settings,
                self.locations,
                session,
                lambda: self.models.proxy_variables(session, start.run, PROXY_PORT),
            )
            spec = StartSpec(
                isolation=isolation,
                env=session_ports(self.locations, session),
                prompt=self._first_message(session, start, workspace, base_branch, base, held),
                resume=start.resume,
                limits=replace(
                    self._limits(session, start.permission_mode),
                    system=self.agents.system_prompt(session.agent_name),
                    endpoint=self.models.endpoint(session, start.run, isolation.proxy is not None),
                ),
                bootstrap=project.bootstrap,
            )
        except NotIsolated as missing:
            return not_isolated(missing)
        except (ModelUnavailable, NotEnforced) as missing:
            return Rejected(str(missing), Reason.SPAWN_FAILED)
        if stopped := check():  # Preparing a workspace can take minutes.
            return stopped
        conversation = host.runs.start(run, spec)
        agent = Agent(
            run=start.run,
            since=self.clock(),
            runtime=Probe.ALIVE,
            program=Probe.ALIVE,
            native_id=conversation or start.resume,
            evidence="the agent's program was started",
        )
        head, path = workspace.head() or base, str(workspace.path)
        work = Work(path=path, branch=session.branch, base=base, head=head)
        seen = Observation(session=session.id, run=start.run, agent=agent, work=work)
        return Completed(result=f"run {start.run}", observed=seen)

    def stop(self, session: Session, run: int) -> Completed:
        """End the agent's program, all its processes and a running set-up; the workspace stays."""
        end_programs(self.locations, self.archive, session, run)
        cancel(self.locations, session, WorkspaceStep.SETUP)
        return Completed(
            observed=Observation(session=session.id, run=run, agent=_stopped(session.agent))
        )

    def release(self, session: Session, run: int) -> Completed | RetryLater:
        """End the program, run the project's `teardown` commands, and remove the workspace.

        Commits that were not pushed and uncommitted changes are preserved in the mirror.
        """
        workspace = self.locations.workspace_of(session)
        completed, failed = workspace.completed, ""
        end_programs(self.locations, self.archive, session, run)
        if workspace.completed == completed:
            cancel(self.locations, session, WorkspaceStep.SETUP)
            ended = self._steps.tear_down(session, run)
            if isinstance(ended, RetryLater):
                return ended
            failed = ended
        kept = _removed(self.locations, self.archive, session, run, completed)
        agent, work = _stopped(session.agent), replace(session.work, path="")
        seen = Observation(session=session.id, run=run, agent=agent, work=work)
        result = "; ".join(filter(None, (kept and f"kept {kept}", failed)))
        return Completed(result=result, observed=seen)

    def _limits(self, session: Session, mode: str) -> RunLimits:
        """Return what the run may use.

        `mode` is the permission mode chosen for it, or empty. The profile of the project or of
        the agent type may require a stricter one.

        Raises `NotEnforced` if the agent's program cannot enforce a limit.
        """
        project, kind = self.settings.projects.get(session.project), session.agent_type
        tools, adapter = self.agents.tools(session.agent_name), self.locations.adapters[kind]
        return limits_of_profiles(self.settings, project, kind, tools, adapter, mode)

    @property
    def _steps(self) -> WorkspaceSteps:
        return WorkspaceSteps(self.locations, self.models, self.settings, self.clock)

    def _first_message(
        self,
        session: Session,
        start: Start,
        workspace: Worktree,
        base_branch: str,
        base: str,
        held: Collection[str],
    ) -> str:
        """Return the text that a run starts with; empty if it waits for a person's message.

        `held` lists the files with agent instructions, such as AGENTS.md, that were restored from
        the base branch.
        """
        if not start.prompt.name:
            return ""
        host, run = self.locations.host, self.locations.run_of(session, start.run)
        handover = host.records.handover(run)
        values = {
            **values_of(session, base_branch),
            "summary": handover.summary_path if handover.writable else "",
            "progress": handover.progress_path if handover.writable else "",
            "template": self.locations.mirror(session.project).pull_template(base),
        }
        render = partial(self.prompts.render, project=session.project)
        parts = [render(start.prompt, values, keys.visible(session.id, start.key))]
        if about := discussion_prompt(session.issue, start.discussion):
            parts.append(render(about, values, ""))
        if held:
            prompt = Prompt(name="held", values={"files": ", ".join(held)})
            parts.append(render(prompt, {}, ""))
        if start.run > 1 and not host.runs.resumes(run, start.resume):
            # It does not know the work that the message is about.
            notes = _notes(handover.progress, workspace.changes(base), start.waiting)
            known = render(notes, {}, "")
            if start.agent or start.prompt.name in BEGINNINGS:
                parts.append(known)
            else:
                parts = [render(Prompt(name="resume"), values, ""), known, *parts]
        return "\n\n".join(parts)

    def _default_branch(self, session: Session) -> str:
        return self.github.read.default_branch(session.repository)

    def _foreign(self, session: Session, workspace: Worktree) -> Rejected | None:
        """Return the rejection of a start if somebody else pushed the session's branch.

        Returns None if nobody did, if the workspace exists, or for an adopted pull request.
        """
        branch, mirror = session.branch, self.locations.mirror(session.project)
        if session.origin is Origin.PULL:
            return None
        if workspace.exists or mirror.head_of(branch) is None or mirror.pushed(branch):
            return None
        if any(key.kind is KeyKind.PUSH for key in self.facts.get(session.id).done):
            return None
        return Rejected(messages.foreign_branch(branch), Reason.SPAWN_FAILED)


def end_programs(locations: Locations, archive: Archive, session: Session, run: int) -> None:
    """End all processes of the session's runs 1 to `run`, and archive the files of these runs.

    The run tokens are deleted, so that no surviving process can use a model.
    """
    for number in range(1, run + 1):
        locations.host.runtime.stop(run_name(session.id, number))
        locations.paths.run_token(session.id, number).unlink(missing_ok=True)
    archive.keep(session)


def release(locations: Locations, archive: Archive, session: Session, run: int) -> str | None:
    """End a session's programs, preserve its work in the mirror, remove its workspace and home.

    Every step is safe to repeat. If another bot has meanwhile restored the session, the workspace
    that it made is kept. Returns the commit with the preserved work, or None if there was nothing
    to preserve.
    """
    completed = locations.workspace_of(session).completed
    end_programs(locations, archive, session, run)
    return _removed(locations, archive, session, run, completed)


def _removed(
    locations: Locations, archive: Archive, session: Session, run: int, completed: int
) -> str | None:
    """Preserve a session's work, then remove its workspace and home.

    The session's programs must have ended. Returns the commit with the preserved work, or None if
    there was nothing to preserve.
    """
    workspace = locations.workspace_of(session)
    if workspace.completed == completed:
        for step in WorkspaceStep:
            cancel(locations, session, step)
    if kept := locations.mirror(session.project).preserve(workspace, run):
        keep_lfs(locations, session, workspace, kept)
    if workspace.remove(completed):
        locations.host.ports.release(session.id)
        archive.pack(session.id)
        locations.host.records.remove(home_of(session.id))
    return kept


def values_of(session: Session, base_branch: str) -> dict[str, str]:
    """Return the values that every message to a session's agent may use, by name.

    For a session without an issue, `work` is `task` instead of `issue`, and `number` is empty.
    """
    return {
        "work": "issue" if session.issue.number else "task",
        "repository": session.repository,
        "branch": session.branch,
        "base_branch": base_branch,
        "number": str(session.issue.number or ""),
        "title": session.issue.title,
        "body": session.issue.body,
    }


def discussion_prompt(issue: Issue, items: Sequence[Mapping[str, str]]) -> Prompt | None:
    """Return the prompt with an issue's labels, milestone, comments, and what refers to it.

    `items` are the comments. Returns None if the issue has none of these.
    """
    facts = {
        "Labels": issue.labels,
        "Milestone": filter(None, (issue.milestone,)),
        "Issues and pull requests that refer to it": issue.linked,
    }
    listed = {what: ", ".join(names) for what, names in facts.items()}
    about = "\n".join(f"{what}: {names}" for what, names in listed.items() if names)
    if not about and not items:
        return None
    values = {"about": about, "left_out": str(issue.left_out or "")}
    return Prompt(name="discussion", values=values, items=tuple(items))


def _stopped(agent: Agent) -> Agent:
    exited, dead = Activity.EXITED, Probe.DEAD
    return replace(
        agent,
        activity=exited,
        runtime=dead,
        program=dead,
        stopped=True,
        evidence="the agent's program was stopped",
    )


def _lost_work(session: Session, workspace: Worktree, mirror: Mirror) -> Rejected | None:
    """Return the rejection of a start if the session's commits exist nowhere any more."""
    had_commits = session.work.head not in ("", session.work.base)
    if not had_commits or workspace.exists or mirror.known_work(session.id, session.branch):
        return None
    return Rejected(
        f"the branch {session.branch} is not on GitHub, the workspace {workspace.path} is gone, and"
        f" the mirror {mirror.path} has preserved no work of {session.id}",
        Reason.BRANCH_GONE,
    )


def _notes(
    progress: str, changes: WorkspaceChanges, waiting: Iterable[Mapping[str, str]]
) -> Prompt:
    """Return the prompt that tells an agent without memory of the work what was done so far.

    It contains the end of the progress file, the last commits and uncommitted changes, and
    `waiting`: open work on GitHub and the issue's discussion, as in `Start.waiting`.
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
