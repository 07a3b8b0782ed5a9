"""The observer of pull requests: touched and stale ones are read whole, and kept as facts."""

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

from msgspec.structs import replace

from bot.github.backoff import Backoff
from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, TryLater
from bot.github.snapshots import PullReading
from bot.github.write_access import WriteAccess
from bot.observe.refresh_budget import RefreshBudget
from bot.observe.triggers import frozen_by_label, has_any, reopening
from bot.store import DueRefresh, Observation, Outsider, Session, Store
from bot.system.clock import Clock
from bot.system.crash_points import AtCrashPoint, CrashPoint
from bot.text.markdown import addresses
from config.settings import ProjectSettings
from lifecycle.model import keys
from lifecycle.model.backoff import delay
from lifecycle.model.candidates import Candidate
from lifecycle.model.facts import Check, Frozen, Pull, Push, Remark, Thread, Verdict
from lifecycle.model.key import KeyKind
from lifecycle.model.names import FREEZES
from lifecycle.model.status import CheckState, Merge, Mover, PullState

log = logging.getLogger(__name__)

#: Touches of one pull request within this time of a read are looked at together.
_TOGETHER = timedelta(seconds=1)
#: GitHub works a merge out in the background and sends no webhook when it has.
_MERGE_UNKNOWN = (2.0, 60.0)  # Seconds before the first look for it, and the most.
#: How often the log of one check run is asked for before its failure is told without.
_LOG_TRIES = 3
#: Of what is remembered to spare GitHub requests; then it begins anew.
_MOST_KEPT = 1000
_LONG_AGO = datetime.fromtimestamp(0, UTC)


class PullObserver:
    """Reads pull requests where something may have changed. A failed read changes nothing."""

    def __init__(
        self,
        store: Store,
        github: GitHub,
        people: WriteAccess,
        refresh_budget: RefreshBudget,
        push_attribution: Callable[[Session, Pull, Pull | None], Mover],
        projects: Mapping[str, ProjectSettings],
        on_candidate: Callable[[Candidate], None],
        clock: Clock,
        crash_point: AtCrashPoint,
        app_slug: str = "",
    ) -> None:
        """`on_candidate` gets each reopened pull request of an ended session.

        `app_slug`: the name people mention the bot by, besides its own.
        """
        self._store = store
        self._github = github
        self._people = people
        self._refresh_budget = refresh_budget
        self._movers = push_attribution
        self._projects = projects
        self._on_candidate = on_candidate
        self._clock = clock
        self._crash_point = crash_point
        self._app_slug = app_slug
        self._backoff = Backoff(clock)
        self._unknown: dict[str, int] = {}
        self._read_at: dict[tuple[str, int], datetime] = {}
        self._logs_failed: dict[int, int] = {}
        #: The branches of pull requests that were no session's when they were read.
        self._foreign: dict[tuple[str, int], str] = {}

    def read_requested(self) -> int:
        """Read every pull request that was touched, each once. Returns how many were read."""
        now = self._clock()
        due = self._store.refreshes.due(now, ("pull:", "branch:", "sha:"))
        read: set[tuple[str, int]] = set()
        for refresh in due:
            name = f"{refresh.repository} {refresh.subject}"
            try:
                self._look(refresh, read)
                self._backoff.reset(name)
            except GitHubFailure as failure:
                log.warning("%s: not read: %s", name, failure)
                self._store.refreshes.postpone(refresh, self._backoff.next_try(name, failure))
            except Exception as error:
                # What cannot be read must not keep what comes after it from being read.
                log.exception("%s: not read", name)
                self._store.refreshes.postpone(refresh, self._backoff.next_try(name, error))
        self._read_at = {key: at for key, at in self._read_at.items() if now - at < _TOGETHER}
        return len(read)

    def read_again(self, session: Session) -> None:
        """Read a session's open pull requests now. Raises `GitHubFailure`."""
        numbers = [pull.number for pull in session.pulls if pull.state is PullState.OPEN]
        if numbers:
            self._read(session.id, session.repository, numbers)

    def _look(self, refresh: DueRefresh, read: set[tuple[str, int]]) -> None:
        """Find what a touch is about, and read it unless this round has read it."""
        session, numbers = self._concerned(refresh.repository, refresh.subject)
        if session is None and refresh.subject.startswith("branch:"):
            self._refresh_onto(refresh.repository, refresh.subject.removeprefix("branch:"))
        wanted = [number for number in numbers if (refresh.repository, number) not in read]
        if session is not None and wanted:
            recent = [self._read_at.get((refresh.repository, number)) for number in wanted]
            together = max(filter(None, recent), default=_LONG_AGO) + _TOGETHER
            if self._clock() < together:
                self._store.refreshes.postpone(refresh, together)
                return
            again = self._read(session, refresh.repository, wanted)
            read.update((refresh.repository, number) for number in wanted)
            if again:
                self._store.refreshes.postpone(refresh, self._clock() + again)
                return
        self._store.refreshes.mark_done(refresh)

    def _refresh_onto(self, repository: str, base: str) -> None:
        """A base that moved may leave what goes onto it behind, or in conflict."""
        branches = self._store.sessions.branches_onto(repository, base)
        self._refresh_budget.request(repository, [f"branch:{name}" for name in branches])

    def _concerned(self, repository: str, subject: str) -> tuple[str | None, list[int]]:
        """The session a subject is about, and the numbers of its pull requests to read."""
        kind, _, name = subject.partition(":")
        if kind == "pull":
            session = self._store.sessions.of_pull(repository, int(name))
            return session or self._new_to(repository, int(name)), [int(name)]
        if kind == "branch":
            session = self._store.sessions.of_branch(repository, name)
        else:
            session = self._store.sessions.of_sha(repository, name)
        if session is None:
            return None, []
        return session, self._numbers(session, repository)

    def _new_to(self, repository: str, number: int) -> str | None:
        """The session that a pull request is new to; None: it is none of ours.

        Its branch stays the same, so that those of other people are read once and not at each push
        and check of theirs.
        """
        branch = self._foreign.get((repository, number))
        if branch is not None and self._store.sessions.of_branch(repository, branch) is None:
            return None
        reading = self._github.read.pull(repository, number)
        if reading is None:
            return None
        if len(self._foreign) > _MOST_KEPT:
            self._foreign.clear()
        self._foreign[repository, number] = reading.head_branch
        return self._adopting(repository, reading)

    def _numbers(self, session: str, repository: str) -> list[int]:
        found = self._store.sessions.get(session)
        if found is None:
            return []
        known = [pull.number for pull in found.pulls]
        return known or self._github.read.pulls_of(repository, found.branch, self._fork(found))

    def _fork(self, session: Session) -> str:
        """The fork its branch is in; empty: it is in the repository itself."""
        project = self._projects.get(session.project)
        return project.fork if project and project.push_to == "fork" else ""

    def _adopting(self, repository: str, reading: PullReading) -> str | None:
        """The session whose branch it is: same repository, and opened by us for this session.

        Somebody else's counts at a head that we pushed, where they may write. One of ours that is
        over at a head we did not push is left from an earlier life of the database.
        """
        session = self._store.sessions.of_branch(repository, reading.head_branch)
        found = self._store.sessions.get(session) if session else None
        if session is None or found is None:
            return None
        home = self._fork(found) or self._github.places.now(repository)
        if reading.head_repository.lower() != home.lower():
            return None
        done = self._store.facts.get(session).done
        opened = done.get(keys.open_pull(reading.head_branch))
        pushed = keys.push(reading.pull.head) in done
        if reading.author == self._github.read.me():
            told = opened is not None and opened.result == str(reading.pull.number)
            branch_is_ours = any(key.kind is KeyKind.PUSH for key in done)
            ours = told or pushed or (branch_is_ours and reading.pull.state is PullState.OPEN)
        else:
            ours = pushed and self._people.may_write(repository, reading.author)
        return session if ours else None

    def _read(self, session: str, repository: str, numbers: Iterable[int]) -> timedelta | None:
        """Read pull requests whole and keep them. Returns when to look again by ourselves."""
        before = self._store.sessions.get(session)
        if before is None:
            return None
        known = {pull.number: pull for pull in before.pulls}
        fingerprints = {
            number: self._refresh_budget.found((repository, number)) for number in numbers
        }
        for number in numbers:
            # From its beginning, for what happens during the read may not be in it.
            self._read_at[repository, number] = self._clock()
            reading = self._github.read.pull(repository, number)
            if reading is None:
                continue
            if number not in known and self._adopting(repository, reading) != session:
                continue
            earlier = known.get(number)
            if earlier is not None and earlier.state is PullState.CLOSED:
                self._reopened(before, reading)
            known[number] = self._complete(before, reading, earlier)
        pulls = tuple(known[number] for number in sorted(known))
        self._turn_away(before, pulls)
        changed = self._store.observations.record(
            [Observation(session=session, pulls=pulls)], self._clock()
        )
        for number, fingerprint in fingerprints.items():
            self._refresh_budget.record((repository, number), fingerprint)
        if changed:
            self._crash_point(CrashPoint.OBSERVED, session)
        if not any(p.state is PullState.OPEN and p.merge is Merge.UNKNOWN for p in pulls):
            self._unknown.pop(session, None)
            return None
        self._unknown[session] = self._unknown.get(session, 0) + 1
        return timedelta(seconds=delay(self._unknown[session], *_MERGE_UNKNOWN))

    def _turn_away(self, session: Session, pulls: Iterable[Pull]) -> None:
        """Whose reviews and comments count for nothing is told so, once."""
        for pull in pulls:
            said = [*pull.comments, *(one for thread in pull.threads for one in thread.remarks)]
            said += [one.remark for one in pull.verdicts if one.remark]
            named = {one.author for one in said if not one.allowed}
            named |= {one.author for one in pull.verdicts if not one.allowed}
            ours = {one.author for one in said if one.bot or one.own} | {self._github.read.me(), ""}
            ours |= {one.author for one in pull.verdicts if one.bot}
            for login in sorted(named - ours):
                if self._people.may_command(session.repository, login):
                    continue  # What was made of their words by another counts for nothing.
                outsider = Outsider(
                    repository=session.repository,
                    issue=session.issue.number,
                    login=login,
                    number=pull.number,
                )
                self._store.outsiders.add(outsider, self._clock())

    def _reopened(self, session: Session, reading: PullReading) -> None:
        """Report that somebody reopened the pull request of an ended session."""
        if session.ended is None or reading.pull.state is not PullState.OPEN:
            return
        events = self._github.read.issue(session.repository, reading.pull.number)
        if events is not None:
            candidate = reopening(session, events, self._people)
            if candidate is not None:
                self._on_candidate(candidate)

    def _complete(self, session: Session, reading: PullReading, before: Pull | None) -> Pull:
        """Add what GitHub does not say in one answer: permissions, logs, who pushed, since when."""
        repository, pull, now = session.repository, reading.pull, self._clock()
        project = self._projects.get(session.project)
        flaky = project.flaky_checks if project else ()
        known = (*before.checks, *_put_out(before)) if before else ()
        told = {check.run_id: check for check in known}
        green = _green(pull)
        was_green = before is not None and _green(before)
        return replace(
            self._moved(session, pull, before, now),
            checks=tuple(
                replace(
                    self._with_report(repository, check, told), flaky=_matches(check.name, flaky)
                )
                for check in pull.checks
            ),
            dequeued=pull.dequeued
            and replace(
                pull.dequeued,
                checks=tuple(self._with_report(repository, one, told) for one in _put_out(pull)),
            ),
            verdicts=tuple(self._judged(repository, reading, v) for v in pull.verdicts),
            threads=tuple(self._heard(repository, reading, thread) for thread in pull.threads),
            comments=tuple(self._said(repository, reading, remark) for remark in pull.comments),
            green_since=(
                now if green and not was_green else before.green_since if before else None
            ),
            frozen=self._frozen(repository, reading, before),
            read_at=before.read_at if before else now,
        )

    def _frozen(self, repository: str, reading: PullReading, before: Pull | None) -> Frozen | None:
        """Who put the label on that freezes; asked for once, when it is first seen there."""
        if not has_any(reading.labels, {FREEZES}):
            return None
        if before is not None and before.frozen is not None:
            return before.frozen
        told, now = self._github.read.issue(repository, reading.pull.number), self._clock()
        return frozen_by_label(told, None, now) if told else Frozen(scope="session", by="", at=now)

    def _moved(self, session: Session, pull: Pull, before: Pull | None, now: datetime) -> Pull:
        """The pull request with who brought its branch where it is, and what that leaves valid."""
        if before is not None and before.head == pull.head:
            return replace(
                pull,
                head_by=before.head_by,
                head_since=before.head_since,
                person=before.person,
                carried=before.carried,
            )
        mover = self._movers(session, pull, before)
        pushed = Push(sha=pull.head, at=now) if mover is Mover.PERSON else None
        kept = before is not None and mover is Mover.UPDATE
        return replace(
            pull,
            head_by=mover,
            head_since=now,
            person=pushed or (before.person if before else None),
            carried=before.carried | {before.head} if before and kept else frozenset(),
        )

    def _with_report(
        self, repository: str, check: Check, told: Mapping[int | None, Check]
    ) -> Check:
        """A failed check with what it says of itself; read once for each run of it."""
        if check.state is not CheckState.FAILED or check.red_on_base:
            return check
        if check.run_id is None or check.log:
            return check
        known = told.get(check.run_id)
        if known and (known.log or known.notes):
            return replace(check, log=known.log, notes=known.notes)
        try:
            found = self._github.read.report(repository, check.run_id)
        except GitHubFailure as failure:
            # A log that cannot be had (expired, forbidden, on a host we do not reach) must not
            # hide that the check failed. What may come later is worth a few tries.
            failed = self._logs_failed.get(check.run_id, 0) + 1
            if isinstance(failure, TryLater) and failed < _LOG_TRIES:
                if len(self._logs_failed) > _MOST_KEPT:
                    self._logs_failed.clear()
                self._logs_failed[check.run_id] = failed
                raise
            log.info("%s: no log of check %s: %s", repository, check.name, failure)
            return check
        self._logs_failed.pop(check.run_id, None)
        return replace(check, log=found.log, notes=found.notes)

    def _allowed(self, repository: str, reading: PullReading, remark: Remark) -> bool:
        """Whether the author may write; and whoever edited it, where that was somebody else.

        Which bots count is the policy's to say.
        """
        editor = reading.edited_by.get(remark.id, remark.author)
        people = {editor} - {remark.author} if remark.bot else {remark.author, editor}
        return all(self._people.may_command(repository, login) for login in people)

    def _said(self, repository: str, reading: PullReading, remark: Remark) -> Remark:
        if remark.own:
            return remark
        return replace(
            remark,
            allowed=self._allowed(repository, reading, remark),
            to_bot=bool(addresses(remark.body, self._app_slug)),
        )

    def _heard(self, repository: str, reading: PullReading, thread: Thread) -> Thread:
        remarks = tuple(self._said(repository, reading, remark) for remark in thread.remarks)
        return replace(thread, remarks=remarks)

    def _judged(self, repository: str, reading: PullReading, verdict: Verdict) -> Verdict:
        remark = self._said(repository, reading, verdict.remark) if verdict.remark else None
        author = verdict.author
        # A bot that approves whatever passes its checks has the right to write too.
        counts = not verdict.bot or self._people.is_listed(repository, author)
        allowed = counts and author != self._github.read.me()
        allowed = allowed and self._people.may_write(repository, author)
        return replace(verdict, allowed=allowed, remark=remark)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _put_out(pull: Pull) -> tuple[Check, ...]:
    """The checks that failed in the merge queue."""
    return pull.dequeued.checks if pull.dequeued else ()


def _green(pull: Pull) -> bool:
    """Every check that ran has passed, and one did."""
    states = {check.state for check in pull.checks} - {CheckState.SKIPPED}
    return states == {CheckState.PASSED}
