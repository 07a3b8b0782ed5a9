"""Everything one bot is made of, and what is made of what."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from msgspec import Struct

from bot.act.dispatch import ActionDispatcher
from bot.act.outbox import Attempts, Outbox
from bot.act.run_start import Starting
from bot.act.runs import Agents
from bot.app.account import client
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

_WORKERS = 8


class Wakes(Struct, frozen=True, kw_only=True):
    """What a part calls when there is something to do. A call only sets a flag."""

    leader_lease: Callable[[], None]  #: The database is ours.
    delivered: Callable[[], None]  #: A delivery was kept.
    resting: Callable[[], None]  #: A turn has ended, and its workspace is to be examined.
    decided: Callable[[], None]  #: Actions were written down.
    done: Callable[[], None]  #: One was done, or given up.


class Wiring:
    """The parts of one bot. None of them does anything before it is asked to."""

    def __init__(
        self,
        settings: Settings,
        secrets: Secrets,
        clock: Clock,
        crash_point: AtCrashPoint,
        wakes: Wakes,
        over: Event,
    ) -> None:
        """`over` is set when the bot is to end, or has lost its place."""
        paths = Paths(settings.data)
        try:
            paths.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as failure:
            raise StoreFailure(
                f"server.data = {paths.data}: this folder cannot be made: {failure.strerror};"
                " name one in which this user may write"
            ) from None
        self.redact = redact = Redaction(secret_values(settings, secrets, os.environ))
        self.store = Store(paths.database, clock=clock, redact=redact)
        self.github = client(settings, secrets, clock)
        path = os.environ.get("PATH", os.defpath)
        runtime = RUNTIMES[settings.runtime.kind](Options(data=paths.runtime, path=path))
        self.locations = Locations(
            paths,
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
        self.leader_lease = LeaderLease(
            self.store, settings.data, timing.lease_seconds, clock, wakes.leader_lease, over
        )
        may_act = self.leader_lease.may_act
        prices = Prices(settings.prices)
        self.agent_observer = AgentObserver(
            self.store,
            self.locations,
            policies.of,
            prices,
            clock,
            crash_point,
            wakes.resting,
        )
        people = WriteAccess(self.github, clock, policies.lists)
        refresh_budget = RefreshBudget(self.store, self.github, clock)
        assignment = Assignment(self.store, settings.identities, settings.projects, self.caps)
        opening = Opening(
            self.store,
            settings.projects,
            assignment,
            policies.is_silenced,
            clock,
            crash_point,
        )
        self.pull_observer = PullObserver(
            self.store,
            self.github,
            people,
            refresh_budget,
            PushAttribution(self.store, self.locations).who,
            settings.projects,
            opening.consider,
            clock,
            crash_point,
            settings.github.app_slug,
        )
        self.issue_observer = IssueObserver(
            self.store,
            self.github,
            people,
            self.pull_observer,
            refresh_budget,
            settings.projects,
            assignment.names,
            opening.consider,
            clock,
            crash_point,
        )
        self.resync = Resync(self.store, self.github, self.issue_observer, refresh_budget)
        self.access_observer = AccessObserver(
            self.store, self.github, settings.projects.values(), clock
        )
        self.redelivery = Redelivery(self.store, self.github, clock)
        self.commands = CommandAuthorizer(self.store, people, clock, policies.is_silenced)
        self.repository_config = RepositoryConfig(
            self.store, self.github, policies.repositories.values(), clock
        )
        self.reconciler = Reconciler(
            self.store, policies.of, clock, crash_point, wakes.decided, assignment.names
        )
        self.archive = Archive(self.locations, redact)
        models = ModelEndpoints(
            settings,
            secrets.model_keys,
            self.locations.programs,
            self.store,
            paths,
            lambda: self.model_proxy.url,
            prices,
        )
        self.model_proxy = ModelProxy(models.behind, models.count, paths.model_port)
        prompts = Prompts(settings.prompts)
        starting = Starting(
            self.store,
            self.github,
            self.locations,
            prompts,
            self.archive,
            assignment,
            models,
            settings.runtime.steering_files,
            clock,
        )
        agents = Agents(
            self.store,
            self.locations,
            prompts,
            self.agent_observer,
            self.archive,
            assignment,
            starting,
            clock,
        )
        self.retention = Retention(
            self.store, self.locations, self.archive, settings.retention, policies.of, clock
        )
        self.workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="act")
        self.outbox = Outbox(
            self.store,
            self.reconciler.still_wanted,
            policies.is_silenced,
            ActionDispatcher(
                self.store,
                self.github,
                self.locations,
                agents,
                settings.public_url,
                redact,
                people,
                clock,
                settings.github.app_slug,
            ),
            self.workers,
            Attempts(
                most=timing.action_tries,
                first_seconds=timing.action_retry_seconds,
                starts=policy.start_tries,
            ),
            clock,
            crash_point,
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
        self.comment_poller = CommentPoller(
            self.github, self.inbox, settings.projects.values(), clock
        )
