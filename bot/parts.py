"""Everything one bot is made of, and what is made of what."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from msgspec import Struct

from bot.account import client
from bot.act import Act
from bot.agents import Agents
from bot.archive import Archive
from bot.clock import Clock
from bot.engine import Engine
from bot.identities import Identities
from bot.inbox import Inbox
from bot.journal import Journal
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
from bot.retention import Retention
from bot.sites import Sites, programs
from bot.starting import Starting
from bot.store import Store, StoreFailure
from bot.watch_access import WatchAccess
from bot.watch_agents import WatchAgents
from bot.watch_comments import WatchComments
from bot.watch_issues import WatchIssues
from bot.watch_pulls import WatchPulls
from bot.web.model_door import ModelDoor
from bot.wishes import Wishes
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
