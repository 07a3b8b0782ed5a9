"""Everything one bot is made of, and what is made of what."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from msgspec import Struct

from bot.act.dispatch import Act
from bot.act.outbox import Outbox, Tries
from bot.act.outsiders import Outsiders
from bot.act.run_start import Starting
from bot.act.runs import Agents
from bot.app.account import client
from bot.app.leader_lease import Leading
from bot.archive.archiver import Archive
from bot.archive.retention import Retention
from bot.decide.assignment import Identities
from bot.decide.caps import caps
from bot.decide.policies import Policies
from bot.decide.reconciler import Engine
from bot.github.write_access import People
from bot.intake.authorize import Wishes
from bot.intake.comment_poller import WatchComments
from bot.intake.inbox import Inbox
from bot.intake.redelivery import Redeliver
from bot.model_proxy.endpoints import Models
from bot.model_proxy.prices import Prices
from bot.model_proxy.proxy import ModelDoor
from bot.observe.access import WatchAccess
from bot.observe.agents import WatchAgents
from bot.observe.issues import WatchIssues
from bot.observe.pulls import WatchPulls
from bot.observe.push_attribution import Movers
from bot.observe.refresh_budget import Looks
from bot.observe.repository_config import RepositoryConfig
from bot.observe.resync import Reconcile
from bot.store import Store, StoreFailure
from bot.system.clock import Clock
from bot.system.crash_points import Journal
from bot.system.locations import Sites, programs
from bot.system.paths import Layout
from bot.system.redaction import Redaction
from bot.text.prompts import Prompts
from config.load import Secrets, secret_values
from config.settings import Settings
from runtimes import RUNTIMES
from runtimes.base import Options

_WORKERS = 8


class Wakes(Struct, frozen=True, kw_only=True):
    """What a part calls when there is something to do. A call only sets a flag."""

    leading: Callable[[], None]  #: The database is ours.
    delivered: Callable[[], None]  #: A delivery was kept.
    resting: Callable[[], None]  #: A turn has ended, and its workspace is to be examined.
    decided: Callable[[], None]  #: Actions were written down.
    done: Callable[[], None]  #: One was done, or given up.


class Parts:
    """The parts of one bot. None of them does anything before it is asked to."""

    def __init__(
        self,
        settings: Settings,
        secrets: Secrets,
        clock: Clock,
        journal: Journal,
        wakes: Wakes,
        over: Event,
    ) -> None:
        """`over` is set when the bot is to end, or has lost its place."""
        layout = Layout(settings.data)
        try:
            layout.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as failure:
            raise StoreFailure(
                f"server.data = {layout.data}: this folder cannot be made: {failure.strerror};"
                " name one in which this user may write"
            ) from None
        self.redact = redact = Redaction(secret_values(settings, secrets, os.environ))
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
        self.caps = caps(settings)
        self.policies = policies = Policies(self.store, settings.projects, policy)
        self.leading = Leading(
            self.store, settings.data, timing.lease_seconds, clock, wakes.leading, over
        )
        may_act = self.leading.may_act
        prices = Prices(settings.prices)
        self.watch_agents = WatchAgents(
            self.store,
            self.sites,
            policies.of,
            prices,
            clock,
            journal,
            wakes.resting,
        )
        people = People(self.github, clock, policies.lists)
        self.outsiders = Outsiders(self.store, self.github, clock, may_act, policies.may_speak)
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
        identities = Identities(self.store, settings.identities, settings.projects, self.caps)
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
            self.store,
            self.github,
            people,
            self.watch_issues,
            clock,
            may_act,
            policies.may_speak,
        )
        self.repository_config = RepositoryConfig(self.store, self.github, policies, clock)
        self.engine = Engine(
            self.store, policies.of, clock, journal, wakes.decided, identities.words
        )
        self.archive = Archive(self.sites, redact)
        models = Models(
            settings,
            secrets.model_keys,
            self.sites.programs,
            self.store,
            layout,
            lambda: self.model_door.url,
            prices,
        )
        self.model_door = ModelDoor(models.behind, models.count, layout.model_port)
        prompts = Prompts(settings.prompts)
        starting = Starting(
            self.store,
            self.github,
            self.sites,
            prompts,
            self.archive,
            identities,
            models,
            settings.runtime.steering_files,
            clock,
        )
        agents = Agents(
            self.store,
            self.sites,
            prompts,
            self.watch_agents,
            self.archive,
            identities,
            starting,
            clock,
        )
        self.retention = Retention(
            self.store, self.sites, self.archive, settings.retention, policies.of, clock
        )
        self.workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="act")
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
            self.workers,
            Tries(
                most=timing.action_tries,
                first_seconds=timing.action_retry_seconds,
                starts=policy.start_tries,
            ),
            clock,
            journal,
            may_act,
            wakes.done,
        )
        repositories = frozenset(project.repository for project in settings.projects.values())
        self.inbox = Inbox(
            self.store,
            repositories,
            wakes.delivered,
            policies.lists_bot,
            settings.github.app_slug,
            self.github.read.is_me,
        )
        self.watch_comments = WatchComments(
            self.github, self.inbox, settings.projects.values(), clock
        )
