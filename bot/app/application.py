"""One bot at work: its lanes, what each of them does, and whom it wakes."""

import time
from contextlib import suppress
from threading import Event

from bot.app.wiring import Wakes, Wiring
from bot.app.workers import Job, Ticker, Worker
from bot.archive.retention import Busy
from bot.decide.outsiders import notify_outsiders
from bot.show.terminal import terminal
from bot.system.clock import Clock, utc_now
from bot.system.crash_points import AtCrashPoint, CrashPoint, log_crash_point
from bot.system.http_server import HttpServer
from bot.web.app import build
from bot.web.health import Health
from bot.web.webhook import WebhookLimits
from config.load import Secrets
from config.settings import Settings
from runtimes.machine import free_mb

#: How many workspaces are looked into at once: one that is huge must not delay the others.
_EXAMINERS = 2
#: How often what is due by the clock is looked for; what comes in is looked at at once.
_BEAT_SECONDS = 0.5
#: How long what runs may take to end when the bot stops.
_STOP_SECONDS = 5.0
#: How soon a signal is applied that comes just as the main thread falls asleep: Python's handler
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
        crash_point: AtCrashPoint = log_crash_point,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._crash_point = crash_point
        self._looked_at_all = False  #: Whether every session was visited since we lead.
        self._sorting = Worker("inbox", self._sort)
        self._reading = Worker("github", self._read)
        self._sweeping = Worker("sweep", self._sweep)
        self._examining = [Worker(f"examine-{n}", self._examine) for n in range(_EXAMINERS)]
        self._reconciling = Worker("reconcile", self._reconcile)
        self._doing = Worker("outbox", self._do)
        self._resyncing = Worker("resync", self._resync)
        self._redelivering = Worker("redeliver", self._redeliver)
        self._archiving = Worker("archive", self._archive)
        self._retaining = Worker("retention", self._retain)
        self._workers = (
            self._sorting,
            self._reading,
            self._sweeping,
            *self._examining,
            self._reconciling,
            self._doing,
            self._resyncing,
            self._redelivering,
            self._archiving,
            self._retaining,
        )
        self._over = Event()
        wakes = Wakes(
            leader_lease=self._begin,
            delivered=self._delivered,
            resting=self._examine_soon,
            decided=self._doing.wake,
            done=self._after_action,
        )
        self.parts = parts = Wiring(settings, secrets, clock, crash_point, wakes, self._over)
        timing = settings.timing
        self._ticker = Ticker(
            (
                Job(name="sweep", every_seconds=timing.sweep_seconds, run=self._sweeping.wake),
                Job(name="beat", every_seconds=_BEAT_SECONDS, run=self._beat),
                Job(
                    name="resync",
                    every_seconds=settings.resync_seconds,
                    run=self._resyncing.wake,
                ),
                Job(name="redeliver", every_seconds=900.0, run=self._redelivering.wake),
                Job(
                    name="archive",
                    every_seconds=settings.retention.archive_seconds,
                    run=self._archiving.wake,
                ),
                Job(name="retention", every_seconds=3600.0, run=self._retaining.wake),
            )
        )
        self.server = HttpServer(
            build(
                parts.inbox,
                parts.store,
                webhook_secrets=(secrets.webhook_secret, secrets.webhook_secret_previous),
                page_token=secrets.page_token,
                health=self.health,
                settings=settings,
                policies=parts.policies,
                terminal=terminal(parts.store, parts.locations, parts.redact),
                limits=WebhookLimits(
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
        self.parts.leader_lease.start()

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
        self.parts.leader_lease.join()
        self.server.stop()
        self.parts.model_proxy.stop()
        self._ticker.stop()
        until = time.monotonic() + _STOP_SECONDS
        ended = [worker.close(_left(until)) for worker in self._workers]
        self.parts.workers.shutdown(wait=False, cancel_futures=True)
        ended.append(self.parts.outbox.rest(_left(until)))
        self.parts.leader_lease.step_down()
        self.parts.store.close()
        self.parts.github.close()
        return all(ended)

    def health(self) -> Health:
        """What the health routes say."""
        return Health(
            scheduler=self._ticker.running, standing_by=self.parts.leader_lease.standing_by
        )

    def _begin(self) -> None:
        """Act: the database is ours."""
        if self._settings.key_variables:
            self.parts.model_proxy.start()
        self._ticker.start()
        for worker in self._workers:
            worker.wake()
            worker.start()

    # -- lanes -----------------------------------------------------------------------------------

    def _beat(self) -> None:
        for worker in (self._sorting, self._reading, self._reconciling, self._doing):
            worker.wake()

    def _delivered(self) -> None:
        self._crash_point(CrashPoint.DELIVERED, "")
        self._sorting.wake()

    def _sort(self) -> None:
        while sorted_ := self.parts.inbox.process():
            self._crash_point(CrashPoint.SORTED, f"{sorted_} deliveries")
            self._reading.wake()

    def _read(self) -> None:
        """Everything read from GitHub, one after the other, so that no older answer comes last."""
        # A command may follow right after the label, and is about the head that was current before
        # the pull request is read again.
        if self.parts.policies.adopt(self.parts.repository_config.read_pushed()):
            self._judge_all_anew()
        done = self.parts.access_observer.look_if_asked()
        done += self.parts.issue_observer.read_requested()
        done += self.parts.commands.settle()
        done += self.parts.pull_observer.read_requested()
        done += notify_outsiders(self.parts.store, self.parts.policies.is_silenced, self._clock)
        if done:
            # The issue of an authorized start command is read next, and answers are posted.
            for worker in (self._reconciling, self._doing, self._reading):
                worker.wake()

    def _judge_all_anew(self) -> None:
        """The policy is another one."""
        self._looked_at_all = False
        self._reconciling.wake()

    def _sweep(self) -> None:
        if self.parts.agent_observer.sweep():
            self._reconciling.wake()

    def _examine_soon(self) -> None:
        for worker in self._examining:
            worker.wake()

    def _examine(self) -> None:
        if self.parts.agent_observer.examine():
            self._reconciling.wake()

    def _redeliver(self) -> None:
        self.parts.redelivery.ask()

    def _archive(self) -> None:
        self.parts.archive.keep_all(self.parts.store.sessions.live())

    def _retain(self) -> None:
        with suppress(Busy):  # A person is at it, by the same rules.
            self.parts.retention.apply()

    def _reconcile(self) -> None:
        if not self._looked_at_all:
            # What is known of the agents may be hours old, and would be told as if it were new.
            self.parts.agent_observer.sweep()
            self.parts.agent_observer.examine()
            self.parts.reconciler.reconcile_live()
            self._looked_at_all = True
        self.parts.reconciler.reconcile_due()
        if self.parts.store.slots.assign(self.parts.caps, free_mb()):
            self._reconciling.wake()

    def _do(self) -> None:
        self.parts.outbox.drain()

    def _after_action(self) -> None:
        self._reconciling.wake()
        self._reading.wake()
        self._doing.wake()

    def _resync(self) -> None:
        self.parts.access_observer.look()
        if self.parts.policies.adopt(self.parts.repository_config.read()):
            self._judge_all_anew()
        self.parts.resync.look()
        if self._settings.polls:
            self.parts.comment_poller.look()
        self._reading.wake()


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())
