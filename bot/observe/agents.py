"""The observer of agents: one look at all runtimes, what is new in their files, one commit."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from bot.observe.liveness import MISSING, UNKNOWN, many_lost, settled, throttled, unproven
from bot.store import LiveSession, Observation, Store
from bot.system.clock import Clock
from bot.system.crash_points import AtCrashPoint, CrashPoint
from bot.system.locations import Locations
from lifecycle.model.facts import Agent, Usage
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Probe
from runtimes.agents.base import Reader
from runtimes.base import Handle, RuntimeFailure, Seen
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.worktree import Worktree

log = logging.getLogger(__name__)

_AT_REST = (Activity.READY, Activity.IDLE, Activity.EXITED)
#: Activities that end with a sign at the terminal, and not by the mere passing of time.
_STILL = (Activity.IDLE, Activity.WAITING_INPUT, Activity.BLOCKED, Activity.EXITED)
#: Where the runtime saw nothing new, files are read again after this time, or twice of it.
_AGAIN = timedelta(seconds=60)
#: Runtimes tell the time of the last output in whole seconds: what came just after counts too.
_OUTPUT_TICK = timedelta(seconds=2)


class _Watched(Struct, kw_only=True):
    """One run under watch."""

    run: int
    handle: Handle
    reader: Reader
    workspace: Worktree
    seen: Seen | None = None  #: What its files were last read with, and when.
    read_at: datetime
    again_at: datetime
    stored: Agent | None = None  #: What was made of it, where all of it was written down.
    resting: Observation | None = None  #: A turn that ended, while its workspace is examined.


class AgentObserver:
    """Reads agents. Its readers remember how far they read; one thread at a time uses them.

    `examine` looks into the workspaces of those whose turn has ended. That may take long, so it is
    done beside the sweeps; `on_rest` is called when there is something to examine.
    """

    def __init__(
        self,
        store: Store,
        locations: Locations,
        policy_of: Callable[[str], Policy],
        priced: Callable[[Usage], Usage],
        clock: Clock,
        crash_point: AtCrashPoint,
        on_rest: Callable[[], None],
    ) -> None:
        self._store = store
        self._locations = locations
        self._policy_of = policy_of
        self._priced = priced
        self._clock = clock
        self._crash_point = crash_point
        self._on_rest = on_rest
        self._watched: dict[str, _Watched] = {}
        self._resting: deque[_Watched] = deque()
        self._unreadable: set[str] = set()
        self._lock = threading.Lock()

    def sweep(self) -> int:
        """Look at every session that has a program. Returns how many changed."""
        with self._lock:
            running = self._running()
            for gone in self._watched.keys() - {live.id for live in running}:
                del self._watched[gone]
            changed = self._look(running, whole=True)
        if self._resting:
            self._on_rest()
        return changed

    def look(self, session: str) -> None:
        """Look at one session now. A death that nothing proves is left to the next sweep."""
        with self._lock:
            # Asked for with the lock held, so that no older state is taken for the one before.
            self._look([live for live in self._running() if live.id == session], whole=False)
        if self._resting:
            self._on_rest()

    def received(self, session: str, mark: str) -> bool:
        """Whether a message with this visible mark reached the agent of the current run."""
        self.look(session)
        with self._lock:
            watched = self._watched.get(session)
            return watched is not None and watched.reader.received(mark)

    def examine(self) -> int:
        """Look for uncommitted work where a turn has ended. Returns how many sessions changed.

        May be called from several threads; each takes the next.
        """
        changed = 0
        while self._resting:
            try:
                watched = self._resting.popleft()
            except IndexError:  # Another thread took it.
                break
            resting = watched.resting
            if resting is None or resting.work is None:
                continue
            work = replace(resting.work, dirty=self._dirty(resting.session, watched.workspace))
            with self._lock:
                if watched.resting is resting:  # It has not gone on meanwhile.
                    watched.resting = None
                    changed += self._write([replace(resting, work=work)])
        return changed

    def _running(self) -> list[LiveSession]:
        """Sessions whose ordered run was started and not released.

        A spawning one is never judged by a probe: its run has no agent yet.
        """
        return [
            live
            for live in self._store.sessions.live()
            if live.run
            and live.agent.run == live.run
            and not live.agent.stopped
            and live.work.path
            and live.project in self._locations.projects
            and live.agent_type in self._locations.programs
        ]

    def _look(self, sessions: Sequence[LiveSession], *, whole: bool) -> int:
        """Look at these, with the lock held: at all (`whole`), or at some out of turn."""
        if not sessions:
            return 0
        now = self._clock()
        try:
            looked = self._locations.runtime.look()
        except RuntimeFailure as failure:
            self._incident("runtime", f"The runtime does not answer: {failure}")
            if not whole:
                return 0
            probes = [(live, UNKNOWN) for live in sessions if live.agent.program is not Probe.DEAD]
        else:
            if whole:
                self._incident("runtime", "")
            probes = self._believed(self._seen(sessions, looked, now), whole)
        if whole:
            probes = [(live, seen) for live, seen in probes if not self._is_quiet(live, seen, now)]
        screens = self._screens([live for live, _ in probes])
        observed = []
        for place, (live, seen) in enumerate(probes):
            # Spread out, so that those that were first read together are not read so again.
            again = now + _AGAIN * (1 + place / len(probes))
            if read := self._try_to_read(live, seen, screens, now, again):
                observed.append(read)
        return self._write(observed)

    def _seen(
        self, sessions: Sequence[LiveSession], looked: Mapping[Handle, Seen], now: datetime
    ) -> list[tuple[LiveSession, Seen]]:
        """What a look saw of each. Of a program that was ended before there is nothing to see.

        One that is being ended is written down as such with its end, not as one that broke off.
        """
        probes = []
        for live in sessions:
            seen = looked.get(self._of(live, now).handle) or MISSING
            lived = live.agent.program is not Probe.DEAD
            if seen.program is Probe.DEAD and lived and self._store.outbox.ends_program(live.id):
                continue
            if lived or seen is not MISSING:
                probes.append((live, seen))
        return probes

    def _believed(
        self, probes: list[tuple[LiveSession, Seen]], whole: bool
    ) -> list[tuple[LiveSession, Seen]]:
        """The look without deaths that it cannot tell from a look that failed."""
        if not whole:
            return [(live, seen) for live, seen in probes if not unproven(live, seen)]
        lost = many_lost(probes)
        self._incident(
            "many-lost",
            f"{lost} of {len(probes)} programs vanished in one look and left no trace: the look is "
            "not believed, and nobody is taken for dead. Run `mergewright doctor`; where they are "
            "gone indeed, restart or stop their sessions"
            if lost
            else "",
        )
        if not lost:
            return probes
        return [(live, UNKNOWN if unproven(live, seen) else seen) for live, seen in probes]

    def _incident(self, key: str, text: str) -> None:
        """Tell people of what is wrong with the looks, and that it is over (no text)."""
        if text:
            if self._store.incidents.report(key, text, self._clock()):
                log.error("%s", text)
        elif self._store.incidents.clear(key, self._clock()):
            log.info("%s: it is over", key)

    def _is_quiet(self, live: LiveSession, seen: Seen, now: datetime) -> bool:
        """Whether nothing can be new: all was written down, and the terminal shows no sign."""
        watched = self._watched[live.id]
        return (
            live.agent.activity in _STILL
            and live.agent.doubt is None
            and watched.stored == live.agent
            and watched.seen == seen
            and now < watched.again_at
            and (seen.output_at is None or seen.output_at + _OUTPUT_TICK < watched.read_at)
        )

    def _screens(self, sessions: Sequence[LiveSession]) -> Mapping[Handle, str]:
        programs = self._locations.programs
        curious = [live for live in sessions if programs[live.agent_type].wants_screen]
        try:
            handles = [self._watched[live.id].handle for live in curious]
            return self._locations.runtime.screens(handles) if handles else {}
        except RuntimeFailure as failure:
            log.warning("no terminal could be read: %s", failure)
            return {}

    def _of(self, live: LiveSession, now: datetime) -> _Watched:
        """What is known of the session's run from earlier looks."""
        watched = self._watched.get(live.id)
        if watched is None or watched.run != live.run:
            workspace = self._locations.workspace(live.project, live.id, live.branch)
            files = self._locations.files(live.id, live.run, live.branch, workspace.path)
            watched = self._watched[live.id] = _Watched(
                run=live.run,
                handle=self._locations.handle(live.id, live.run),
                reader=self._locations.programs[live.agent_type].reader(files),
                workspace=workspace,
                read_at=now,
                again_at=now,
            )
        return watched

    def _try_to_read(
        self,
        live: LiveSession,
        seen: Seen,
        screens: Mapping[Handle, str],
        now: datetime,
        again: datetime,
    ) -> Observation | None:
        """One session that cannot be read must not keep the others from being read."""
        watched = self._of(live, now)
        watched.stored = None
        try:
            read = watched.reader.read(seen, screens.get(watched.handle), now)
            policy = self._policy_of(live.project)
            read = replace(read, run=live.run, usage=self._priced(read.usage))
            agent = settled(live.agent, read, now, policy)
            written = throttled(live.agent, agent, now)
            observed = self._observed(live, watched, written)
        except Exception:
            if live.id not in self._unreadable:
                log.exception("%s: its agent could not be read", live.id)
            self._unreadable.add(live.id)
            return None
        self._unreadable.discard(live.id)
        watched.seen, watched.read_at, watched.again_at = seen, now, again
        if written == agent:
            watched.stored = agent
        return observed

    def _observed(self, live: LiveSession, watched: _Watched, agent: Agent) -> Observation | None:
        """What to write down now. A turn that ended is, once its workspace was examined."""
        before, watched.resting = watched.resting, None
        head = watched.workspace.head() if watched.workspace.made else None
        observed = Observation(session=live.id, run=live.run, agent=agent)
        if head is None:
            return observed
        if agent.activity not in _AT_REST:
            return replace(observed, work=replace(live.work, head=head, dirty=None))
        turned = live.agent.activity not in _AT_REST or agent.since != live.agent.since
        if head == live.work.head and live.work.dirty is not None and not turned:
            return observed
        resting = replace(observed, work=replace(live.work, head=head, dirty=None))
        if before is not None and _same_rest(before, resting):
            watched.resting = before
            return None
        watched.resting = resting
        self._resting.append(watched)
        return None

    def _dirty(self, session: str, workspace: Worktree) -> bool | None:
        try:
            return workspace.dirty()
        except (GitFailure, OSError) as failure:  # It may be removed at this very moment.
            log.warning("%s: its workspace could not be read: %s", session, failure)
            return None

    def _write(self, observed: Sequence[Observation]) -> int:
        changed = self._store.observations.record(observed, self._clock()) if observed else []
        if changed:
            self._crash_point(CrashPoint.OBSERVED, " ".join(changed))
        return len(changed)


def _same_rest(one: Observation, other: Observation) -> bool:
    """Whether two readings are of the same end of a turn, at the same commit."""
    first, second = one.agent, other.agent
    return (
        first is not None
        and second is not None
        and one.work == other.work
        and (first.activity, first.since, first.exit)
        == (second.activity, second.since, second.exit)
    )
