"""The steps of story tests: a stand-in for GitHub, people, a bot, and scripted agents."""

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bot.app.application import App
from bot.demo.bot_process import free_port
from bot.demo.github.issues import Issue
from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.demo.github.world import App as GitHubApp
from bot.github.github_app import PERMISSIONS
from bot.store import Session, Store
from bot.system.locations import Paths
from config.load import Secrets, load_settings
from config.settings import Settings
from runtimes import RUNTIMES
from runtimes.base import Options
from tests.world.app_key import PRIVATE, PUBLIC
from tests.world.clock import Clock
from tests.world.faulty_github import FaultyGitHub
from tests.world.waiting import PATIENCE, eventually

BOT, ALICE, ROB, MALLORY = "mergewright-bot", "alice", "rob", "mallory"
SECRET, TOKEN = "the-secret-of-the-webhook", "the-token-of-the-bot"
_CONFIG = """
[server]
port = {port}
data = "{data}"
[github]
api-url = "{url}api/v3/"
app-id = "{app_id}"
app-slug = "mergewright-bot"
allowed-owners = ["acme"]
events = "{events}"
[projects.widgets]
repository = "acme/widgets"
agent = "scripted"
{project}
[installation]
{installation}
[agent-types.scripted]
program = "shell"
command = ["{python}", "-I", "-S", "{scripted_agent}"]
env = {{ SCRIPTED_AGENT = "{agent_folders}" }}
pass-env = ["SCRIPTED_AGENT_KEY"]
[agent-types.scripted-claude]
program = "claude"
command = ["{python}", "-I", "-S", "{scripted_claude}"]
env = {{ SCREENS = "{screens}" }}
[runtime]
isolation = "none"
[limits]
sessions = {sessions}
memory-per-session-mb = {session_mb}
[policy]
{policy}
[timing]
sweep-seconds = 0.2
resync-seconds = {resync}
poll-seconds = {resync}
lease-seconds = 2
write-interval-seconds = 0.01
action-retry-seconds = 0.1
[signing]
{signing}
{notifiers}
"""

#: Screens of Claude Code as it asked several questions at once.
_SCREENS = Path(__file__).parent.parent / "runtimes/recordings/claude/waiting_input/several"
_POLICY: Mapping[str, object] = {
    "mode": "merge",
    "check_run": False,
    "settle_seconds": 0.2,
    "review_debounce_seconds": 0.2,
    "merge_grace_seconds": 1,
    "message_grace_seconds": 2,
    "restart_seconds": 0.1,
}


class World:
    """The environment of a story test. Closing it stops the bot and all agents."""

    def __init__(self, folder: Path, github: FaultyGitHub) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.github = github
        self.agent_folders = folder / "agents"
        self.clock = Clock()
        self.secrets = Secrets(token=TOKEN, webhook_secret=SECRET, page_token="the page's token")
        github.bot_account(BOT, token=TOKEN)
        self.repo = github.repository("acme/widgets", files={"README.md": "# Widgets\n"})
        self.repo.permission(BOT, "write")
        for login in (ALICE, ROB):
            github.user(login)
            self.repo.permission(login, "write")
        github.user(MALLORY)
        self.port = free_port()
        self.repo.webhook(f"http://127.0.0.1:{self.port}/webhooks/github", SECRET)
        self.app: App | None = None
        self.app_id = ""
        self.project = ""  #: Further lines of the project's table in the configuration.
        self.installation = ""  #: The lines of the table `[installation]` in the configuration.
        self.signing = ""  #: The lines of the table `[signing]` in the configuration.
        self.notifiers = ""  #: The tables of notifiers in the configuration.

    # -- the bot

    def has_an_app(self) -> GitHubApp:
        """Make the bot an App with a webhook and its manifest's permissions, without a token."""
        app = self.github.app(BOT, PUBLIC)
        app.permissions = {one.name: one.level for one in PERMISSIONS}
        self.github.app_webhook(app, f"http://127.0.0.1:{self.port}/webhooks/github", SECRET)
        self.repo.permission(app.bot.login, "write")
        self.secrets = replace(self.secrets, token="", private_key=PRIVATE)
        self.app_id = str(app.id)
        return app

    def bot_has_a_fork(self) -> Repository:
        """Have the bot push its branches to its own fork."""
        fork = self.repo.fork(BOT)
        self.project = f'push-to = "fork"\nfork = "{fork.full_name}"'
        return fork

    def settings(
        self,
        policy: Mapping[str, object] = {},
        resync_seconds: float = 600,
        sessions: int = 4,
        session_mb: int = 0,
        events: str = "webhooks",
    ) -> Settings:
        """Write and load the configuration; `policy` overrides the thresholds of `_POLICY`."""
        path = self.folder / "mergewright.toml"
        lines = {**_POLICY, **policy}
        path.write_text(
            _CONFIG.format(
                port=self.port,
                data=self.data,
                url=self.github.url,
                app_id=self.app_id,
                project=self.project,
                installation=self.installation,
                signing=self.signing,
                notifiers=self.notifiers,
                python=sys.executable,
                scripted_agent=Path(__file__).with_name("scripted_agent.py"),
                agent_folders=self.agent_folders,
                scripted_claude=Path(__file__).with_name("scripted_claude.py"),
                screens=_SCREENS,
                policy="\n".join(
                    f"{name.replace('_', '-')} = {json.dumps(value)}"
                    for name, value in lines.items()
                ),
                resync=resync_seconds,
                sessions=sessions,
                session_mb=session_mb,
                events=events,
            )
        )
        return load_settings(path)

    def bot_starts(
        self,
        policy: Mapping[str, object] = {},
        resync_seconds: float = 600,
        sessions: int = 4,
        session_mb: int = 0,
        events: str = "webhooks",
    ) -> App:
        """Start a bot in this process, and wait until it is the leader."""
        settings = self.settings(policy, resync_seconds, sessions, session_mb, events)
        self.app = App(settings, self.secrets, clock=self.clock)
        self.app.start()
        eventually(lambda: self.app and not self.app.health().standby_reason, "the bot acts")
        return self.app

    def bot_stops(self) -> None:
        if self.app is not None:
            self.app.stop()
            self.app = None

    @property
    def store(self) -> Store:
        assert self.app is not None
        return self.app.wiring.store

    def close(self) -> None:
        self.bot_stops()
        self.every_agent_is_killed()

    def every_agent_is_killed(self) -> None:
        runtime = RUNTIMES["tmux"](Options(data=Paths(self.data).runtime))
        for name in runtime.look():
            runtime.stop(name, grace_seconds=0.1)

    # -- people

    def issue(self, title: str = "More widgets", body: str = "We need more.") -> "IssueStory":
        return IssueStory(self, self.repo.open_issue(title, body, by=ALICE))

    def agent_starts(self, **policy: object) -> "IssueStory":
        """Start a bot, label an issue and wait until its agent has its first prompt."""
        self.bot_starts(policy)
        issue = self.issue("Add widgets").is_labelled()
        issue.agent.starts()
        return issue

    def agent_opens_a_pull_request(self, **policy: object) -> "IssueStory":
        """Do as `agent_starts`, and wait until the agent's first commit has a pull request."""
        issue = self.agent_starts(**policy)
        issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
        assert issue.pull
        return issue

    def time_passes(self, **much: float) -> None:
        """Move the clock of bot and agents forward: `days=3`. GitHub keeps the real time."""
        self.clock.leaps(timedelta(**much))

    def waits_for_the_next_second(self) -> None:
        """Wait for the next second: GitHub's times are whole seconds."""
        now = int(time.time())
        eventually(lambda: int(time.time()) > now, "the next second")


class IssueStory:
    """An issue and its session, once it has one."""

    def __init__(self, world: World, issue: Issue) -> None:
        self.world = world
        self.issue = issue
        self.id = f"widgets-{issue.number}"

    def is_labelled(self, by: str = ALICE) -> "IssueStory":
        self.issue.label("mergewright", by=by)
        return self

    @property
    def session(self) -> Session | None:
        return self.world.store.sessions.get(self.id)

    def becomes(self, status: str) -> Session:
        """Wait until the session has this status, and return the session."""

        def there() -> Session | None:
            session = self.session
            self._last = f"{session.status}: {session.because}" if session else "no session"
            return session if session and session.status == status else None

        try:
            return eventually(there, f"{self.id} becomes {status}")
        except AssertionError as failure:
            raise AssertionError(f"{failure} ({self._last})") from None

    @property
    def agent(self) -> "AgentStory":
        return AgentStory(self)

    @property
    def pull(self) -> "PullStory":
        """The session's pull request; waits until there is one."""

        def opened() -> Pull | None:
            session = self.session
            branch = session.branch if session else ""
            found = [pull for pull in self.world.repo.pulls if pull.head_branch == branch]
            return found[0] if found else None

        return PullStory(self.world, eventually(opened, f"{self.id} has a pull request"))

    def comments_by(self, by: str = BOT) -> list[str]:
        """Return the texts of one account's comments on the issue."""
        return [c.body for c in self.issue.comments if c.user.login == by]


class AgentStory:
    """The scripted agent of a session: gives it orders, and reads what it received."""

    def __init__(self, story: IssueStory) -> None:
        self._story = story
        self._folder = story.world.agent_folders / story.id

    def _order(self, **order: Any) -> "AgentStory":
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "orders").open("a") as file:
            file.write(json.dumps(order) + "\n")
        return self

    def commits(self, files: Mapping[str, str], subject: str = "Make more widgets") -> "AgentStory":
        add, commit = ["git", "add", "--all"], ["git", "commit", "-q", "-m", subject]
        return self._order(say="active working", write=dict(files), run=[add, commit])

    def writes(self, files: Mapping[str, str]) -> "AgentStory":
        return self._order(say="active working", write=dict(files))

    def writes_summary(self, text: str) -> "AgentStory":
        """Write the pull request's text to the file that the prompt names."""
        (posted,) = re.findall(r"to the file `(.+)`", self.starts()["text"])
        return self.writes({posted: text})

    def runs(self, *commands: Sequence[str]) -> "AgentStory":
        return self._order(run=[list(command) for command in commands])

    def ends_its_turn(self, summary: str = "Done.") -> "AgentStory":
        return self._order(say=f"ready {summary}")

    def says(self, line: str) -> "AgentStory":
        """Print one report line of the shell agent's protocol."""
        return self._order(say=line)

    def is_killed(self) -> "AgentStory":
        """Kill the agent in the middle of a command it runs."""
        return self.runs(["sh", "-c", "kill -9 $PPID"])

    def asks(self, question: str) -> "AgentStory":
        return self._order(say=f"waiting {question}")

    def exits(self, code: int = 0) -> "AgentStory":
        return self._order(exit=code)

    @property
    def received(self) -> list[dict[str, Any]]:
        """The prompts and messages that it received, in order, as JSON objects."""
        path = self._folder / "received"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        # The last line may be incomplete.
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def receives(self, text: str, seconds: float = PATIENCE) -> dict[str, Any]:
        """Wait until it receives a prompt or message that contains `text`; return that."""

        def found() -> dict[str, Any] | None:
            return next((entry for entry in self.received if text in entry["text"]), None)

        return eventually(found, f"the agent of {self._story.id} receives {text!r}", seconds)

    def starts(self) -> dict[str, Any]:
        """Wait for its first prompt, and return it."""
        return eventually(lambda: self.received, f"the agent of {self._story.id} starts")[0]

    def resumes(self) -> dict[str, Any]:
        """Wait for the prompt of a run that resumes a stopped one, and return it."""
        return self.receives("was stopped before you finished")


class PullStory:
    """A pull request, its checks and its reviewers."""

    def __init__(self, world: World, pull: Pull) -> None:
        self.world = world
        self.pull = pull

    def ci_fails(self, name: str = "unit", log: str = "it broke") -> "PullStory":
        self.pull.check(name, conclusion="failure", log=log, suite="ci")
        return self

    def ci_passes(self, name: str = "unit") -> "PullStory":
        self.pull.check(name, conclusion="success", suite="ci")
        return self

    def moves_from(self, head: str, seconds: float = PATIENCE) -> str:
        """Wait until the head is another commit than `head`, and return it."""
        return eventually(
            lambda: self.pull.head if self.pull.head != head else "", "a new head", seconds
        )

    def reviewer_asks_for(self, what: str, path: str = "widgets.txt", by: str = ROB) -> "PullStory":
        self.pull.review(by=by, state="CHANGES_REQUESTED", threads=[(path, 1, what)])
        return self

    def has_comment(self, text: str, seconds: float = PATIENCE) -> "PullStory":
        """Wait until the bot has posted a comment that contains `text`."""
        eventually(
            lambda: any(text in posted for posted in self.comments_by()),
            f"a comment with {text!r}",
            seconds,
        )
        return self

    def reviewer_approves(self, by: str = ROB) -> "PullStory":
        for thread in self.pull.threads:
            thread.resolve(by=by)
        self.pull.review(by=by, state="APPROVED")
        return self

    def comments_by(self, by: str = BOT) -> list[str]:
        """Return the texts of one account's comments on the pull request and in its threads."""
        comments = [*self.pull.comments, *(c for t in self.pull.threads for c in t.comments)]
        return [c.body for c in comments if c.user.login == by]
