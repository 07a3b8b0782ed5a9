"""Runs one bot: creates its workers, and defines which worker wakes which."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from threading import Event

from bot.app.github_client import github_sign_in
from bot.app.wiring import Wakes, Wiring
from bot.app.workers import Job, Ticker, Worker
from bot.archive.retention import Busy
from bot.decide.opening import notify_outsiders
from bot.show.terminal import terminal
from bot.system.clock import Clock, SteadyClock, utc_now
from bot.system.crash_points import AtCrashPoint, CrashPoint, log_crash_point
from bot.system.http_server import HttpServer
from bot.system.struct_types import prepare_struct_types
from bot.web.app import build
from bot.web.health import Health
from bot.web.webhook import WebhookLimits
from config.load import Secrets
from config.settings import Settings
from lifecycle.read.sentences import duration
from runtimes.local_host import free_mb

log = logging.getLogger(__name__)

#: How many workspaces are examined at once, so that a huge one does not delay the others.
_EXAMINERS = 2
#: A bot is not ready if its last sweep of all agents is older than the larger of these two:
#: seconds, and intervals between sweeps.
_SWEEP_LATE_SECONDS, _SWEEPS_MISSED = 60.0, 12
#: How often workers look for work that became due with time; new events wake them at once.
_BEAT_SECONDS = 0.5
#: The pause between two checks whether agents have received the messages sent to them.
_CONFIRM_SECONDS = 0.1
#: How long running work may take to finish when the bot stops.
_STOP_SECONDS = 5.0
#: How late the bot may notice a signal that arrives just as the main thread goes to sleep, because
#: Python runs the handler only once that thread wakes up.
_SIGNAL_SECONDS = 0.5
#: How often notifiers look for causes that have no stored message yet.
_NOTIFY_SECONDS = 1.0
_DISK_SECONDS = 30.0  #: The interval at which the disk use of sessions is measured.
#: How often the redelivery of lost webhooks is requested, and expired data deleted.
_REDELIVERY_SECONDS, _RETENTION_SECONDS = 900.0, 3600.0


class App:
    """One bot: its objects, its worker threads and its HTTP server."""

    def __init__(
        self,
        settings: Settings,
        secrets: Secrets,
        *,
        clock: Clock = utc_now,
        crash_point: AtCrashPoint = log_crash_point,
        new_database: bool = False,
    ) -> None:
        """Create all objects; `start` starts them. May raise any of `process.CANNOT_START`.

        `new_database` says whether an empty database may be created in a folder that holds files of
        sessions.
        """
        self._settings = settings
        self._clock = clock
        self._crash_point = crash_point
        #: Whether all live sessions were reconciled since this bot began to lead and since the last
        #: change of a policy.
        self._reconciled_all = False
        #: When this bot last looked at all agents, or began to lead, on the monotonic clock. None
        #: before it leads.
        self._swept: float | None = None
        self._clock_jumped = False  #: Whether an incident about the machine's clock is open.
        self._stopping = Event()
        wakes = Wakes(
            leads=self._lead,
            delivered=self._on_delivered,
            turn_ended=self._on_turn_ended,
            decided=self._on_decided,
            acted=self._on_acted,
            projects_changed=self._on_policy_change,
        )
        self.wiring = wiring = Wiring(
            settings, secrets, clock, crash_point, wakes, self._stopping, new_database
        )
        wiring.store.on_damage.append(self._stopping.set)
        self._workers: list[Worker] = []
        self._inbox = self._worker("inbox", self._process_deliveries)
        self._github = self._worker("github", self._read_github)
        self._sweep = self._worker("sweep", self._sweep_agents)
        self._confirm = self._worker("receipts", self._confirm_receipts)
        self._examine = [
            self._worker(f"examine-{number}", self._examine_workspaces)
            for number in range(_EXAMINERS)
        ]
        disk = self._worker("disk", self._measure_disk)
        self._reconcile = self._worker("reconcile", self._reconcile_sessions)
        self._outbox = self._worker("outbox", wiring.outbox.drain)
        self._resync = self._worker("resync", self._resync_all)
        self._stranded = self._worker("stranded-runs", self._end_stranded_runs)
        redeliver = self._worker("redeliver", wiring.redelivery.request_lost)
        archive = self._worker("archive", self._archive_transcripts)
        retention = self._worker("retention", self._delete_expired)
        jobs = []
        if settings.notify:
            notify = self._worker("notify", wiring.notifications.look)
            wiring.notifications.on_sent = notify.wake
            jobs.append(Job("notify", _NOTIFY_SECONDS, notify.wake))
        self._ticker = Ticker(
            Job("beat", _BEAT_SECONDS, self._beat),
            Job("sweep", settings.timing.sweep_seconds, self._sweep.wake),
            Job("resync", settings.resync_seconds, self._resync.wake),
            Job("redeliver", _REDELIVERY_SECONDS, redeliver.wake),
            Job("disk", _DISK_SECONDS, disk.wake),
            Job("archive", settings.retention.archive_seconds, archive.wake),
            Job("retention", _RETENTION_SECONDS, retention.wake),
            *jobs,
        )
        self.server = HttpServer(
            build(
                wiring.inbox,
                wiring.store,
                webhook_secrets=(secrets.webhook_secret, secrets.webhook_secret_previous),
                page_token=secrets.page_token,
                health=self.health,
                settings=wiring.settings,
                policy_of=wiring.policies.of,
                caps=lambda: wiring.caps,
                terminal=terminal(wiring.store, wiring.locations, wiring.redact),
                keyboard=wiring.keyboard,
                people=wiring.people,
                sign_in=github_sign_in(settings, secrets),
                limits=WebhookLimits(
                    body_bytes=settings.limits.webhook_bytes,
                    unverified_bytes=settings.limits.unverified_bytes,
                ),
            ),
            settings.server.host,
            settings.server.port,
        )
        self._ends = False

    def start(self) -> None:
        """Answer HTTP at once; start to act as soon as this bot has the lease.

        Raises `CannotListen`.
        """
        prepare_struct_types()
        self.server.start()
        self.wiring.leader_lease.start()

    def wait(self, interrupted: Callable[[], bool] = lambda: False) -> None:
        """Block until the bot should end, has lost its lease or has found its database damaged.

        Also returns once `interrupted`, which is called twice a second, returns True.
        """
        while not self._ends and not self._stopping.wait(_SIGNAL_SECONDS):
            if interrupted():
                return

    def end(self) -> None:
        """Make `wait` return soon. Safe to call from a signal handler: it takes no lock."""
        self._ends = True

    def stop(self) -> bool:
        """Stop in order: take no new work, finish running work, release the lease.

        Returns False if some work, such as a hanging request or a large push, did not finish within
        5 seconds. The process should then exit. The next bot repeats that work, because its result
        is not recorded.
        """
        wiring = self.wiring
        self._stopping.set()
        wiring.leader_lease.join()
        self.server.stop()
        wiring.model_proxy.stop()
        self._ticker.stop()
        until = time.monotonic() + _STOP_SECONDS
        finished = [worker.close(_left(until)) for worker in self._workers]
        for executor in (wiring.executor, wiring.senders):
            executor.shutdown(wait=False, cancel_futures=True)
        finished.append(wiring.outbox.rest(_left(until)))
        finished.append(wiring.notifications.rest(_left(until)))
        wiring.leader_lease.step_down()
        wiring.store.close()
        wiring.github.close()
        return all(finished)

    @property
    def ended(self) -> bool:
        """Whether the bot should end, or can no longer act."""
        return self._ends or self._stopping.is_set()

    def health(self) -> Health:
        """Return the state that the health routes report."""
        reason = self.wiring.store.damage or self.wiring.leader_lease.standby_reason
        age = None if self._swept is None else time.monotonic() - self._swept
        late = max(_SWEEP_LATE_SECONDS, _SWEEPS_MISSED * self._settings.timing.sweep_seconds)
        return Health(
            scheduler=self._ticker.running,
            standby_reason=reason,
            sweep_age=age,
            sweep_late=age is not None and age > late,
        )

    # -- what wakes workers ----------------------------------------------------------------------

    def _lead(self) -> None:
        """Start acting: this bot got the lease."""
        self._swept = time.monotonic()
        clock, store = self._clock, self.wiring.store
        if isinstance(clock, SteadyClock) and (recorded := store.history.newest()):
            clock.continue_from(recorded)
        store.incidents.clear("clock", clock())
        self.wiring.outbox.begin()
        self.wiring.model_proxy.start()
        self._ticker.start()
        for worker in self._workers:
            worker.wake()
            worker.start()

    def _worker(self, name: str, work: Callable[[], object]) -> Worker:
        self._workers.append(worker := Worker(name, work))
        return worker

    def _beat(self) -> None:
        self._look_at_clock()
        _wake(self._inbox, self._github, self._reconcile, self._outbox)

    def _look_at_clock(self) -> None:
        """Open an incident if the machine's clock jumped and is wrong; close it once it is right.

        Does nothing unless the bot's clock is a `SteadyClock`.
        """
        clock, incidents = self._clock, self.wiring.store.incidents
        if not isinstance(clock, SteadyClock):
            return
        if jumped := clock.look():
            log.warning("the machine's clock jumped by %+.0f s", jumped.total_seconds())
            self.wiring.locations.host.runs.forget()  # Their files are compared with the time.
        if jumped and not clock.agrees:
            where = "ahead of" if clock.ahead > timedelta() else "behind"
            text = (
                f"The machine's clock jumped: it is now {duration(abs(clock.ahead))} {where} the"
                " bot's own clock. Intervals and time-outs are not affected. Check the machine's"
                " time service, then restart the bot, so that it shows the machine's time again"
            )
            incidents.report("clock", text, clock())
            self._clock_jumped = True
        elif self._clock_jumped and clock.agrees:
            incidents.clear("clock", clock())
            self._clock_jumped = False

    def _on_delivered(self) -> None:
        self._crash_point(CrashPoint.DELIVERED, "")
        self._inbox.wake()

    def _on_turn_ended(self) -> None:
        _wake(*self._examine)

    def _on_decided(self) -> None:
        self._outbox.wake()

    def _on_acted(self) -> None:
        _wake(self._reconcile, self._github, self._outbox, self._confirm)

    def _on_policy_change(self) -> None:
        self._reconciled_all = False
        self._reconcile.wake()

    # -- what workers do -------------------------------------------------------------------------

    def _process_deliveries(self) -> None:
        while processed := self.wiring.inbox.process():
            self._crash_point(CrashPoint.SORTED, f"{processed} deliveries")
            self._github.wake()

    def _read_github(self) -> None:
        """Read from GitHub what is due.

        One thread only, so that an older response is never stored last.
        """
        wiring = self.wiring
        # A command may follow right after the label, and is about the head that was current before
        # the pull request is read again.
        if wiring.policies.adopt(wiring.repository_config.read_pushed()):
            self._on_policy_change()
        done = wiring.access_observer.read_requested()
        if done and self._settings.installation.repositories:
            self._resync.wake()  # The App may have been installed on other repositories.
        done += wiring.issue_observer.read_requested()
        done += wiring.authorizer.settle()
        done += wiring.pull_observer.read_requested()
        done += notify_outsiders(wiring.store.outsiders, wiring.policies.is_silenced, self._clock)
        if done:
            # The issue of an authorized start command is read next, and replies are posted.
            _wake(self._reconcile, self._outbox, self._github)

    def _sweep_agents(self) -> None:
        changed = self.wiring.agent_observer.sweep()
        self._swept = time.monotonic()
        if changed:
            self._reconcile.wake()

    def _confirm_receipts(self) -> None:
        """Check whether sent messages have arrived, and repeat this while any are awaited."""
        if self.wiring.agent_observer.confirm_receipts():
            _wake(self._reconcile, self._outbox)
            time.sleep(_CONFIRM_SECONDS)
            self._confirm.wake()

    def _examine_workspaces(self) -> None:
        if self.wiring.agent_observer.examine():
            self._reconcile.wake()

    def _measure_disk(self) -> None:
        if self.wiring.disk_observer.measure():
            self._reconcile.wake()

    def _reconcile_sessions(self) -> None:
        wiring = self.wiring
        if not self._reconciled_all:
            # Facts about agents may be hours old when this bot begins to lead.
            wiring.agent_observer.sweep()
            wiring.agent_observer.examine()
            wiring.reconciler.reconcile_live()
            self._reconciled_all = True
        wiring.reconciler.reconcile_due()
        if wiring.store.slots.assign(wiring.caps, free_mb()):
            self._reconcile.wake()

    def _resync_all(self) -> None:
        wiring = self.wiring
        wiring.late_effects.remove()
        self._stranded.wake()
        wiring.installation_observer.read()
        wiring.access_observer.read_all()
        if wiring.policies.adopt(wiring.repository_config.read()):
            self._on_policy_change()
        wiring.resync.run()
        if self._settings.polls:
            wiring.comment_poller.poll()
        self._github.wake()

    def _end_stranded_runs(self) -> None:
        self.wiring.stranded_runs.end_all()
        self._reconcile.wake()

    def _archive_transcripts(self) -> None:
        self.wiring.archive.keep_all(self.wiring.store.sessions.live())

    def _delete_expired(self) -> None:
        with suppress(Busy):  # A person runs `mergewright cleanup` right now.
            self.wiring.retention.apply()


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())


def _wake(*workers: Worker) -> None:
    for worker in workers:
        worker.wake()
