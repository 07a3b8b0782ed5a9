"""Observes agents: probes the host once for all agents and records what changed."""

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from bot.observe.liveness import (
    MISSING,
    believable_agent,
    lost_without_trace,
    too_many_lost,
    without_frequent_news,
)
from bot.store import AwaitedReceipt, LiveSession, Observation, Receipt, Store
from bot.system.clock import Clock, from_machine, machine_time
from bot.system.crash_points import AtCrashPoint, CrashPoint
from bot.system.locations import Locations
from lifecycle.model import keys
from lifecycle.model.facts import Agent, Usage, Work
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Probe
from runtimes.agents.shared.reader import exited
from runtimes.base import RuntimeFailure
from runtimes.host import Look, RunQuery, RunReading
from runtimes.workspaces.git import GitFailure

log = logging.getLogger(__name__)

_AT_REST = (Activity.READY, Activity.IDLE, Activity.EXITED)
#: Activities that only new output at the terminal can end, never the mere passing of time.
_STILL = (Activity.IDLE, Activity.WAITING_INPUT, Activity.BLOCKED, Activity.EXITED)


class _ObservedRun(Struct, kw_only=True):
    """The state of a run that is kept between two observations."""

    session: LiveSession
    awaited: Sequence[AwaitedReceipt] = ()  #: Messages and dialog answers whose receipt is awaited.
    stored: Agent | None = None  #: The last reading, if it was stored completely.
    resting: Observation | None = None  #: The end of a turn, kept until the workspace is examined.
    #: The id and state of the open dialog when it was last checked for the effect of an answer.
    dialog: tuple[str, str] | None = None


@dataclass(frozen=True)
class AgentObserver:
    """Observes agents. Only one thread observes at a time, so that readings are stored in order.

    `examine` looks for uncommitted changes, and for commits off the branch, once a turn of an agent
    ends. It may take long, so it runs in other threads; `on_rest` is called when there is a
    workspace to examine.
    """

    store: Store
    locations: Locations
    policy_of: Callable[[str], Policy]
    priced: Callable[[Usage], Usage]  #: Adds the cost to usage.
    clock: Clock
    crash_point: AtCrashPoint
    on_rest: Callable[[], None]
    _runs: dict[str, _ObservedRun] = field(default_factory=dict, init=False)  #: By session.
    _resting: deque[_ObservedRun] = field(default_factory=deque, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def sweep(self) -> int:
        """Observe the sessions that `_running` returns; return how many of them changed.

        A session whose workspace has to be examined first is left to `examine`, and not counted.
        """
        with self._lock:
            running = self._running()
            for gone in self._runs.keys() - {live.id for live in running}:
                del self._runs[gone]
            changed = self._look(running, self._awaited(), whole=True)
        if self._resting:
            self.on_rest()
        return changed

    def confirm_receipts(self) -> int:
        """Observe only agents that have yet to show the receipt of a sent message or answer.

        Returns the number of these agents, also of those without a receipt. An exit that no
        supervisor recorded is left to the next sweep.
        """
        with self._lock:
            awaited = self._awaited()
            sent = {session for session, found in awaited.items() if any(map(_is_awaited, found))}
            running = [live for live in self._running() if live.id in sent] if sent else []
            self._look(running, awaited, whole=False)
        if self._resting:
            self.on_rest()
        return len(running)

    def examine(self) -> int:
        """Examine the workspaces of agents whose turn ended; return how many sessions changed.

        Several threads may call this at once; each takes the next waiting workspace.
        """
        changed = 0
        while self._resting:
            try:
                run = self._resting.popleft()
            except IndexError:  # Another thread took it.
                break
            resting = run.resting
            if resting is None or resting.work is None:
                continue
            work = self._examined(run.session, resting.work)
            with self._lock:
                if run.resting is resting:  # The agent has not continued meanwhile.
                    run.resting = None
                    changed += self._record([replace(resting, work=work)])
        return changed

    def _running(self) -> list[LiveSession]:
        """Return the live sessions whose current run was started and not stopped by the bot.

        A run whose program has ended by itself is included. A run that is still being started has
        no agent to probe, so its session is not included. Nor is a session whose project or agent
        type is not configured.
        """
        return [
            live
            for live in self.store.sessions.live()
            if live.run
            and live.agent.run == live.run
            and not live.agent.stopped
            and live.project in self.locations.projects
            and live.agent_type in self.locations.adapters
        ]

    def _awaited(self) -> Mapping[str, Sequence[AwaitedReceipt]]:
        """Return the messages and dialog answers that may have arrived, by session."""
        found = defaultdict[str, list[AwaitedReceipt]](list)
        for awaited in self.store.outbox.awaited():
            found[awaited.session].append(awaited)
        return found

    def _look(
        self,
        sessions: Sequence[LiveSession],
        awaited: Mapping[str, Sequence[AwaitedReceipt]],
        *,
        whole: bool,
    ) -> int:
        """Observe these sessions; return how many changed. The caller holds the lock.

        `awaited` has the messages and answers whose receipt is awaited, by session. `whole` says
        that this is a sweep of all sessions.
        """
        if not sessions:
            return 0
        now = self.clock()
        runs = [self._tracked(live, awaited.get(live.id, ())) for live in sessions]
        queries = [self._query(run, whole) for run in runs]
        look = self.locations.host.runs.look(queries, machine_time(self.clock))
        if look.failure:
            self._report(
                "runtime", f"The terminals of the agents (tmux) do not answer: {look.failure}"
            )
            if not whole:
                return 0
        elif whole:
            self._report("runtime", "")
        believed = self._believed(sessions, look, whole)
        observed: list[Observation] = []
        for query, run in zip(queries, runs, strict=True):
            reading, name = look.readings.get(query.run.name), run.session.id
            if reading is None or name not in believed:
                continue
            try:
                seen = self._observe(run, reading, believed[name], now)
            except Exception:
                # One session that cannot be read must not keep the others from being read.
                log.exception("%s: its agent could not be observed", name, extra={"session": name})
            else:
                observed += [seen] if seen is not None else []
        return self._record(observed)

    def _tracked(self, live: LiveSession, awaited: Sequence[AwaitedReceipt]) -> _ObservedRun:
        run = self._runs.get(live.id)
        if run is None or run.session.run != live.run:
            run = self._runs[live.id] = _ObservedRun(session=live)
        run.session, run.awaited = live, awaited
        return run

    def _query(self, run: _ObservedRun, whole: bool) -> RunQuery:
        live, agent = run.session, run.session.agent
        still = agent.activity in _STILL and agent.probe_failure is None and run.stored == agent
        return RunQuery(
            run=self.locations.run_of(live),
            alive=agent.program is not Probe.DEAD,
            unchanged=whole and still and not any(map(_may_arrive, run.awaited)),
            awaiting=tuple(keys.visible(live.id, one.key) for one in run.awaited),
        )

    def _believed(
        self, sessions: Sequence[LiveSession], look: Look, whole: bool
    ) -> Mapping[str, bool]:
        """Return the sessions to record, by id: True if the program vanished with no recorded exit.

        All values are False if the probe failed, or if implausibly many programs vanished at once,
        which is also reported as an incident. A session is left out while an action ends its
        program: the action itself records the end, so that it does not count as a crash. Outside a
        sweep, sessions whose program vanished are left out too.
        """
        if look.failure:
            return {live.id: False for live in sessions}
        probes = [
            (live, look.probes.get(self.locations.run_of(live).name, MISSING)) for live in sessions
        ]
        lost = too_many_lost(probes) if whole else 0
        text = (
            f"{lost} of {len(probes)} programs vanished at once without a trace. The bot takes this"
            " for a failed probe, and no agent counts as exited. Run `mergewright doctor`; if the"
            " programs are really gone, restart or stop their sessions"
        )
        if whole:
            self._report("many-lost", text if lost else "")
        found = {}
        for live, seen in probes:
            lived = live.agent.program is not Probe.DEAD
            if seen.program is Probe.DEAD and lived and self.store.outbox.ends_program(live.id):
                continue
            gone = lost_without_trace(live, seen)
            if whole or not gone:
                found[live.id] = gone and not lost
        return found

    def _report(self, key: str, text: str) -> None:
        """Report a failure to observe as an incident; close the incident if `text` is empty."""
        if text:
            if self.store.incidents.report(key, text, self.clock()):
                log.error("%s", text)
        elif self.store.incidents.clear(key, self.clock()):
            log.info("%s: incident closed", key)

    def _observe(
        self, run: _ObservedRun, reading: RunReading, gone: bool, now: datetime
    ) -> Observation | None:
        """Return what to record of one session, or None if its workspace is to be examined first.

        Receipts are recorded in the same transaction as the activity that their messages may have
        caused. `gone` says that the program vanished, as in `_believed`.
        """
        live, run.stored = run.session, None
        agent, clock = reading.agent, self.clock
        read = replace(
            agent,
            run=live.run,
            usage=self.priced(agent.usage),
            since=from_machine(clock, agent.since),
            seen=from_machine(clock, agent.seen),
            exit=agent.exit and replace(agent.exit, at=from_machine(clock, agent.exit.at)),
        )
        if gone:
            read = replace(read, runtime=Probe.DEAD, program=Probe.DEAD)
            read = exited(MISSING, read) or read
        agent = believable_agent(live.agent, read, now, self.policy_of(live.project))
        written = without_frequent_news(live.agent, agent, now)
        receipts = self._receipts(run, reading, now)
        observed = self._observation(run, written, reading.head, receipts)
        if written == agent:
            run.stored = agent
        return observed

    def _observation(
        self, run: _ObservedRun, agent: Agent, head: str | None, receipts: Observation
    ) -> Observation | None:
        live = run.session
        before, run.resting = run.resting, None
        observed = replace(receipts, run=live.run, agent=agent)
        head = head or live.work.head  # The agent may have renamed or deleted the branch.
        if not head:
            return observed
        if agent.activity not in _AT_REST:
            return replace(observed, work=_unexamined(live.work, head))
        turned = live.agent.activity not in _AT_REST or agent.since != live.agent.since
        if head == live.work.head and live.work.dirty is not None and not turned:
            return observed
        resting = replace(observed, work=_unexamined(live.work, head))
        if before is not None and _rest(before) == _rest(resting):
            run.resting = before
            held = before.received
            return replace(receipts, received=tuple(s for s in receipts.received if s not in held))
        # Recorded later, these could be about a message that was sent again meanwhile.
        run.resting = replace(resting, advanced=(), missing=())
        self._resting.append(run)
        return None

    def _receipts(self, run: _ObservedRun, reading: RunReading, now: datetime) -> Observation:
        """Return which messages and answers have arrived, advanced or are missing.

        An answer has arrived when its last step has. Earlier steps only advance it.
        """
        received, advanced, missing = list[int](), list[int](), list[int]()
        for one in run.awaited:
            receipt = one.receipt
            if receipt is not None and receipt.dialog:
                arrived, finished = self._answer_arrived(run, receipt)
            else:
                arrived = finished = keys.visible(one.session, one.key) in reading.received
            if arrived:
                (received if finished else advanced).append(one.seq)
            elif receipt is not None and not receipt.sent.missing and now >= receipt.sent.until:
                missing.append(one.seq)
        return Observation(
            session=run.session.id,
            received=tuple(received),
            advanced=tuple(advanced),
            missing=tuple(missing),
        )

    def _answer_arrived(self, run: _ObservedRun, receipt: Receipt) -> tuple[bool, bool]:
        """Whether a step of an answer changed the agent's dialog, and whether it was the last step.

        Two checks in a row have to agree, because a single check may see a half-drawn screen.
        """
        try:
            dialog = self.locations.host.runs.dialog(self.locations.run_of(run.session))
        except RuntimeFailure:
            return False, False
        shows = (dialog.id, dialog.state) if dialog else ("", "")
        before, run.dialog = run.dialog, shows
        if shows == (receipt.dialog, receipt.state) or shows != before:
            return False, False
        run.dialog = None
        return True, shows[0] != receipt.dialog

    def _examined(self, live: LiveSession, work: Work) -> Work:
        workspace = self.locations.workspace_of(live)
        try:
            off_branch = workspace.off_branch(work.head)
            return replace(work, dirty=workspace.dirty(), off_branch=off_branch)
        except (GitFailure, OSError) as failure:  # The workspace may be removed at this moment.
            if (words := str(failure)) != live.work.unreadable:
                log.warning(
                    "%s: its workspace could not be read: %s",
                    *(live.id, words),
                    extra={"session": live.id},
                )
            return replace(work, unreadable=words)

    def _record(self, observed: Sequence[Observation]) -> int:
        changed = self.store.observations.record(observed, self.clock()) if observed else []
        if changed:
            self.crash_point(CrashPoint.OBSERVED, " ".join(changed))
        return len(changed)


def _is_awaited(awaited: AwaitedReceipt) -> bool:
    """Whether the message or answer was sent and is not known to be missing."""
    return awaited.sent and _may_arrive(awaited)


def _may_arrive(awaited: AwaitedReceipt) -> bool:
    """Whether the message or answer was sent, perhaps just before a crash, and may still arrive."""
    return awaited.receipt is not None and not awaited.receipt.sent.missing


def _unexamined(work: Work, head: str) -> Work:
    """Return the work at `head`. Uncommitted changes and commits off the branch are unknown."""
    return replace(work, head=head, dirty=None, off_branch=None, unreadable="")


def _rest(seen: Observation) -> object:
    """Return a value that is equal for two observations of the same end of a turn."""
    agent = seen.agent
    return seen.work, agent and (agent.activity, agent.since, agent.exit)
