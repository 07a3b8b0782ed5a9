"""Creates typical sessions: an idle agent, and a pull request with ten checks awaiting review.

The sessions are made as a bot makes them: by observations, reconciliations and results of actions.
Only GitHub and the agents are missing.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from bot.decide.reconciler import Reconciler
from bot.model_proxy.prices import Prices
from bot.observe.agents import AgentObserver
from bot.store import DueAction, NewSession, Observation, Store
from bot.system.crash_points import CrashPoint
from bot.system.locations import Locations, Paths
from config.settings import ProjectSettings
from lifecycle.judge.capacity import Caps
from lifecycle.model.actions import OpenPull, Publish, Start
from lifecycle.model.facts import Check, Issue, Pull, Work
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, CheckState, Merge, Probe
from runtimes.agents.base import AgentType
from runtimes.agents.shell import Shell
from runtimes.base import Launch, Seen
from runtimes.host import RunRef, run_name
from runtimes.isolation import ISOLATIONS
from runtimes.local_records import LocalRecords
from runtimes.workspaces.worktree import Worktree
from tests.world.fake_runtime import FakeRuntime

REPOSITORY, PROJECT = "acme/bench", "bench"
BEGAN = datetime(2030, 1, 1, tzinfo=UTC)
_LONG_AGO = BEGAN - timedelta(days=1)
_ALIVE = Seen(runtime=Probe.ALIVE, program=Probe.ALIVE)
_BASE, _HEAD = "b" * 40, "a" * 40
_CHECKS = tuple(
    Check(id=f"actions/ci/unit-{number}", name=f"unit-{number}", state=CheckState.PASSED)
    for number in range(10)
)


class Population:
    """The parts of a bot around one store, with a manual clock."""

    def __init__(self, folder: Path, restored: int = 0) -> None:
        """Restore the first `restored` sessions of an earlier population; their programs run."""
        self.now = BEGAN if not restored else BEGAN + timedelta(hours=1)
        self.paths = Paths(folder)
        self.store = Store(self.paths.database, clock=self.clock)
        self.runtime = FakeRuntime()
        projects = {PROJECT: ProjectSettings(repository=REPOSITORY)}
        programs = {"shell": Shell(AgentType(program="shell", command=("true",)))}
        self.locations = Locations(
            *(self.paths, projects, "file:///nowhere/", lambda _: "", self.runtime, programs),
            lambda *_: "none",
        )
        self.watch = AgentObserver(
            *(self.store, self.locations, lambda _: Policy(), Prices({})),
            *(self.clock, silent, lambda: None),
        )
        self.reconciler = Reconciler(
            self.store, lambda _: Policy(), self.clock, silent, lambda: None
        )
        self.size = restored
        for number in range(1, restored + 1):
            self._launch(number)

    def later(self, seconds: float) -> None:
        """Move the manual clock forward by `seconds`."""
        self.now += timedelta(seconds=seconds)

    def clock(self) -> datetime:
        """Return the manual clock's time."""
        return self.now

    def grows(self, size: int) -> None:
        """Create sessions until there are `size`, all idle and without due actions."""
        numbers = range(self.size + 1, size + 1)
        self.size = size
        with ThreadPoolExecutor(64) as workers:  # So that their writes are committed together.
            list(workers.map(self._create, numbers))
            self.reconciler.reconcile_due()
            self.store.slots.assign(Caps(sessions=size))
            for _ in range(4):
                self.later(60)
                self.reconciler.reconcile_due()
                while due := self.store.outbox.due(self.now, limit=1000):
                    list(workers.map(self._done, due))
        pulls = [Observation(session=_id(n), run=1, pulls=(self._pull(n),)) for n in numbers]
        self.store.observations.record(pulls, self.now)
        self.later(400)
        self.watch.sweep()
        self.reconciler.reconcile_due()

    def _create(self, number: int) -> None:
        issue = Issue(number=number, title=f"Part {number} breaks", body="It breaks.\n" * 50)
        new = NewSession(
            id=_id(number),
            project=PROJECT,
            repository=REPOSITORY,
            created=self.now,
            issue=issue,
            branch=_branch(number),
            requester=f"person-{number % 20}",
            agent_type="shell",
        )
        self.store.sessions.create(new)

    def _done(self, due: DueAction) -> None:
        number = int(due.session.rpartition("-")[2])
        result, seen = "", None
        if isinstance(due.action, Start):
            seen = self._started(number)
        elif isinstance(due.action, Publish):
            result = due.action.head
        elif isinstance(due.action, OpenPull):
            result = str(10_000 + number)
        self.store.outbox.mark_done(due.seq, result, self.now, observed=seen)

    def _started(self, number: int) -> Observation:
        """A program that has finished, with the files of its workspace and run."""
        branch = _branch(number)
        folder, isolation = self.paths.host / "workspaces", ISOLATIONS["none"]
        workspace = Worktree(folder, _id(number), branch, Path(), lambda: isolation)
        head = workspace.repository / "refs" / "heads" / _branch(number)
        for folder in (head.parent, workspace.place / "bot.git", workspace.path):
            folder.mkdir(parents=True)
        (workspace.place / "made").write_text(_BASE)
        head.write_text(f"{_HEAD}\n")
        run = RunRef(session=_id(number), run=1, agent_type="shell", branch=branch)
        files = LocalRecords({}, self.paths.host).run_files(run)
        files.dir.mkdir(parents=True)
        files.output.write_text("mergewright: ready done\n")
        os.utime(files.output, times=(_LONG_AGO.timestamp(),) * 2)
        self._launch(number)
        agent = self.locations.adapters["shell"].reader(files).read(_ALIVE, None, self.now)
        return Observation(
            session=_id(number),
            run=1,
            agent=replace(agent, activity=Activity.IDLE),
            work=Work(
                path=str(workspace.path),
                branch=_branch(number),
                base=_BASE,
                head=_HEAD,
                dirty=False,
            ),
        )

    def _launch(self, number: int) -> None:
        folder, name = self.paths.host / "sessions", run_name(_id(number), 1)
        launch = Launch(name=name, argv=("true",), cwd=folder, env={}, dir=folder / name)
        self.runtime.start(launch)

    def _pull(self, number: int) -> Pull:
        return Pull(
            number=10_000 + number,
            branch=_branch(number),
            head=_HEAD,
            base=_BASE,
            base_branch="main",
            merge=Merge.CLEAN,
            checks=_CHECKS,
            head_since=self.now,
            green_since=self.now,
            read_at=self.now,
        )


def _id(number: int) -> str:
    return f"{PROJECT}-{number}"


def _branch(number: int) -> str:
    return f"mergewright/{number}-part-breaks"


def silent(step: CrashPoint, about: str) -> None:
    """Discard a crash point."""
