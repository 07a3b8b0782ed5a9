"""Observes pull requests: finds the session of each refresh and records its pull requests."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bot.github.client import GitHub
from bot.github.snapshots import PullSnapshot
from bot.github.write_access import WriteAccess
from bot.observe.pull_facts import PullFacts
from bot.observe.refresh_budget import Numbered, RefreshBudget
from bot.observe.triggers import reopening
from bot.store import DueRefresh, Observation, Session, Store
from bot.system.clock import Clock
from bot.system.crash_points import AtCrashPoint, CrashPoint
from config.settings import ProjectSettings
from lifecycle.model import keys
from lifecycle.model.facts import Candidate
from lifecycle.model.key import KeyKind
from lifecycle.model.policy import delay
from lifecycle.model.status import Merge, PullState

#: Refreshes within this time after a read of the same pull request share the next read.
_TOGETHER = timedelta(seconds=1)
#: GitHub computes mergeability in the background and sends no webhook when it has:
#: https://docs.github.com/en/rest/pulls/pulls#get-a-pull-request
_MERGE_UNKNOWN = (2.0, 60.0)  # Seconds before the first read for it, and the most.
_MOST_CACHED = 1000  #: Branches of other people's pull requests, before they are dropped.
_LONG_AGO = datetime.fromtimestamp(0, UTC)


@dataclass(eq=False)
class PullObserver:
    """Reads pull requests that may have changed. A failed read changes nothing."""

    store: Store
    github: GitHub
    people: WriteAccess
    refresh_budget: RefreshBudget
    facts: PullFacts
    projects: Mapping[str, ProjectSettings]
    on_candidate: Callable[[Candidate], None]  #: Gets reopened pull requests of ended sessions.
    clock: Clock
    crash_point: AtCrashPoint
    #: How often in a row the mergeability of a session's pull requests was unknown.
    _merge_unknown: dict[str, int] = field(default_factory=dict, init=False)
    _read_at: dict[Numbered, datetime] = field(default_factory=dict, init=False)
    #: Branches of pull requests without a session.
    _foreign: dict[Numbered, str] = field(default_factory=dict, init=False)

    def read_requested(self) -> int:
        """Read every pull request with a due refresh once; return how many were read."""
        now = self.clock()
        due = self.store.refreshes.due(now, ("pull:", "branch:", "sha:"))
        read: set[Numbered] = set()
        for refresh in due:
            with self.refresh_budget.postponed_on_failure(refresh):
                self._refresh(refresh, read)
        self._read_at = {key: at for key, at in self._read_at.items() if now - at < _TOGETHER}
        return len(read)

    def read_open(self, session: Session) -> None:
        """Read a session's open pull requests now. Raises `GitHubFailure`."""
        numbers = [pull.number for pull in session.pulls if pull.state is PullState.OPEN]
        if numbers:
            self._read(session.id, session.repository, numbers)

    def _refresh(self, refresh: DueRefresh, read: set[Numbered]) -> None:
        """Read the pull requests that a refresh concerns and that are not in `read` yet."""
        session, numbers = self._concerned(refresh.repository, refresh.subject)
        if session is None and refresh.subject.startswith("branch:"):
            self._request_onto(refresh.repository, refresh.subject.removeprefix("branch:"))
        wanted = [number for number in numbers if (refresh.repository, number) not in read]
        if session is not None and wanted:
            recent = [self._read_at.get((refresh.repository, number)) for number in wanted]
            together = max(filter(None, recent), default=_LONG_AGO) + _TOGETHER
            if self.clock() < together:
                self.store.refreshes.postpone(refresh, together)
                return
            again = self._read(session, refresh.repository, wanted)
            read.update((refresh.repository, number) for number in wanted)
            if again:
                self.store.refreshes.postpone(refresh, self.clock() + again)
                return
        self.store.refreshes.mark_done(refresh)

    def _request_onto(self, repository: str, base: str) -> None:
        """Request a refresh of the pull requests onto a moved base, which may conflict now."""
        branches = self.store.sessions.branches_onto(repository, base)
        self.refresh_budget.request(repository, [f"branch:{name}" for name in branches])

    def _concerned(self, repository: str, subject: str) -> tuple[str | None, list[int]]:
        """The session that a subject concerns, and the pull requests of it to read."""
        kind, _, name = subject.partition(":")
        if kind == "pull":
            session = self.store.sessions.of_pull(repository, int(name))
            return session or self._session_of_new(repository, int(name)), [int(name)]
        if kind == "branch":
            session = self.store.sessions.of_branch(repository, name)
        else:
            session = self.store.sessions.of_sha(repository, name)
        if session is None:
            return None, []
        return session, self._numbers(session, repository)

    def _session_of_new(self, repository: str, number: int) -> str | None:
        """The session of a pull request that is not known yet, if any.

        Other people's pull requests are read once and not at each push and check, because the
        branch of a pull request never changes.
        """
        branch = self._foreign.get((repository, number))
        if branch is not None and self.store.sessions.of_branch(repository, branch) is None:
            return None
        reading = self.github.read.pull(repository, number)
        if reading is None:
            return None
        if len(self._foreign) > _MOST_CACHED:
            self._foreign.clear()
        self._foreign[repository, number] = reading.head_branch
        return self._owner(repository, reading)

    def _numbers(self, session: str, repository: str) -> list[int]:
        found = self.store.sessions.get(session)
        if found is None:
            return []
        known = [pull.number for pull in found.pulls]
        return known or self.github.read.pulls_of(repository, found.branch, self._fork(found))

    def _fork(self, session: Session) -> str:
        """The fork with its branch; empty: the branch is in the repository itself."""
        project = self.projects.get(session.project)
        return project.fork if project and project.push_to == "fork" else ""

    def _owner(self, repository: str, reading: PullSnapshot) -> str | None:
        """The session that a pull request belongs to, by branch, repository, author and head.

        A pull request by somebody else with write access belongs to it at a head that the bot
        pushed. A closed one by the bot at another head is left from an earlier database.
        """
        session = self.store.sessions.of_branch(repository, reading.head_branch)
        found = self.store.sessions.get(session) if session else None
        if session is None or found is None:
            return None
        home = self._fork(found) or self.github.aliases.name(repository)
        if reading.head_repository.lower() != home.lower():
            return None
        done = self.store.facts.get(session).done
        opened = done.get(keys.open_pull(reading.head_branch))
        pushed = keys.push(reading.pull.head) in done
        if reading.author == self.github.read.me():
            recorded = opened is not None and opened.result == str(reading.pull.number)
            branch_is_ours = any(key.kind is KeyKind.PUSH for key in done)
            ours = recorded or pushed or (branch_is_ours and reading.pull.state is PullState.OPEN)
        else:
            ours = pushed and self.people.may_write(repository, reading.author)
        return session if ours else None

    def _read(self, session: str, repository: str, numbers: Iterable[int]) -> timedelta | None:
        """Read and record pull requests; return the pause before another read, if one is needed."""
        before = self.store.sessions.get(session)
        if before is None:
            return None
        known = {pull.number: pull for pull in before.pulls}
        fingerprints = {
            number: self.refresh_budget.found((repository, number)) for number in numbers
        }
        for number in numbers:
            # From before the read, because what happens meanwhile may not be in it.
            self._read_at[repository, number] = self.clock()
            reading = self.github.read.pull(repository, number)
            if reading is None:
                continue
            if number not in known and self._owner(repository, reading) != session:
                continue
            earlier = known.get(number)
            if earlier is not None and earlier.state is PullState.CLOSED:
                self._report_reopening(before, reading)
            known[number] = self.facts.complete(before, reading, earlier)
        pulls = tuple(known[number] for number in sorted(known))
        for outsider in self.facts.outsiders(before, pulls):
            self.store.outsiders.add(outsider, self.clock())
        changed = self.store.observations.record(
            [Observation(session=session, pulls=pulls)], self.clock()
        )
        for number, fingerprint in fingerprints.items():
            self.refresh_budget.record((repository, number), fingerprint)
        if changed:
            self.crash_point(CrashPoint.OBSERVED, session)
        if not any(p.state is PullState.OPEN and p.merge is Merge.UNKNOWN for p in pulls):
            self._merge_unknown.pop(session, None)
            return None
        self._merge_unknown[session] = self._merge_unknown.get(session, 0) + 1
        return timedelta(seconds=delay(self._merge_unknown[session], *_MERGE_UNKNOWN))

    def _report_reopening(self, session: Session, reading: PullSnapshot) -> None:
        """Report that somebody reopened the pull request of an ended session."""
        if session.ended is None or reading.pull.state is not PullState.OPEN:
            return
        events = self.github.read.issue(session.repository, reading.pull.number)
        if events is not None:
            candidate = reopening(session, events, self.people)
            if candidate is not None:
                self.on_candidate(candidate)
