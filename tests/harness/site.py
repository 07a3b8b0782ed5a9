"""One session with a fake runtime and a real Git workspace; GitHub is a folder."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bot.act.dispatch import ActionDispatcher
from bot.act.merging import Merger
from bot.act.message_sender import MessageSender
from bot.act.publishing import Publishing
from bot.act.results import ActionResult, Completed
from bot.act.runs import AgentRuns
from bot.archive.archiver import Archive
from bot.decide.assignment import Assignment
from bot.model_proxy.endpoints import ModelEndpoints
from bot.model_proxy.prices import Prices
from bot.store import Session, SessionDecision
from bot.system.locations import Locations
from bot.system.redaction import Redaction
from bot.text.prompts import Prompts
from config.settings import (
    AgentSettings,
    AgentTypeSettings,
    ProjectSettings,
    RuntimeSettings,
    Settings,
)
from lifecycle.judge.capacity import Caps
from lifecycle.model.actions import Prompt, Start
from lifecycle.model.facts import Ended
from lifecycle.model.key import parse
from lifecycle.model.status import Reason, Status
from runtimes.agents.base import NO_LIMITS, AgentType, LaunchSpec, RunFiles, RunLimits
from runtimes.agents.shared.adapter import AgentAdapter
from runtimes.agents.shell import Shell
from runtimes.isolation import ISOLATIONS
from runtimes.local_records import LocalRecords
from runtimes.workspaces.signing import CommitSigner
from runtimes.workspaces.worktree import Worktree
from tests.world.fake_runtime import FakeRuntime
from tests.world.session_paths import SessionPaths


def git(place: Path, *args: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    said = subprocess.run(
        ["git", *who, *args], cwd=place, text=True, capture_output=True, check=True
    )
    return said.stdout.strip()


_RUNTIME = RuntimeSettings(isolation="none", steering_files=("CLAUDE.md",))
ADA = AgentSettings(types=("shell",), system_prompt="Be kind.", tools=("read",))


class RecordingShell(Shell):
    """A shell adapter that keeps the run limits of its last launch."""

    run_limits = NO_LIMITS

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = NO_LIMITS
    ) -> LaunchSpec:
        self.run_limits = run_limits
        return super().prepare(files, prompt, resume, run_limits)


class Site:
    """One session with a fake runtime and a real workspace; GitHub is a folder."""

    def __init__(self, scenario: Any, folder: Path, begun: Path) -> None:
        """`begun` is a bare repository, of which GitHub gets a copy."""
        self.scenario = scenario
        self.github = folder / "acme" / "widgets.git"
        shutil.copytree(begun, self.github)
        self.runtime = FakeRuntime()
        self.paths = SessionPaths(folder / "data")
        kind = AgentType(program="shell", command=("true",))
        self.program = RecordingShell(kind)
        projects = {
            "widgets": ProjectSettings(repository="acme/widgets", agent="shell", base_branch="main")
        }
        typed = AgentTypeSettings(program="shell", endpoint="http://models/", key="SHELL_KEY")
        settings = Settings(
            agent_types={"shell": typed}, agents={"ada": ADA}, projects=projects, runtime=_RUNTIME
        )
        self.adapters: dict[str, AgentAdapter] = {"shell": self.program}
        self.locations = Locations(
            self.paths,
            projects,
            f"{folder}/",
            lambda _: "",
            self.runtime,
            self.adapters,
            lambda *_: "none",
        )
        unused: Any = None
        self.archive = Archive(self.locations, Redaction())
        self.models = ModelEndpoints(
            settings=settings,
            keys={"SHELL_KEY": "the key"},
            programs=self.locations.adapters,
            store=scenario.store,
            paths=self.paths,
            proxy_url=lambda: "http://proxy",
            priced=Prices({}),
        )
        caps, self.prompts = Caps(sessions=0, agents={"ada": 1}), Prompts()
        identities = Assignment(scenario.store, {"ada": ADA}, projects, caps)
        self.agents = AgentRuns(
            *(scenario.store.facts, unused, self.locations, self.prompts, self.archive),
            *(identities, self.models, settings, scenario.clock),
        )
        self.id: str = scenario.session()

    def dispatcher(
        self,
        github: Any = None,
        people: Any = None,
        redact: Redaction | None = None,
        signer: CommitSigner | None = None,
    ) -> ActionDispatcher:
        """A dispatcher over this site and a mocked GitHub."""
        store, clock = self.scenario.store, self.scenario.clock
        return ActionDispatcher(
            *(store.sessions, store.refreshes, github, self.locations, self.agents),
            MessageSender(store.sessions, store.outbox, self.locations, self.prompts, clock),
            Publishing(
                store.facts,
                github,
                self.locations,
                redact or Redaction(),
                store.agents.add_paths,
                signer,
            ),
            Merger(store.refreshes, github, self.locations, people, clock),
            *(clock, "https://bot/"),
        )

    @property
    def session(self) -> Session:
        found: Session = self.scenario.store.sessions.get(self.id)
        return found

    @property
    def workspace(self) -> Worktree:
        return self.worktree(self.id, self.session.branch)

    @property
    def files(self) -> RunFiles:
        """The files of run 1."""
        records = LocalRecords(self.adapters, self.paths.host)
        return records.run_files(self.locations.run_of(self.session, 1))

    def worktree(self, session: str, branch: str) -> Worktree:
        origin = self.locations.mirror("widgets").path
        unisolated = ISOLATIONS["none"]
        return Worktree(self.paths.workspaces, session, branch, origin, lambda: unisolated)

    def has_env_files(self, files: Mapping[str, str]) -> None:
        """Configure these `env_files` (text by name) for the project's workspaces."""
        projects: Any = self.locations.projects
        projects["widgets"] = replace(projects["widgets"], env_files=tuple(files))
        object.__setattr__(self.agents, "env_files", {"widgets": files})

    def starts(
        self,
        run: int = 1,
        prompt: Prompt | None = None,
        resume: str = "",
        permission_mode: str = "",
    ) -> str:
        outcome = self.tries_to_start(run, prompt, resume, permission_mode)
        assert isinstance(outcome, Completed), outcome
        self.scenario.store.observations.record([outcome.observed], self.scenario.clock())
        return outcome.result

    def tries_to_start(
        self,
        run: int = 1,
        prompt: Prompt | None = None,
        resume: str = "",
        permission_mode: str = "",
    ) -> ActionResult:
        start = Start(
            key=parse(f"start:first#{run}"),
            run=run,
            prompt=prompt or Prompt(name="start" if run == 1 else "resume"),
            resume=resume,
            permission_mode=permission_mode,
        )
        self.scenario.orders(self.id, run=run)
        return self.agents.start(self.session, start, lambda: None)

    def ends(self) -> None:
        """End the session as if a person had stopped it."""
        self.agents.stop(self.session, self.session.run)
        status, reason, because = Status.KILLED, Reason.MANUALLY_KILLED, "stopped by @ada"
        ended = Ended(status=status, reason=reason, because=because, at=self.scenario.clock())
        (loaded,) = self.scenario.store.facts.load([self.id])
        run = self.session.run
        over = SessionDecision(status=status, reason=reason, because=because, run=run, ended=ended)
        self.scenario.store.decisions.record([(loaded, over)], self.scenario.clock())[0].result()
        # The last session to end is reconciled again to post the summary.
        ending = self.scenario.store.facts.load([self.id])
        self.scenario.store.decisions.record([(ending[0], over)], self.scenario.clock())[0].result()

    def prompt(self, run: int) -> str:
        """The first prompt of a run."""
        return (self.paths.run(self.id, run) / "inputs" / "prompt.md").read_text()

    def system_prompt_of_next_run(self) -> str:
        """Start the next run; return its system prompt."""
        run = self.session.run + 1
        self.starts(run)
        return self.program.run_limits.system

    def commits(self, name: str) -> str:
        """Commit as the agent, stop its program and record the observation."""
        (self.workspace.path / name).write_text(name)
        git(self.workspace.path, "add", name)
        git(self.workspace.path, "commit", "--quiet", "-m", name)
        head = self.workspace.head() or ""
        agent = self.agents.stop(self.session, self.session.run).observed
        assert agent
        seen = replace(agent, work=replace(self.session.work, head=head))
        self.scenario.store.observations.record([seen], self.scenario.clock())
        return head
