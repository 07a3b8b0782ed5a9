"""The whole bot, put together: what is made of what, and who wakes whom."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

from bot.account import client
from bot.act import Act
from bot.agents import Agents
from bot.archive import Archive
from bot.clock import Clock, utc_now
from bot.engine import Engine
from bot.identities import Identities
from bot.inbox import Inbox
from bot.journal import Journal, Step, log_step
from bot.layout import Layout
from bot.leading import Leading
from bot.limits import caps
from bot.looks import Looks
from bot.models import Models
from bot.movers import Movers
from bot.outbox import Outbox, Tries
from bot.outsiders import Outsiders
from bot.people import People
from bot.policies import Policies
from bot.prices import Prices
from bot.prompts import Prompts
from bot.reconcile import Reconcile
from bot.redaction import Redaction
from bot.redeliver import Redeliver
from bot.repository_config import RepositoryConfig
from bot.retention import Busy, Retention
from bot.sites import Sites, programs
from bot.store import Store
from bot.terminals import terminal
from bot.ticker import Job, Lane, Ticker
from bot.watch_access import WatchAccess
from bot.watch_agents import WatchAgents
from bot.watch_comments import WatchComments
from bot.watch_issues import WatchIssues
from bot.watch_pulls import WatchPulls
from bot.web.app import build
from bot.web.health import Health
from bot.web.models import ModelDoor
from bot.web.serve import Server
from bot.web.webhook import Limits
from bot.wishes import Wishes
from config.load import Secrets, secret_values
from config.settings import Settings
from lifecycle.policy import Mode
from runtimes import RUNTIMES
from runtimes.base import Options
from runtimes.machine import free_mb

_WORKERS = 8
#: How many workspaces are looked into at once: one that is huge must not delay the others.
_EXAMINERS = 2
#: How often what is due by the clock is looked for; what comes in is looked at at once.
_BEAT_SECONDS = 0.5
#: How long what runs may take to end when the bot stops.
_STOP_SECONDS = 5.0
#: How soon a signal is heeded that comes just as the main thread falls asleep: Python's handler
#: runs only once that thread wakes up again.
_SIGNAL_SECONDS = 0.5


class App:
    """One bot. Made, started, stopped; everything it needs it is given or makes here."""

    def __init__(
        self,
        settings: Settings,
        secrets: Secrets,
        *,
        clock: Clock = utc_now,
        journal: Journal = log_step,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._journal = journal
        self._caps = caps(settings)
        self._looked_at_all = False  #: Whether every session was visited since we lead.
        self._sorting = Lane("inbox", self._sort)
        self._reading = Lane("github", self._read)
        self._sweeping = Lane("sweep", self._sweep)
        self._examining = [Lane(f"examine-{n}", self._examine) for n in range(_EXAMINERS)]
        self._visiting = Lane("visits", self._visit)
        self._doing = Lane("outbox", self._do)
        self._reconciling = Lane("reconcile", self._reconcile)
        self._redelivering = Lane("redeliver", self._redeliver)
        self._archiving = Lane("archive", self._archive)
        self._retaining = Lane("retention", self._retain)
        self._lanes = (
            *(self._sorting, self._reading, self._sweeping, *self._examining),
            *(self._visiting, self._doing, self._reconciling, self._redelivering),
            *(self._archiving, self._retaining),
        )
        layout = Layout(settings.data)
        layout.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        redact = Redaction(secret_values(settings, secrets, os.environ))
        self.store = Store(layout.database, clock=clock, redact=redact)
        self.github = client(settings, secrets, clock)
        path = os.environ.get("PATH", os.defpath)
        runtime = RUNTIMES[settings.runtime.kind](Options(data=layout.runtime, path=path))
        self.sites = Sites(
            layout,
            settings.projects,
            settings.github.git_base,
            self.github.git_header,
            runtime,
            programs(settings),
            self.github.places.now,
        )
        timing, policy = settings.timing, settings.policy
        self.policies = policies = Policies(self.store, settings.projects, policy)
        self._over = Event()
        self.leading = Leading(
            self.store, settings.data, timing.lease_seconds, clock, self._begin, self._over
        )
        self.watch_agents = WatchAgents(
            *(self.store, self.sites, policies.of, Prices(settings.prices)),
            *(clock, journal, self._examine_soon),
        )
        people = People(self.github, clock, policies.lists)
        self.outsiders = Outsiders(
            self.store, self.github, clock, self.leading.may_act, self._may_speak
        )
        looks = Looks(self.store, self.github, clock)
        self.watch_pulls = WatchPulls(
            self.store,
            self.github,
            people,
            looks,
            Movers(self.store, self.sites).who,
            settings.projects,
            clock,
            journal,
            settings.github.app_slug,
        )
        identities = Identities(self.store, settings.identities, settings.projects, self._caps)
        self.watch_issues = WatchIssues(
            self.store,
            self.github,
            people,
            self.watch_pulls,
            looks,
            settings.projects,
            identities,
            clock,
            journal,
        )
        self.reconcile = Reconcile(self.store, self.github, self.watch_issues, looks)
        self.watch_access = WatchAccess(self.store, self.github, settings.projects.values(), clock)
        self.redeliver = Redeliver(self.store, self.github, clock)
        self.wishes = Wishes(
            *(self.store, self.github, people, self.watch_issues, clock),
            *(self.leading.may_act, self._may_speak),
        )
        self.repository_config = RepositoryConfig(
            *(self.store, self.github, policies, clock, self._may_speak)
        )
        self.engine = Engine(
            *(self.store, policies.of, clock, journal),
            *(self._doing.kick, identities.words),
        )
        self.archive = Archive(self.sites, redact)
        models = Models(
            *(settings, secrets.model_keys, self.sites.programs, self.store, layout),
            lambda: self.model_door.url,
        )
        self.model_door = ModelDoor(models.behind, layout.model_port)
        agents = Agents(
            *(self.store, self.github, self.sites, Prompts(), self.watch_agents, self.archive),
            *(identities, models, settings.runtime.steering_files, clock),
        )
        self.retention = Retention(
            *(self.store, self.sites, self.archive),
            *(settings.retention, policies.of, clock),
        )
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="act")
        self.outbox = Outbox(
            self.store,
            self.engine,
            Act(
                self.store,
                self.github,
                self.sites,
                agents,
                settings.public_url,
                redact,
                people,
                clock,
                settings.github.app_slug,
            ),
            self._workers,
            Tries(
                most=timing.action_tries,
                first_seconds=timing.action_retry_seconds,
                starts=policy.start_tries,
            ),
            clock,
            journal,
            self.leading.may_act,
            self._after_action,
        )
        repositories = frozenset(project.repository for project in settings.projects.values())
        self.inbox = Inbox(
            *(self.store, repositories, self._delivered),
            *(policies.lists_bot, settings.github.app_slug),
        )
        self.watch_comments = WatchComments(
            self.github, self.inbox, settings.projects.values(), clock
        )
        self._ticker = Ticker(
            (
                Job(name="sweep", every_seconds=timing.sweep_seconds, run=self._sweeping.kick),
                Job(name="beat", every_seconds=_BEAT_SECONDS, run=self._beat),
                Job(
                    name="reconcile",
                    every_seconds=settings.reconcile_seconds,
                    run=self._reconciling.kick,
                ),
                Job(name="redeliver", every_seconds=900.0, run=self._redelivering.kick),
                Job(
                    name="archive",
                    every_seconds=settings.retention.archive_seconds,
                    run=self._archiving.kick,
                ),
                Job(name="retention", every_seconds=3600.0, run=self._retaining.kick),
            )
        )
        self.server = Server(
            build(
                self.inbox,
                self.store,
                webhook_secrets=(secrets.webhook_secret, secrets.webhook_secret_previous),
                page_token=secrets.page_token,
                health=self.health,
                settings=settings,
                policies=policies,
                terminal=terminal(self.store, self.sites, redact),
                limits=Limits(
                    body_bytes=settings.limits.webhook_bytes,
                    unverified_bytes=settings.limits.unverified_bytes,
                ),
            ),
            settings.server.host,
            settings.server.port,
        )
        self._told_to_end = False

    def start(self) -> None:
        """Answer HTTP at once, and act as soon as the database is this bot's."""
        self.server.start()
        self.leading.start()

    def wait(self) -> None:
        """Return when the bot is told to stop, or has lost its place."""
        while not self._told_to_end and not self._over.wait(_SIGNAL_SECONDS):
            pass

    def end(self) -> None:
        """Have `wait` return soon. Safe to call from a signal handler: it takes no lock."""
        self._told_to_end = True

    def stop(self) -> bool:
        """End in order: no new work, what runs finishes, the database is free for another.

        False where something (a GitHub that hangs, a large push) did not end in time. It is not
        marked, so that the next bot finds it undone; the process should end at once.
        """
        self._over.set()
        self.leading.join()
        self.server.stop()
        self.model_door.stop()
        self._ticker.stop()
        until = time.monotonic() + _STOP_SECONDS
        ended = [lane.close(_left(until)) for lane in self._lanes]
        self._workers.shutdown(wait=False, cancel_futures=True)
        ended.append(self.outbox.rest(_left(until)))
        self.leading.step_down()
        self.store.close()
        self.github.close()
        return all(ended)

    def health(self) -> Health:
        """What the health routes say."""
        return Health(scheduler=self._ticker.running, standing_by=self.leading.standing_by)

    def _begin(self) -> None:
        """Act: the database is ours."""
        if self._settings.key_variables:
            self.model_door.start()
        self._ticker.start()
        for lane in self._lanes:
            lane.kick()
            lane.start()

    def _may_speak(self, repository: str) -> bool:
        """Whether something may be said there that no session says."""
        projects = self._settings.projects.items()
        scopes = {f"project:{name}" for name, one in projects if one.repository == repository}
        frozen = any(one.scope in {"", *scopes} for one in self.store.freezes())
        return self.policies.of_repository(repository).mode is not Mode.OBSERVE and not frozen

    # -- lanes -----------------------------------------------------------------------------------

    def _beat(self) -> None:
        for lane in (self._sorting, self._reading, self._visiting, self._doing):
            lane.kick()

    def _delivered(self) -> None:
        self._journal(Step.DELIVERED, "")
        self._sorting.kick()

    def _sort(self) -> None:
        while sorted_ := self.inbox.process():
            self._journal(Step.SORTED, f"{sorted_} deliveries")
            self._reading.kick()

    def _read(self) -> None:
        """Everything read from GitHub, one after the other, so that no older answer comes last."""
        # A wish may follow on the heels of the label; and it is about the head that stood before
        # the pull request is read again.
        if self.repository_config.look_where_pushed():
            self._judge_all_anew()
        done = self.watch_access.look_if_asked()
        done += self.watch_issues.read_touched()
        done += self.wishes.settle()
        done += self.outsiders.tell()
        done += self.watch_pulls.read_touched()
        if done:
            self._visiting.kick()

    def _judge_all_anew(self) -> None:
        """The policy is another one."""
        self._looked_at_all = False
        self._visiting.kick()

    def _sweep(self) -> None:
        if self.watch_agents.sweep():
            self._visiting.kick()

    def _examine_soon(self) -> None:
        for lane in self._examining:
            lane.kick()

    def _examine(self) -> None:
        if self.watch_agents.examine():
            self._visiting.kick()

    def _redeliver(self) -> None:
        self.redeliver.ask()

    def _archive(self) -> None:
        self.archive.keep_all(self.store.live())

    def _retain(self) -> None:
        with suppress(Busy):  # A person is at it, by the same rules.
            self.retention.apply()

    def _visit(self) -> None:
        if not self._looked_at_all:
            # What is known of the agents may be hours old, and would be told as if it were new.
            self.watch_agents.sweep()
            self.watch_agents.examine()
            self.engine.visit_live()
            self._looked_at_all = True
        self.engine.visit_due()
        if self.store.take_slots(self._caps, free_mb()):
            self._visiting.kick()

    def _do(self) -> None:
        self.outbox.drain()

    def _after_action(self) -> None:
        self._visiting.kick()
        self._reading.kick()
        self._doing.kick()

    def _reconcile(self) -> None:
        self.watch_access.look()
        if self.repository_config.look():
            self._judge_all_anew()
        self.reconcile.look()
        if self._settings.polls:
            self.watch_comments.look()
        self._reading.kick()


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())
