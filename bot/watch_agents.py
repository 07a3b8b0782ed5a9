"""The observer of agents: one look at all runtimes, what is new in their files, one commit."""

import logging
import threading
from collections.abc import Sequence
from datetime import timedelta

from msgspec.structs import replace

from bot.clock import Clock
from bot.journal import Journal, Step
from bot.sites import Sites
from bot.store import Live, Observed, Store
from lifecycle.facts import Agent, Doubt, Work
from lifecycle.status import Activity, Probe
from runtimes.agents.base import Reader
from runtimes.base import RuntimeFailure, Seen
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.worktree import Worktree

log = logging.getLogger(__name__)

_MISSING = Seen(runtime=Probe.DEAD, program=Probe.DEAD)
#: Newer evidence of the same activity is written down this often, not at every look.
_EVIDENCE_SECONDS = 20.0
_WAITS = (Activity.WAITING_INPUT, Activity.BLOCKED)
#: So many programs that vanish in one look, and more than half of all, are a broken look.
_MANY = 5
_AT_REST = (Activity.READY, Activity.IDLE, Activity.EXITED)


class WatchAgents:
    """Reads agents. Its readers remember how far they read; one thread at a time uses them."""

    def __init__(
        self,
        store: Store,
        sites: Sites,
        idle_seconds: float,
        clock: Clock,
        journal: Journal,
        probe_looks: int = 3,
    ) -> None:
        self._store = store
        self._sites = sites
        self._idle = timedelta(seconds=idle_seconds)
        self._looks = probe_looks
        self._clock = clock
        self._journal = journal
        self._readers: dict[str, tuple[int, Reader]] = {}
        self._unreadable: set[str] = set()
        self._lock = threading.Lock()

    def sweep(self) -> int:
        """Look at every session that has a program. Returns how many changed."""
        with self._lock:
            running = self._running()
            for gone in self._readers.keys() - {live.id for live in running}:
                del self._readers[gone]
            return self._look(running)

    def look(self, session: str) -> None:
        """Look at one session now."""
        with self._lock:
            # Asked for with the lock held, so that no older state is taken for the one before.
            self._look([live for live in self._running() if live.id == session])

    def received(self, session: str, mark: str) -> bool:
        """Whether a message with this visible mark reached the agent of the current run."""
        self.look(session)
        with self._lock:
            _, reader = self._readers.get(session, (0, None))
            return reader is not None and reader.received(mark)

    def _running(self) -> list[Live]:
        """Sessions whose ordered run was started and not released.

        A spawning one is never judged by a probe: its run has no agent yet.
        """
        return [
            live
            for live in self._store.live()
            if live.run
            and live.agent.run == live.run
            and not live.agent.stopped
            and live.work.path
            and live.project in self._sites.projects
            and live.agent_type in self._sites.programs
        ]

    def _look(self, sessions: Sequence[Live]) -> int:
        """Look at these, with the lock held. A failed look is no news about anybody."""
        if not sessions:
            return 0
        handles = {live.id: self._sites.handle(live.id, live.run) for live in sessions}
        curious = [handles[live.id] for live in sessions if self._wants_screen(live)]
        try:
            seen = self._sites.runtime.look()
            screens = self._sites.runtime.screens(curious) if curious else {}
        except RuntimeFailure as failure:
            log.warning("the runtime did not answer: %s", failure)
            return 0
        if _too_many_lost([(live, seen.get(handles[live.id], _MISSING)) for live in sessions]):
            log.error("more than half of all programs vanished at once: that look is not believed")
            return 0
        observed = []
        for live in sessions:
            handle = handles[live.id]
            try:
                read = self._read(live, seen.get(handle, _MISSING), screens.get(handle))
            except Exception:
                # One session that cannot be read must not keep the others from being read.
                if live.id not in self._unreadable:
                    log.exception("%s: its agent could not be read", live.id)
                self._unreadable.add(live.id)
            else:
                self._unreadable.discard(live.id)
                observed.append(read)
        changed = self._store.observe(observed, self._clock())
        if changed:
            self._journal(Step.OBSERVED, " ".join(changed))
        return len(changed)

    def _wants_screen(self, live: Live) -> bool:
        return self._sites.programs[live.agent_type].wants_screen

    def _read(self, live: Live, seen: Seen, screen: str | None) -> Observed:
        """One session, from what the runtime saw and what its own files say."""
        workspace = self._sites.workspace(live.project, live.id, live.branch)
        run, reader = self._readers.get(live.id, (0, None))
        if reader is None or run != live.run:
            files = self._sites.files(live.id, live.run, live.branch, workspace.path)
            reader = self._sites.programs[live.agent_type].reader(files)
            self._readers[live.id] = (live.run, reader)
        read = reader.read(seen, screen, self._clock())
        agent = self._settled(live.agent, replace(read, run=live.run))
        return Observed(
            session=live.id, run=live.run, agent=agent, work=self._work(live, agent, workspace)
        )

    def _settled(self, before: Agent, now: Agent) -> Agent:
        """The new reading, without differences that mean nothing."""
        if not now.native_id:
            now = replace(now, native_id=before.native_id)
        if now.exit is None and {now.runtime, now.program} not in ({Probe.ALIVE}, {Probe.DEAD}):
            now = replace(now, doubt=self._doubt(before.doubt, f"{now.runtime}/{now.program}"))
        if now.activity in _WAITS and (now.activity, now.question, now.error) == (
            before.activity,
            before.question,
            before.error,
        ):
            # A reader that was just made may take a later line's time for the question's.
            now = replace(now, since=before.since)
        if now.activity is Activity.NONE:
            now = replace(now, since=before.since, evidence=before.evidence)
        if now.activity is Activity.READY and now.since and self._clock() - now.since > self._idle:
            now = replace(now, activity=Activity.IDLE)
        if (
            now.activity is before.activity
            and now.seen
            and before.seen
            and now.seen - before.seen < timedelta(seconds=_EVIDENCE_SECONDS)
        ):
            now = replace(now, seen=before.seen, evidence=before.evidence)
        return now

    def _doubt(self, before: Doubt | None, evidence: str) -> Doubt:
        """One more look that failed; other evidence than before begins to count anew."""
        if before is None or before.evidence != evidence:
            return Doubt(since=self._clock(), evidence=evidence)
        return replace(before, looks=min(before.looks + 1, self._looks))

    def _work(self, live: Live, agent: Agent, workspace: Worktree) -> Work | None:
        """The branch's commit at every look; uncommitted work once a turn has ended."""
        head = workspace.head() if workspace.made else None
        if head is None:
            return None
        turned = agent.activity is not live.agent.activity or agent.since != live.agent.since
        if agent.activity not in _AT_REST:
            return replace(live.work, head=head, dirty=None)
        if head == live.work.head and live.work.dirty is not None and not turned:
            return None
        try:
            return replace(live.work, head=head, dirty=workspace.dirty())
        except GitFailure as failure:
            log.warning("%s: its workspace could not be read: %s", live.id, failure)
            return replace(live.work, head=head, dirty=None)


def _too_many_lost(looks: Sequence[tuple[Live, Seen]]) -> bool:
    """Whether so many went without a trace that the look itself is in doubt.

    An end that a supervisor wrote down is proof, and so is one that was seen before.
    """
    lost = [
        live
        for live, seen in looks
        if seen.program is Probe.DEAD and seen.exit is None and live.agent.program is Probe.ALIVE
    ]
    return len(lost) >= _MANY and 2 * len(lost) > len(looks)
