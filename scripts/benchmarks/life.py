"""Measures a session's API requests, and the time from a failed check to the agent."""

import json
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import TypeVar

from bot.app.application import App
from bot.demo.bot_process import configuration, free_port
from bot.demo.github import GitHubServer
from bot.demo.github.pulls import Pull
from bot.demo.scene import PERSON, Scene
from config.load import Secrets, load_settings
from lifecycle.model.policy import Policy
from scripts.benchmarks.figure import Figure

T = TypeVar("T")
SAMPLES, REQUESTS, REACTION_SECONDS = 10, 35, 3.0
_PATIENCE = 180.0
_RED = "acme/red"
#: The defaults, with shorter debounce times.
_THRESHOLDS = """
[policy]
mode = "merge"
review-debounce-seconds = 1
day-usd = 0
[timing]
resync-seconds = 3600
write-interval-seconds = {}
"""
_RED_PROJECT = f'[projects.red]\nrepository = "{_RED}"\nagent = "scripted"'


class Life:
    """A bot with the demo's agents at two repositories: the demo's, and one for failing checks."""

    def __init__(
        self, folder: Path, github: GitHubServer, sessions: int, write_interval: float
    ) -> None:
        """At most `sessions` run at once; writes to GitHub are `write_interval` seconds apart."""
        self.github = github
        self.log = folder / "reactions"
        self.scene = Scene(github, lambda what, where: None)
        self.red = github.repository(_RED)
        for login in ("mergewright-bot", PERSON):
            self.red.permission(login, "write")
        port = free_port()
        config = folder / "mergewright.toml"
        config.write_text(
            configuration(
                folder,
                github.url,
                agent_log=self.log,
                agent_types=_RED_PROJECT,
                sessions=sessions,
                port=port,
                thresholds=_THRESHOLDS.format(write_interval),
            )
        )
        given = Secrets(token=self.scene.token, webhook_secret=self.scene.secret, page_token="page")
        self.app = App(load_settings(config), given)
        self.app.start()
        until(lambda: not self.app.health().standby_reason, "the bot acts")
        for repo in (self.scene.repo, self.red):
            repo.webhook(f"http://127.0.0.1:{port}/webhooks/github", self.scene.secret)

    def asked(self) -> int:
        """Return the number of the bot's API requests that were answered."""
        return sum("/api/" in seen.path for seen in self.github.requests)

    def whole(self) -> int:
        """Return a session's API requests from label to end, with one repair and one review.

        They include the last reports, which the bot writes some time after the merge.
        """
        before = self.asked()
        self.scene.open_issue()
        session = "greetings-1"
        until(lambda: self._status(session) == "merged", "it is merged")
        self.rests()
        return self.asked() - before

    def waiting(self) -> list[Pull]:
        """Let agents open `SAMPLES` pull requests, and return these once the bot is idle.

        The bot counts as idle when it has sent no API request for some time; see `rests`. The
        agents are idle by then as well.
        """
        # One after the other: two agents that commit in the same second make the same commit.
        for number in range(1, SAMPLES + 1):
            issue = self.red.open_issue(f"Greet {number}", by=PERSON)
            issue.label("mergewright", by=PERSON)
            until(lambda number=number: len(self.red.pulls) == number, "it is opened")  # type: ignore[misc]
        self.rests()
        return list(self.red.pulls)

    def rests(self, seconds: float = Policy().report_seconds + 5.0) -> None:
        """Wait for `seconds` without a request; by default, until no report is left to update."""
        asked, since = self.asked(), time.monotonic()
        while time.monotonic() < since + seconds:
            time.sleep(0.1)
            if self.asked() != asked:
                asked, since = self.asked(), time.monotonic()

    def reaction_time(self, pull: Pull) -> float:
        """Return the seconds from a failed check until the agent gets its log."""
        word = "".join(secrets.choice("abcdefgh") for _ in range(12))
        pull.check("unit", conclusion="failure", log=f'say the word "{word}"')
        begun = time.perf_counter()
        until(lambda: word in self._words(), "the agent gets the log")
        return time.perf_counter() - begun

    def _words(self) -> list[str]:
        lines = self.log.read_text().splitlines()
        return [word for line in lines for word in json.loads(line)["words"]]

    def _status(self, id: str) -> str:
        session = self.app.wiring.store.sessions.get(id)
        return session.status if session else ""


def until(there: Callable[[], T], what: str) -> T:
    """Wait for a condition."""
    deadline = time.monotonic() + _PATIENCE
    while not (found := there()):
        if time.monotonic() > deadline:
            sys.exit(f"waited {_PATIENCE:g} s until {what}")
        time.sleep(0.005)
    return found


def run() -> dict[str, Figure]:
    """Play one session, then fail a check on each of several pull requests."""
    with bot_with_agents() as life:
        life.rests(seconds=2.0)
        started = life.asked()
        requests = life.whole()
        pulls = life.waiting()
        before = life.asked()
        time.sleep(5.0)
        idle = life.asked() - before
        reactions = [life.reaction_time(pull) for pull in pulls]
    p95 = quantiles(reactions, n=20, method="inclusive")[-1]
    return {
        "life.start": Figure(value=started, unit="requests of two repositories"),
        "life.requests": Figure(
            value=requests, unit="requests", limit=f"<= {REQUESTS}", holds=requests <= REQUESTS
        ),
        "life.idle": Figure(value=idle, unit="requests", limit="= 0", holds=idle == 0),
        "life.red_to_agent": Figure(
            value=p95,
            unit="s (p95)",
            limit=f"<= {REACTION_SECONDS:g}",
            holds=p95 <= REACTION_SECONDS,
        ),
    }


@contextmanager
def bot_with_agents(sessions: int = 100, write_interval: float = 1.0) -> Iterator[Life]:
    """Run a bot with the demo's agents, and stop all of them at the end; see `Life`."""
    with tempfile.TemporaryDirectory(prefix="mw-") as name:
        folder = Path(name)
        with GitHubServer(folder / "github") as github:
            life = Life(folder, github, sessions, write_interval)
            try:
                yield life
            finally:
                life.app.stop()
                for running in life.app.wiring.locations.host.runtime.look():
                    life.app.wiring.locations.host.runtime.stop(running, grace_seconds=0.1)
