"""Builds the objects of one bot, package by package, and injects their dependencies."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from msgspec import Struct

from bot.act.dispatch import ActionDispatcher
from bot.act.merging import Merger
from bot.act.message_sender import MessageSender
from bot.act.outbox import Attempts, Outbox
from bot.act.publishing import Publishing
from bot.act.runs import AgentRuns
from bot.app.github_client import github_client
from bot.app.leader_lease import LeaderLease
from bot.archive.archiver import Archive
from bot.archive.retention import Retention
from bot.decide.assignment import Assignment, caps
from bot.decide.opening import Opening
from bot.decide.policies import Policies
from bot.decide.reconciler import Reconciler
from bot.github.write_access import WriteAccess
from bot.intake.authorize import CommandAuthorizer
from bot.intake.comment_poller import CommentPoller
from bot.intake.inbox import Inbox
from bot.intake.redelivery import Redelivery
from bot.model_proxy.endpoints import ModelEndpoints
from bot.model_proxy.prices import Prices
from bot.model_proxy.proxy import ModelProxy
from bot.observe.access import AccessObserver
from bot.observe.agents import AgentObserver
from bot.observe.issues import IssueObserver
from bot.observe.pulls import PullObserver
from bot.observe.push_attribution import PushAttribution
from bot.observe.refresh_budget import RefreshBudget
from bot.observe.repository_config import RepositoryConfig
from bot.observe.resync import Resync
from bot.store import Store, StoreFailure
from bot.system.clock import Clock
from bot.system.crash_points import AtCrashPoint
from bot.system.locations import Locations, programs
from bot.system.paths import Paths
from bot.system.redaction import Redaction
from bot.text.prompts import Prompts
from config.load import Secrets, secret_values
from config.settings import Settings
from runtimes import RUNTIMES
from runtimes.base import Options

#: How many actions are carried out at the same time.
_ACTIONS = 8


class Wakes(Struct, frozen=True, kw_only=True):
    """Callbacks that wake a worker when it has work."""

    leads: Callable[[], None]  #: This bot got the lease.
    delivered: Callable[[], None]  #: A delivery was committed.
    turn_ended: Callable[[], None]  #: An agent ended its turn: its workspace is to be examined.
    decided: Callable[[], None]  #: A decision was recorded with new actions.
    acted: Callable[[], None]  #: An action's result was recorded.


class Foundation:
    """What every package uses: settings, store, GitHub client, the clock, where sessions live."""

    def __init__(
        self, settings: Settings, secrets: Secrets, clock: Clock, crash_point: AtCrashPoint
    ) -> None:
        """Raises `StoreFailure` if the data folder cannot be created or the database used."""
        self.settings = settings
        self.secrets = secrets
        self.clock = clock
        self.crash_point = crash_point
        self.paths = paths = Paths(settings.data)
        try:
            paths.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as failure:
            raise StoreFailure(
                f"server.data = {paths.data}: this folder cannot be created: {failure.strerror};"
                " name one in which this user may write"
            ) from None
        self.redact = Redaction(secret_values(settings, secrets, os.environ))
        self.store = Store(paths.database, clock=clock, redact=self.redact)
        self.github = github_client(settings, secrets, clock)
        path = os.environ.get("PATH", os.defpath)
        runtime = RUNTIMES[settings.runtime.kind](Options(data=paths.runtime, path=path))
        self.locations = Locations(
            paths,
            settings.projects,
            settings.github.git_base,
            self.github.git_header,
            runtime,
            programs(settings),
            self.github.aliases.name,
        )
        self.archive = Archive(self.locations, self.redact)
        self.prices = Prices(settings.prices)


class DecideWiring:
    """`bot.decide`: policies, assignment, opening sessions, the reconciler."""

    def __init__(self, base: Foundation, on_actions: Callable[[], None]) -> None:
        store, settings, clock = base.store, base.settings, base.clock
        self.caps = caps(settings)
        self.policies = Policies(store, settings.projects, settings.policy)
        self.assignment = Assignment(store, settings.identities, settings.projects, self.caps)
        self.opening = Opening(
            store,
            settings.projects,
            self.assignment,
            self.policies.is_silenced,
            clock,
            base.crash_point,
        )
        self.reconciler = Reconciler(
            store,
            self.policies.of,
            clock,
            base.crash_point,
            on_actions,
            self.assignment.names,
        )


class ObserveWiring:
    """`bot.observe`: the observers of agents, pull requests, issues and repositories."""

    def __init__(
        self,
        base: Foundation,
        decide: DecideWiring,
        people: WriteAccess,
        on_turn_ended: Callable[[], None],
    ) -> None:
        store, github, clock = base.store, base.github, base.clock
        projects, policies = base.settings.projects, decide.policies
        self.agents = AgentObserver(
            store,
            base.locations,
            policies.of,
            base.prices,
            clock,
            base.crash_point,
            on_turn_ended,
        )
        budget = RefreshBudget(store.refreshes, github, clock)
        self.pulls = PullObserver(
            store,
            github,
            people,
            budget,
            PushAttribution(store.facts, base.locations).who,
            projects,
            decide.opening.consider,
            clock,
            base.crash_point,
            base.settings.github.app_slug,
        )
        self.issues = IssueObserver(
            store,
            github,
            people,
            self.pulls,
            budget,
            projects,
            decide.assignment.names,
            decide.opening.consider,
            clock,
            base.crash_point,
        )
        self.access = AccessObserver(store, github, projects.values(), clock)
        self.configuration = RepositoryConfig(store, github, policies.repositories.values(), clock)
        self.resync = Resync(store.sessions, github, self.issues, budget)


class IntakeWiring:
    """`bot.intake`: the inbox, the authorization of commands, polling and redelivery."""

    def __init__(
        self,
        base: Foundation,
        policies: Policies,
        people: WriteAccess,
        on_delivered: Callable[[], None],
    ) -> None:
        store, github, clock = base.store, base.github, base.clock
        projects = base.settings.projects.values()
        self.inbox = Inbox(
            store,
            frozenset(project.repository for project in projects),
            on_delivered,
            policies.is_bot_listed,
            base.settings.github.app_slug,
            github.read.is_me,
        )
        self.authorizer = CommandAuthorizer(store, people, clock, policies.is_silenced)
        self.comment_poller = CommentPoller(github, self.inbox, projects, clock)
        self.redelivery = Redelivery(store.deliveries, store.cursors, github, clock)


class ActWiring:
    """`bot.act`: the outbox, and what carries its actions out."""

    def __init__(
        self,
        base: Foundation,
        decide: DecideWiring,
        people: WriteAccess,
        models: ModelEndpoints,
        may_act: Callable[[], bool],
        on_done: Callable[[], None],
    ) -> None:
        store, settings, clock = base.store, base.settings, base.clock
        prompts = Prompts(settings.prompts)
        github, locations = base.github, base.locations
        agents = AgentRuns(
            store.facts,
            github,
            locations,
            prompts,
            base.archive,
            decide.assignment,
            models,
            settings.runtime.steering_files,
            clock,
        )
        dispatcher = ActionDispatcher(
            store.sessions,
            store.refreshes,
            github,
            locations,
            agents,
            MessageSender(store.sessions, store.receipts, locations, prompts, clock),
            Publishing(store.facts, github, locations, base.redact),
            Merger(store.refreshes, github, locations, people, clock),
            clock,
            settings.public_url,
            settings.github.app_slug,
        )
        attempts = Attempts(
            most=settings.timing.action_tries,
            first_seconds=settings.timing.action_retry_seconds,
            starts=settings.policy.start_tries,
        )
        self.executor = ThreadPoolExecutor(_ACTIONS, thread_name_prefix="act")
        self.outbox = Outbox(
            store.outbox,
            store.receipts,
            store.incidents,
            store.writable,
            decide.reconciler.still_wanted,
            decide.policies.is_silenced,
            dispatcher,
            self.executor,
            attempts,
            clock,
            base.crash_point,
            may_act,
            on_done,
        )


class Wiring:
    """The objects of one bot. None of them does anything until it is called."""

    def __init__(
        self,
        settings: Settings,
        secrets: Secrets,
        clock: Clock,
        crash_point: AtCrashPoint,
        wakes: Wakes,
        stopping: Event,
    ) -> None:
        """`stopping` is set when the bot stops, or has lost its lease.

        Raises `StoreFailure` if the data folder cannot be created or the database used.
        """
        base = Foundation(settings, secrets, clock, crash_point)
        self.store, self.github = base.store, base.github
        self.locations, self.redact, self.archive = base.locations, base.redact, base.archive
        self.leader_lease = LeaderLease(
            base.store.lease,
            base.store.outbox,
            settings.data,
            settings.timing.lease_seconds,
            clock,
            wakes.leads,
            stopping,
        )
        self.decide = decide = DecideWiring(base, wakes.decided)
        people = WriteAccess(base.github, clock, decide.policies.is_listed)
        self.observe = ObserveWiring(base, decide, people, wakes.turn_ended)
        self.intake = IntakeWiring(base, decide.policies, people, wakes.delivered)
        models = ModelEndpoints(
            settings,
            secrets.model_keys,
            base.locations.adapters,
            base.store.sessions,
            base.store.usage,
            base.paths,
            lambda: self.model_proxy.url,
            base.prices,
        )
        self.model_proxy = ModelProxy(models.of_token, models.record_usage, base.paths.model_port)
        self.act = ActWiring(
            base,
            decide,
            people,
            models,
            self.leader_lease.may_act,
            wakes.acted,
        )
        self.retention = Retention(
            base.store,
            base.locations,
            base.archive,
            settings.retention,
            decide.policies.of,
            clock,
        )
