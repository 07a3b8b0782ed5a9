"""Check suites, check runs and commit statuses of a repository's commits."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bot.demo.github.hosting import RepositoryBase
from bot.demo.github.issues import TrackedRepository
from bot.demo.github.world import App, Thing, User, World, locked

#: Conclusions of runs, the worst first. A suite has the worst conclusion of its runs.
WORST_FIRST = (
    "action_required",
    "timed_out",
    "cancelled",
    "failure",
    "stale",
    "success",
    "neutral",
    "skipped",
)


@dataclass(eq=False, kw_only=True, repr=False)
class CheckSuite(Thing):
    """All check runs of one App on one commit. GitHub Actions has a suite for each workflow."""

    repo: RepositoryBase
    app: App
    head_sha: str
    head_branch: str | None
    workflow: str | None
    event: str = "pull_request"  #: Why the workflow ran.
    before: str | None = None
    runs: list["CheckRun"] = field(default_factory=list)

    @property
    def latest(self) -> list["CheckRun"]:
        """The newest run of each name."""
        return list({run.name: run for run in self.runs}.values())

    @property
    def status(self) -> str:
        if not self.runs:
            return "queued"
        statuses = {run.status for run in self.latest}
        return statuses.pop() if len(statuses) == 1 else "in_progress"

    @property
    def conclusion(self) -> str | None:
        if self.status != "completed":
            return None
        return min((run.conclusion or "stale" for run in self.latest), key=WORST_FIRST.index)


@dataclass(eq=False, kw_only=True, repr=False)
class CheckRun(Thing):
    """One run of a check. A job of GitHub Actions has a log; other runs have an output."""

    suite: CheckSuite
    name: str
    status: str = "queued"
    conclusion: str | None = None
    external_id: str = ""
    details_url: str | None = None
    completed_at: datetime | None = None
    output: dict[str, Any] = field(default_factory=dict)  #: title, summary, text, annotations
    log: str = ""
    attempt: int = 1  #: For a job of Actions: how often it has been run, this run included.

    @property
    def world(self) -> World:
        return self.suite.repo.world

    @property
    def cleaned_at(self) -> datetime:
        """The end of the job's last step, the clean-up."""
        return (self.completed_at or self.created_at) + timedelta(seconds=2)

    @property
    def is_job(self) -> bool:
        return self.suite.app.slug == "github-actions"

    @locked
    def start(self) -> None:
        self.update(status="in_progress")

    @locked
    def complete(self, conclusion: str, log: str = "") -> None:
        """End the run with one of GitHub's conclusions, such as `success` or `timed_out`."""
        self.write_log(log)
        self.update(status="completed", conclusion=conclusion)

    def write_log(self, log: str) -> None:
        """Store a run's log where GitHub does: as the log of a job, or else in the output."""
        if log and self.is_job:
            self.log = log
        elif log:
            self.output = {"title": self.name, "summary": "", **self.output, "text": log}

    def update(self, *, status: str, conclusion: str | None = None) -> None:
        """Change the run's status, and publish events if that completes the run or its suite."""
        was_completed = self.status == "completed"
        self.status, self.conclusion = status, conclusion
        self.updated_at = self.world.now()
        if status != "completed" or was_completed:
            return
        self.completed_at = self.world.now()
        self.publish("completed")
        if self.suite.status == "completed":
            suite = self.suite
            suite.repo.publish("check_suite", "completed", suite.app.bot.login, check_suite=suite)

    def publish(self, action: str) -> None:
        self.suite.repo.publish("check_run", action, self.suite.app.bot.login, check_run=self)


@dataclass(eq=False, kw_only=True, repr=False)
class CommitStatus(Thing):
    repo: RepositoryBase
    sha: str
    context: str
    state: str
    creator: User
    description: str | None = None
    target_url: str | None = None


class Checks:
    """The checks of one repository, by commit."""

    def __init__(self, repo: RepositoryBase) -> None:
        self.repo = repo
        self.suites: list[CheckSuite] = []
        self.statuses: list[CommitStatus] = []

    @property
    def world(self) -> World:
        return self.repo.world

    def suites_of(self, sha: str) -> list[CheckSuite]:
        return [suite for suite in self.suites if suite.head_sha == sha]

    def runs_of(self, sha: str, latest: bool = True) -> list[CheckRun]:
        suites = self.suites_of(sha)
        return [run for suite in suites for run in (suite.latest if latest else suite.runs)]

    def statuses_of(self, sha: str) -> list[CommitStatus]:
        """Return a commit's statuses, of each context only the newest."""
        found = {status.context: status for status in self.statuses if status.sha == sha}
        return list(found.values())

    def suite(self, app: App, sha: str, workflow: str | None = None) -> CheckSuite:
        """Return the suite of this App (and workflow) on a commit; create it if there is none."""
        for known in self.suites_of(sha):
            if known.app is app and known.workflow == workflow:
                return known
        made = CheckSuite(
            repo=self.repo,
            app=app,
            head_sha=sha,
            head_branch=next((b for b, head in self.repo.heads.items() if head == sha), None),
            workflow=workflow,
            **self.world.identity("CS"),
        )
        self.suites.append(self.world.add(made))
        return made

    @locked
    def run(
        self,
        app: App,
        sha: str,
        name: str,
        workflow: str | None = None,
        external_id: str = "",
        details_url: str | None = None,
    ) -> CheckRun:
        """Create a queued check run."""
        if workflow is None and app.slug == "github-actions":
            workflow = "CI"
        suite = self.suite(app, sha, workflow)
        run = CheckRun(
            suite=suite,
            name=name,
            external_id=external_id,
            details_url=details_url,
            **self.world.identity("CR"),
        )
        suite.runs.append(self.world.add(run))
        run.publish("created")
        return run

    @locked
    def rerun(self, run: CheckRun) -> CheckRun:
        """Queue another run of the same check."""
        again = CheckRun(
            suite=run.suite,
            name=run.name,
            attempt=run.attempt + 1,
            **self.world.identity("CR"),
        )
        run.suite.runs.append(self.world.add(again))
        again.publish("created")
        return again

    @locked
    def status(
        self,
        sha: str,
        context: str,
        state: str,
        by: str,
        description: str | None = None,
        target_url: str | None = None,
    ) -> CommitStatus:
        status = CommitStatus(
            repo=self.repo,
            sha=sha,
            context=context,
            state=state,
            creator=self.world.account(by),
            description=description,
            target_url=target_url,
            **self.world.identity("SC"),
        )
        self.statuses.append(self.world.add(status))
        self.repo.publish("status", None, by, status=status)
        return status

    def outcomes(self, sha: str) -> dict[str, str]:
        """Return each check's and status's outcome by name: `success`, `pending` or `failure`."""
        found = {status.context: status.state for status in self.statuses_of(sha)}
        for run in self.runs_of(sha):
            passed = run.conclusion in ("success", "neutral", "skipped")
            ended = "success" if passed else "failure"
            found[run.name] = ended if run.status == "completed" else "pending"
        return {name: "failure" if s == "error" else s for name, s in found.items()}


@dataclass(eq=False, kw_only=True, repr=False)
class CheckedRepository(TrackedRepository):
    """A repository whose commits are checked."""

    def __post_init__(self) -> None:
        self.checks = Checks(self)
