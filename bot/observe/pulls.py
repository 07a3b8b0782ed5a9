"""Observes pull requests: finds the session for each refresh, and records its pull requests."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure
from bot.github.reader import FINGERPRINT_BATCH
from bot.github.snapshots import PullSnapshot
from bot.github.write_access import WriteAccess
from bot.observe.pull_facts import PullFacts
from bot.observe.refresh_budget import Numbered, RefreshBudget
from bot.observe.triggers import reopening
from bot.store import DueRefresh, Observation, Session, Store
from bot.system.clock import Clock
from bot.system.crash_points import AtCrashPoint, CrashPoint
from bot.system.tracing import hand_on
from config.settings import ProjectSettings
from lifecycle.model import keys
from lifecycle.model.candidates import Candidate
from lifecycle.model.key import KeyKind
from lifecycle.model.policy import delay
from lifecycle.model.status import Merge, Origin, PullState
from lifecycle.model.times import EARLIEST

log = logging.getLogger(__name__)

#: Refreshes within this time after a read of a pull request are combined into one read.
_TOGETHER = timedelta(seconds=1)
#: GitHub computes mergeability in the background and sends no webhook when it has:
#: https://docs.github.com/en/rest/pulls/pulls#get-a-pull-request
_MERGE_UNKNOWN = (2.0, 60.0)  # The first and the longest pause before another read, in seconds.
_MOST_CACHED = 1000  #: With more cached branches of pull requests than this, all are dropped.
#: If branches of pull requests cannot be looked up now, the pause before the next attempt.
_NO_POINTS = timedelta(minutes=1)


@dataclass(eq=False)
class PullObserver:
    """Reads and records pull requests that may have changed. A failed read changes nothing."""

    store: Store
    github: GitHub
    people: WriteAccess
    refresh_budget: RefreshBudget
    facts: PullFacts
    projects: Mapping[str, ProjectSettings]
    #: Called if somebody reopens a pull request of an ended session.
    on_candidate: Callable[[Candidate], None]
    clock: Clock
    crash_point: AtCrashPoint
    #: By session, how many reads in a row found the mergeability unknown.
    _merge_unknown: dict[str, int] = field(default_factory=dict, init=False)
    _read_at: dict[Numbered, datetime] = field(default_factory=dict, init=False)
    #: The branches of pull requests that were not recorded for a session when they were read.
    _foreign: dict[Numbered, str] = field(default_factory=dict, init=False)

    def read_requested(self) -> int:
        """Read the pull requests that due refreshes concern, each once.

        Then looks up the branches of pull requests of which only the number is known. Returns the
        sum of how many pull requests were read and how many lookups were due.
        """
        now = self.clock()
        due = self.store.refreshes.due(now, ("pull:", "branch:", "sha:"))
        read: set[Numbered] = set()
        for refresh in due:
            with self.refresh_budget.postponed_on_failure(refresh):
                self._refresh(refresh, read)
        self._read_at = {key: at for key, at in self._read_at.items() if now - at < _TOGETHER}
        # After the sessions' pull requests, and only with rate limit points to spare.
        return len(read) + self._look_up_others()

    def _look_up_others(self) -> int:
        """Look up the branches of pull requests of which only the number is known.

        Sends one query for each repository. Requests a refresh of each pull request whose branch is
        that of a session, and ignores the others. Returns how many lookups were due.
        """
        due = self.store.refreshes.due(self.clock(), ("other:",), FINGERPRINT_BATCH)
        for repository in {refresh.repository for refresh in due}:
            here = {int(one.subject[6:]): one for one in due if one.repository == repository}
            if not self.refresh_budget.has_spare(repository):
                for refresh in here.values():
                    self.store.refreshes.postpone(refresh, self.clock() + _NO_POINTS)
                continue
            unknown = [number for number in here if (repository, number) not in self._foreign]
            try:
                found = self.github.read.branches(repository, unknown) if unknown else {}
            except GitHubFailure as failure:
                log.warning("%s: pull requests not looked up: %s", repository, failure)
                for refresh in here.values():
                    self.store.refreshes.postpone(refresh, self.clock() + _NO_POINTS)
                continue
            self._remember({(repository, number): name for number, name in found.items()})
            branches = {number: self._foreign.get((repository, number), "") for number in here}
            of_subject = self.store.sessions.of_subject
            ours = [
                f"pull:{number}"
                for number, branch in branches.items()
                if branch and of_subject(repository, f"branch:{branch}")
            ]
            self.refresh_budget.request(repository, ours)
            for refresh in here.values():
                self.store.refreshes.mark_done(refresh)
        return len(due)

    def _remember(self, branches: Mapping[Numbered, str]) -> None:
        if len(self._foreign) > _MOST_CACHED:
            self._foreign.clear()
        self._foreign.update(branches)

    def read_open(self, session: Session) -> None:
        """Read and record a session's open pull requests now. Raises as `PullFacts.complete`."""
        numbers = [pull.number for pull in session.pulls if pull.state is PullState.OPEN]
        if numbers:
            self._read(session, numbers)

    def _refresh(self, refresh: DueRefresh, read: set[Numbered]) -> None:
        """Read the pull requests of a refresh, except merged ones and those in `read`.

        Adds each to `read`, and marks the refresh as done. If an earlier call read any of these
        pull requests less than a second ago, reads none and postpones the refresh. If GitHub does
        not know yet whether an open pull request can be merged, postpones the refresh after
        reading. Raises `GitHubFailure`.
        """
        repository, (kind, _, name) = refresh.repository, refresh.subject.partition(":")
        session, numbers, reading = self._concerned(repository, kind, name)
        if session is None and kind == "branch":
            # Pull requests whose base branch moved may conflict now.
            onto = self.store.sessions.branches_onto(repository, name)
            self.refresh_budget.request(repository, [f"branch:{branch}" for branch in onto])
        final = {p.number for p in session.pulls if p.state is PullState.MERGED} if session else ()
        wanted = [n for n in numbers if (repository, n) not in read and n not in final]
        if session is not None and wanted:
            recent = [self._read_at.get((repository, number)) for number in wanted]
            together = max(filter(None, recent), default=EARLIEST) + _TOGETHER
            if reading is None and self.clock() < together:
                self.store.refreshes.postpone(refresh, together)
                return
            again = self._read(session, wanted, reading)
            read.update((repository, number) for number in wanted)
            if again:
                self.store.refreshes.postpone(refresh, self.clock() + again)
                return
        self.store.refreshes.mark_done(refresh)

    def _concerned(
        self, repository: str, kind: str, name: str
    ) -> tuple[Session | None, list[int], PullSnapshot | None]:
        """Return the session that a subject concerns, and which of its pull requests to read.

        The third value is the snapshot of a new pull request, if it was read to find the session.
        """
        found, reading = self.store.sessions.of_subject(repository, f"{kind}:{name}"), None
        if found is None and kind == "pull":
            found, reading = self._session_of_new(repository, int(name))
        session = self.store.sessions.get(found) if found else None
        if session is None or kind == "pull":
            return session, [int(name)] if session else [], reading
        known = [pull.number for pull in session.pulls]
        if kind == "sha" and not known:
            return session, [], None  # Checks are read with the first pull request.
        fork = self._fork(session)
        return session, known or self.github.read.pulls_of(repository, session.branch, fork), None

    def _session_of_new(
        self, repository: str, number: int
    ) -> tuple[str | None, PullSnapshot | None]:
        """Return the session of an unknown pull request, and its snapshot. Either may be None.

        A pull request without a session is read once, not at each push or check, because the branch
        of a pull request never changes.
        """
        branch = self._foreign.get((repository, number))
        if branch and self.store.sessions.of_subject(repository, f"branch:{branch}") is None:
            return None, None
        reading = self._pull(repository, number)
        if reading is None:
            return None, None
        self._remember({(repository, number): reading.pull.branch})
        return self._owner(repository, reading), reading

    def _fork(self, session: Session) -> str:
        """Return the fork that has the session's branch; empty if the repository itself has it."""
        project = self.projects.get(session.project)
        return project.fork if project and project.push_to == "fork" else ""

    def _owner(self, repository: str, reading: PullSnapshot) -> str | None:
        """Return the session of a pull request, by its branch, repository, author and head.

        A session that adopted a pull request has all pull requests from its branch. Otherwise,
        another person's pull request belongs to a session only if its author has write access and
        the bot pushed its head. The bot's own closed pull request belongs to no session if the
        database knows neither its number nor its head: its session was in an earlier database.
        """
        found = self.store.sessions.of_subject(repository, f"branch:{reading.pull.branch}")
        session = self.store.sessions.get(found) if found else None
        if session is None:
            return None
        home = self._fork(session) or self.github.aliases.name(repository)
        if reading.head_repository.lower() != home.lower():
            return None
        if session.origin is Origin.PULL:
            return session.id  # It was adopted; anybody may have opened it.
        done = self.store.facts.get(session.id).done
        pushed = keys.push(reading.pull.head) in done
        if reading.author != self.github.read.me():
            ours = pushed and self.people.may_write(repository, reading.author)
            return session.id if ours else None
        opened = done.get(keys.open_pull(reading.pull.branch))
        recorded = opened is not None and opened.result == str(reading.pull.number)
        branch_is_ours = any(key.kind is KeyKind.PUSH for key in done)
        ours = recorded or pushed or (branch_is_ours and reading.pull.state is PullState.OPEN)
        return session.id if ours else None

    def _read(
        self, session: Session, numbers: Iterable[int], read: PullSnapshot | None = None
    ) -> timedelta | None:
        """Read and record pull requests. Returns the pause before the next read, or None.

        Another read is needed while GitHub does not know whether a pull request is mergeable.
        `read` is the snapshot if there is only one pull request and it was just read.
        """
        repository, known = session.repository, {pull.number: pull for pull in session.pulls}
        fingerprints = {
            number: self.refresh_budget.found((repository, number)) for number in numbers
        }
        for number in numbers:
            reading, earlier = read or self._pull(repository, number), known.get(number)
            if reading is None:
                continue
            if earlier is None and self._owner(repository, reading) != session.id:
                continue
            if earlier is not None and earlier.state is PullState.CLOSED:
                self._report_reopening(session, reading)
            known[number] = self.facts.complete(session, reading, earlier)
        pulls = tuple(known[number] for number in sorted(known))
        for outsider in self.facts.outsiders(session, pulls):
            self.store.outsiders.add(outsider, self.clock())
        observed = Observation(session=session.id, pulls=pulls)
        hand_on([session.id])
        changed = self.store.observations.record([observed], self.clock())
        for number, fingerprint in fingerprints.items():
            self.refresh_budget.record((repository, number), fingerprint)
        if changed:
            self.crash_point(CrashPoint.OBSERVED, session.id)
        if not any(p.state is PullState.OPEN and p.merge is Merge.UNKNOWN for p in pulls):
            self._merge_unknown.pop(session.id, None)
            return None
        self._merge_unknown[session.id] = unknown = self._merge_unknown.get(session.id, 0) + 1
        return timedelta(seconds=delay(unknown, *_MERGE_UNKNOWN))

    def _pull(self, repository: str, number: int) -> PullSnapshot | None:
        # From before the read, because what happens meanwhile may not be in it.
        self._read_at[repository, number] = self.clock()
        return self.github.read.pull(repository, number)

    def _report_reopening(self, session: Session, reading: PullSnapshot) -> None:
        """Ask `on_candidate` to start an ended session again if its pull request was reopened."""
        if session.ended is None or reading.pull.state is not PullState.OPEN:
            return
        events = self.github.read.issue(session.repository, reading.pull.number)
        if events is not None and (candidate := reopening(session, events, self.people)):
            self.on_candidate(candidate)
