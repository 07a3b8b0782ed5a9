"""Builds the objects of one bot, package by package, and injects their dependencies."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event

from msgspec import Struct
from msgspec.structs import replace

from bot.act.dispatch import ActionDispatcher
from bot.act.late_effects import LateEffects
from bot.act.merging import Merger
from bot.act.message_sender import MessageSender
from bot.act.outages import Outages
from bot.act.outbox import Attempts, Outbox
from bot.act.publishing import Publishing
from bot.act.runs import AgentRuns
from bot.act.stranded_runs import StrandedRuns
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
from bot.intake.terminal_input import TerminalInput
from bot.model_proxy.endpoints import ModelEndpoints
from bot.model_proxy.prices import Prices
from bot.model_proxy.proxy import ModelProxy
from bot.model_proxy.refusals import RefusalLog
from bot.model_proxy.tunnels import Tunnels
from bot.notify.notifier import Notifications, Notifier
from bot.notify.senders import sender_of
from bot.observe.agents import AgentObserver
from bot.observe.discussions import Discussions
from bot.observe.disk import DiskObserver
from bot.observe.installations import InstallationObserver
from bot.observe.issues import IssueObserver
from bot.observe.pull_facts import PullFacts, who_pushed
from bot.observe.pulls import PullObserver
from bot.observe.refresh_budget import RefreshBudget
from bot.observe.repositories import AccessObserver, RepositoryConfig
from bot.observe.resync import Resync
from bot.store import Store, StoreFailure, may_run
from bot.system.clock import Clock
from bot.system.crash_points import AtCrashPoint
from bot.system.isolation import is_isolated, isolation_of
from bot.system.locations import Locations, Paths, programs
from bot.system.profiles import PermissionModes
from bot.system.redaction import Redaction
from bot.system.ssh_signatures import commit_signer
from bot.text.prompts import Prompts
from config.load import Secrets, secret_values
from config.projects import Projects
from config.settings import Settings
from runtimes import RUNTIMES
from runtimes.base import Options

#: How many actions are carried out at the same time.
_ACTIONS = 8


class Wakes(Struct, frozen=True, kw_only=True):
    """Callbacks for events that give workers something to do."""

    leads: Callable[[], None]  #: This bot got the lease.
    delivered: Callable[[], None]  #: A delivery was committed.
    turn_ended: Callable[[], None]  #: An agent ended its turn: examine its workspace.
    decided: Callable[[], None]  #: New actions were recorded, by a decision or as typed keys.
    acted: Callable[[], None]  #: An action's result was recorded.
    projects_changed: Callable[[], None]  #: Projects were added or removed.


class Wiring:
    """The objects of one bot. Creating them opens the database, or creates it.

    The only thread that this starts is the one that writes to the database.
    """

    def __init__(
        self,
        settings: Settings,
        secrets: Secrets,
        clock: Clock,
        crash_point: AtCrashPoint,
        wakes: Wakes,
        stopping: Event,
        new_database: bool = False,
    ) -> None:
        """Create all objects. `stopping` is set when the bot stops or has lost its lease.

        `new_database` says whether an empty database may be created in a folder with files of
        sessions. Raises `StoreFailure` if the data folder cannot be created or the database cannot
        be used, `NotifierUnavailable` if a notifier cannot send, `PromptError`, `OSError`.
        """
        self.clock, self.crash_point = clock, crash_point
        self.paths = paths = Paths(settings.data)
        try:
            paths.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as failure:
            raise StoreFailure(
                f"server.data = {paths.data}: this folder cannot be created: {failure.strerror};"
                " name one in which this user may write"
            ) from None
        self._env_files = secrets.env_files
        self._signer = commit_signer(settings, secrets.signing_key)
        self.redact = Redaction(secret_values(settings, secrets, os.environ))
        refuse_new = "" if new_database else _why_not_new(paths)
        self.store = store = Store(
            paths.database, clock=clock, redact=self.redact, refuse_new=refuse_new
        )
        self._configured, self._wakes = settings, wakes
        self.projects = Projects(settings, store.installed.projects())
        self.settings = settings = replace(settings, projects=self.projects)
        self.github = github_client(settings, secrets, clock)
        path = os.environ.get("PATH", os.defpath)
        self.locations = Locations(
            paths,
            settings.projects,
            settings.github.git_base,
            self.github.git_password,
            RUNTIMES[settings.runtime.kind](Options(data=paths.runtime, path=path)),
            programs(settings),
            partial(isolation_of, settings),
            self.github.aliases.name,
        )
        self.archive = Archive(self.locations, self.redact)
        self.prices = Prices(settings.prices)
        data, seconds = settings.data, settings.timing.lease_seconds
        self.leader_lease = LeaderLease(
            store.lease, store.outbox, data, seconds, clock, wakes.leads, stopping
        )
        self.github.write_only_while(self.leader_lease.may_act)
        self._wire_decide(wakes.decided)
        self.people = WriteAccess(self.github, clock, self.policies.is_listed)
        self._wire_observe(wakes.turn_ended, stopping)
        self._wire_intake(wakes)
        self.stranded_runs = StrandedRuns(
            store,
            self.locations,
            self.archive,
            partial(is_isolated, settings),
            self.leader_lease.may_act,
            clock,
        )
        self._wire_model_proxy(secrets)
        self._wire_act(wakes.acted)
        self._wire_notify(secrets)
        self.retention = Retention(
            store, self.locations, self.archive, settings.retention, self.policies.of, clock
        )

    def _wire_decide(self, on_actions: Callable[[], None]) -> None:
        """Build policies, the assignment of agents, the opening of sessions and the reconciler."""
        store, projects, clock = self.store, self.projects, self.clock
        self.caps = caps(self.settings)
        self.policies = Policies(store, projects, self.settings.policy)
        self.assignment = Assignment(store, self.settings.identities, projects, self.caps)
        silenced = self.policies.is_silenced
        modes = PermissionModes(self.settings, self.locations.adapters)
        self.opening = Opening(
            *(store, projects, self.assignment, silenced, clock, self.crash_point, modes.of)
        )
        names = tuple(sorted(self.assignment.names))
        self.reconciler = Reconciler(
            *(store, self.policies.of, clock, self.crash_point, on_actions, names),
            *(projects.__contains__, modes.of),
        )

    def _wire_observe(self, on_turn_ended: Callable[[], None], stopping: Event) -> None:
        """Build the observers of agents, pull requests, issues and repositories."""
        store, github, clock, crash_point = self.store, self.github, self.clock, self.crash_point
        people, projects, consider = self.people, self.projects, self.opening.consider
        policy_of, prices, locations = self.policies.of, self.prices, self.locations
        self.agent_observer = AgentObserver(
            store, locations, policy_of, prices, clock, crash_point, on_turn_ended
        )
        most_mb, wait = self.settings.sandbox.disk_mb, stopping.wait
        self.disk_observer = DiskObserver(store, locations, most_mb, clock, wait)
        app_slug = self.settings.github.app_slug
        budget = RefreshBudget(store.refreshes, github, clock)
        pushed = partial(who_pushed, store.facts, locations)
        discussions = Discussions(people, app_slug)
        facts = PullFacts(github, people, discussions, pushed, projects, clock)
        self.pull_observer = pulls = PullObserver(
            store, github, people, budget, facts, projects, consider, clock, crash_point
        )
        names = self.assignment.names
        self.issue_observer = IssueObserver(
            *(store, github, people, discussions, pulls, budget, projects, names, consider),
            *(clock, crash_point),
        )
        refreshes = store.refreshes
        self.access_observer = AccessObserver(
            store.repositories, refreshes, store.incidents, github, projects, clock
        )
        self.repository_config = RepositoryConfig(
            store.configurations, refreshes, github, projects, clock
        )
        self.installation_observer = InstallationObserver(
            store, github, self._configured, projects, self._on_projects
        )
        self.resync = Resync(store.sessions, github, self.issue_observer, budget)

    def _wire_intake(self, wakes: Wakes) -> None:
        """Build the inbox, the authorization of commands, polling and redelivery."""
        store, github, policies, clock = self.store, self.github, self.policies, self.clock
        self.inbox = Inbox(
            store,
            self._repositories,
            wakes.delivered,
            policies.is_listed,
            self.settings.github.app_slug,
            github.read.is_me,
            self.issue_observer.triggers,
        )
        self.authorizer = CommandAuthorizer(
            store, self.people, clock, policies.is_silenced, self.opening.open_prompt
        )
        runs, run_of = self.locations.host.runs, self.locations.run_of
        self.keyboard = TerminalInput(
            store, lambda session: runs.is_isolated(run_of(session)), wakes.decided
        )
        self.comment_poller = CommentPoller(github, self.inbox, self.projects, clock)
        self.redelivery = Redelivery(store.deliveries, store.cursors, github, clock)

    @property
    def _repositories(self) -> list[str]:
        return [project.repository for project in self.projects.values()]

    def _on_projects(self) -> None:
        """Apply a change of the list of projects, which changes with the App's installations."""
        self.policies.apply_all()
        self.caps = self.assignment.caps = caps(self.settings)
        self.inbox.use(self._repositories, self.issue_observer.triggers)
        self._wakes.projects_changed()

    def _wire_model_proxy(self, secrets: Secrets) -> None:
        """Build the proxy that adds model keys to agents' requests."""
        self.endpoints = endpoints = ModelEndpoints(
            settings=self.settings,
            keys=secrets.model_keys,
            programs=self.locations.adapters,
            store=self.store,
            paths=self.paths,
            proxy_url=lambda: self.model_proxy.url,
            priced=self.prices,
        )
        self.model_proxy = ModelProxy(
            endpoints.of_token,
            endpoints.record_usage,
            self.paths.model_port,
            socket_file=self.paths.proxy_socket,
            tunnels=Tunnels(endpoints.network_of, RefusalLog(self.store.refused.record)),
            on_lost_port=self.stranded_runs.report,
        )

    def _wire_act(self, on_done: Callable[[], None]) -> None:
        """Build the outbox, and the objects that carry out its actions."""
        store, github, locations, clock = self.store, self.github, self.locations, self.clock
        settings, prompts = (
            self.settings,
            Prompts(self.settings.prompts, self.settings.project_prompts),
        )
        archive, assignment, endpoints = self.archive, self.assignment, self.endpoints
        agents = AgentRuns(
            *(store.facts, github, locations, prompts, archive, assignment, endpoints),
            *(settings, clock, self._env_files),
        )
        dispatcher = ActionDispatcher(
            store.sessions,
            store.refreshes,
            github,
            locations,
            agents,
            MessageSender(store.sessions, store.outbox, locations, prompts, clock),
            Publishing(
                *(store.facts, github, locations, self.redact, store.agents.add_paths),
                self._signer,
            ),
            Merger(store.refreshes, github, locations, self.people, clock),
            clock,
            settings.public_url,
            settings.github.app_slug,
        )
        self.late_effects = LateEffects(
            *(store.outbox, store.sessions, store.facts, dispatcher),
            *(may_run, self.leader_lease.may_act, clock),
        )
        attempts = Attempts(
            most=settings.timing.action_tries,
            first_seconds=settings.timing.action_retry_seconds,
            starts=lambda repository: self.policies.of_repository(repository).start_tries,
        )
        self.executor = ThreadPoolExecutor(_ACTIONS, thread_name_prefix="act")
        self.outbox = Outbox(
            store.outbox,
            store.incidents,
            Outages(
                *(store.incidents, self.paths.data, clock, self.executor),
                partial(github.answers, settings.github.git_base),
            ),
            store.writable,
            self.reconciler.still_wanted,
            self.policies.is_silenced,
            dispatcher,
            self.executor,
            attempts,
            clock,
            self.crash_point,
            self.leader_lease.may_act,
            on_done,
            _ACTIONS,
        )

    def _wire_notify(self, secrets: Secrets) -> None:
        settings, given = self.settings, secrets.notifiers
        self.senders = ThreadPoolExecutor(max(1, len(settings.notify)), thread_name_prefix="notify")
        self.notifications = Notifications(
            self.store,
            [
                Notifier(name, one, sender_of(name, one, given, self.clock))
                for name, one in settings.notify.items()
            ],
            settings.public_url,
            Redaction(secret_values(settings, secrets, os.environ), common_forms=True),
            settings.timing.action_retry_seconds,
            self.clock,
            self.crash_point,
            self.leader_lease.may_act,
            self.senders,
        )


def _why_not_new(paths: Paths) -> str:
    """Return why an empty database may not be created; empty if no files of sessions exist."""
    if not (remains := paths.remains()):
        return ""
    return (
        f"but {paths.data} holds the files of sessions, such as {remains}: restore the database"
        " from a backup, or begin with an empty one by `mergewright serve --new-database`"
    )
