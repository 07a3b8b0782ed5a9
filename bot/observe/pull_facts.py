"""Completes the facts of a pull request with permissions, logs, pushers and times."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial

from msgspec.structs import replace

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, Refused, TryLater
from bot.github.snapshots import PullSnapshot
from bot.github.write_access import WriteAccess
from bot.observe.discussions import Discussions
from bot.observe.triggers import frozen_by_label, has_any
from bot.store import FactsReader, Outsider, Session
from bot.system.clock import Clock
from bot.system.locations import Locations
from config.settings import ProjectSettings
from lifecycle.model import keys
from lifecycle.model.facts import Check, Frozen, Pull, Push, Remark, Verdict
from lifecycle.model.names import FREEZES
from lifecycle.model.status import CheckState, Merge, Mover

log = logging.getLogger(__name__)

#: How many times the log of a failed check run is requested before the failure is reported without
#: a log. The attempts take about two minutes, because an agent can do little without the log.
_LOG_ATTEMPTS = 8
_MOST_COUNTED = 1000  #: If more check runs than this have counts, all counts are dropped.


@dataclass(frozen=True)
class PullFacts:
    """Converts snapshots of pull requests to the facts of their sessions."""

    github: GitHub
    people: WriteAccess
    discussions: Discussions
    #: Returns who moved the branch between two states; see `who_pushed`.
    who_pushed: Callable[[Session, Pull, Pull | None], tuple[Mover, datetime | None]]
    projects: Mapping[str, ProjectSettings]
    clock: Clock
    _log_failures: dict[int, int] = field(default_factory=dict, init=False)  #: By check run.

    def complete(self, session: Session, reading: PullSnapshot, before: Pull | None) -> Pull:
        """Return the pull request with all facts that decisions about its session use.

        `before` are the last known facts, or None for a new pull request. Raises `GitHubFailure`,
        and `GitFailure` if the commits cannot be fetched.
        """
        repository, pull, now = session.repository, reading.pull, self.clock()
        was = before or Pull(number=pull.number)
        project = self.projects.get(session.project)
        flaky = project.flaky_checks if project else ()
        reported = {check.run_id: check for check in (*was.checks, *_failed_in_queue(was))}
        report = partial(self._with_report, repository, reported)
        remark = partial(self.discussions.remark, repository, reading.edited_by)
        dequeued = pull.dequeued
        if dequeued:
            dequeued = replace(dequeued, checks=tuple(map(report, dequeued.checks)))
        return replace(
            self._with_mover(session, reading, before, now),
            checks=tuple(
                replace(report(check), flaky=any(fnmatchcase(check.name, name) for name in flaky))
                for check in pull.checks
            ),
            dequeued=dequeued,
            verdicts=tuple(
                replace(
                    one,
                    allowed=self._counts(repository, one),
                    remark=one.remark and remark(one.remark),
                )
                for one in pull.verdicts
            ),
            threads=tuple(
                replace(thread, remarks=tuple(map(remark, thread.remarks)))
                for thread in pull.threads
            ),
            comments=tuple(map(remark, pull.comments)),
            labels=reading.labels,
            pending_since=_pending_since(pull, was, now),
            green_since=now if _is_green(pull) and not _is_green(was) else was.green_since,
            clean_since=_clean_since(pull, was, now),
            base_since=was.base_since if was.base_branch in ("", pull.base_branch) else now,
            frozen=self._frozen(repository, reading, was.frozen),
            read_at=before.read_at if before else now,
        )

    def outsiders(self, session: Session, pulls: Iterable[Pull]) -> list[Outsider]:
        """Return the people who reviewed or commented but may not give commands."""
        found: list[Outsider] = []
        for pull in pulls:
            remarks = [*pull.comments, *(one for thread in pull.threads for one in thread.remarks)]
            remarks += [one.remark for one in pull.verdicts if one.remark]
            entries: list[Remark | Verdict] = [*remarks, *pull.verdicts]
            logins = {one.author for one in entries if not one.allowed}
            logins -= {one.author for one in entries if one.bot} | {self.github.read.me(), ""}
            logins -= {one.author for one in remarks if one.own}
            # A remark of an author with write access does not count if an outsider edited it.
            found += [
                Outsider(
                    repository=session.repository,
                    issue=session.issue.number or pull.number,
                    login=login,
                    number=pull.number,
                )
                for login in sorted(logins)
                if not self.people.may_command(session.repository, login)
            ]
        return found

    def _frozen(
        self, repository: str, reading: PullSnapshot, before: Frozen | None
    ) -> Frozen | None:
        """Return the freeze that a label of the pull request sets; None without such a label.

        The person who added the label is read only once, when the label is new.
        """
        if not has_any(reading.labels, {FREEZES}):
            return None
        if before is not None:
            return before
        issue, now = self.github.read.issue(repository, reading.pull.number), self.clock()
        return (
            frozen_by_label(issue, None, now) if issue else Frozen(scope="session", by="", at=now)
        )

    def _with_mover(
        self, session: Session, reading: PullSnapshot, before: Pull | None, now: datetime
    ) -> Pull:
        """Return the pull request with who moved its branch to the present head, and since when.

        Also sets the people who pushed, and the earlier heads whose approvals still count.
        """
        pull = reading.pull
        was = before or Pull(number=pull.number)
        if before is not None and was.head == pull.head:
            mover, since, person, carried = was.head_by, was.head_since, was.person, was.carried
            contributors = was.contributors
        else:
            mover, pushed_at = self.who_pushed(session, pull, before)
            since = _current_since(reading, was, pushed_at) or now
            person, contributors = was.person, was.contributors
            if mover is Mover.PERSON:
                pushers = self._pushers(session, pull.branch, was.head)
                person = Push(sha=pull.head, at=now, by=pushers[0] if pushers else "")
                contributors |= frozenset(pushers)
            kept = before is not None and mover is Mover.UPDATE
            carried = was.carried | {was.head} if kept else frozenset()
        return replace(
            pull,
            head_by=mover,
            head_since=since,
            person=person,
            contributors=contributors,
            carried=carried,
        )

    def _pushers(self, session: Session, branch: str, since: str) -> tuple[str, ...]:
        """Return who pushed to a branch since its head was `since`, last first, without the bot.

        Empty if GitHub refuses to say.
        """
        project = self.projects.get(session.project)
        fork = project.fork if project and project.push_to == "fork" else ""
        try:
            pushers = self.github.read.pushers(fork or session.repository, branch, since)
        except Refused as refused:
            log.info("%s: who pushed is unknown: %s", session.id, refused)
            return ()
        return tuple(login for login in pushers if login != self.github.read.me())

    def _with_report(
        self, repository: str, reported: Mapping[int | None, Check], check: Check
    ) -> Check:
        """Return the check, with log and annotations if it failed here but not on the base branch.

        The log and annotations are read once for each check run. `reported` has the last facts by
        check run. Raises `TryLater` if GitHub cannot answer now. After several such failures, or if
        GitHub refuses, returns the check without log and annotations.
        """
        if check.state is not CheckState.FAILED or check.red_on_base:
            return check
        if check.run_id is None or check.log:
            return check
        known = reported.get(check.run_id)
        if known and (known.log or known.notes):
            return replace(check, log=known.log, notes=known.notes)
        try:
            found = self.github.read.report(repository, check.run_id)
        except GitHubFailure as failure:
            # A log that cannot be read (expired, forbidden, on an unreachable host) must not hide
            # that the check failed; it is requested a few times, as it may come later.
            failed = self._log_failures.get(check.run_id, 0) + 1
            if isinstance(failure, TryLater) and failed < _LOG_ATTEMPTS:
                if len(self._log_failures) > _MOST_COUNTED:
                    self._log_failures.clear()
                self._log_failures[check.run_id] = failed
                raise
            log.info("%s: no log of check %s: %s", repository, check.name, failure)
            return check
        self._log_failures.pop(check.run_id, None)
        return replace(check, log=found.log, notes=found.notes)

    def _counts(self, repository: str, verdict: Verdict) -> bool:
        author = verdict.author
        # Some bots approve whatever passes its checks, and have write access too.
        if author == self.github.read.me() or (
            verdict.bot and not self.people.is_listed(repository, author)
        ):
            return False
        return self.people.may_write(repository, author)


def who_pushed(
    reader: FactsReader, locations: Locations, session: Session, pull: Pull, before: Pull | None
) -> tuple[Mover, datetime | None]:
    """Return who moved the branch from the head of `before` to that of `pull`, and when.

    `Mover.BOT` includes the agent's commits, because only the bot pushes them. `Mover.UPDATE` means
    that only the base branch was merged into it. The time is known for most pushes of the bot, and
    otherwise None.

    After a person's push, the agent gets no failed checks, earlier reviews or conflicts until
    somebody sends it a new request: see `handed_to_human` in `lifecycle.read.session_view`.

    Raises `GitFailure` if the commits cannot be fetched.
    """
    facts, mirror = reader.get(session.id), locations.mirror(session.project)
    push = keys.push(pull.head)
    last = facts.done.get(keys.push(before.head)) if before else None
    pushed = facts.done.get(push)
    if pushed is not None and last is not None and pushed.at < last.at:
        # The branch is back at an earlier push of the bot, unless GitHub's answer is outdated.
        mirror.refresh()
        reset = mirror.head_of(session.branch) == pull.head
        return Mover.PERSON if reset else Mover.BOT, None
    if pushed is not None or push in facts.pending or pull.head == session.work.base:
        return Mover.BOT, pushed.at if pushed else None
    old = before.head if before else session.work.head
    mirror.refresh()
    updated = mirror.contains(pull.head) and mirror.contains(old)
    if updated and mirror.is_update(old, pull.head, pull.base_branch):
        return Mover.UPDATE, None
    return Mover.PERSON, None


def _current_since(reading: PullSnapshot, was: Pull, pushed_at: datetime | None) -> datetime | None:
    """Return since when the bot's push has been the head. Later comments are about this push.

    Returns None if the time is unknown, as when the branch was reset to an older push.
    """
    if pushed_at is None or (was.head_since is not None and pushed_at < was.head_since):
        return None
    return max(pushed_at, reading.created_at)


def _failed_in_queue(pull: Pull) -> tuple[Check, ...]:
    """Return the checks that failed in the merge queue."""
    return pull.dequeued.checks if pull.dequeued else ()


def _pending_since(pull: Pull, was: Pull, now: datetime) -> datetime | None:
    """Return since when checks have been pending at this head; None if none is pending."""
    if all(check.state is not CheckState.PENDING for check in pull.checks):
        return None
    return (was.pending_since if was.head == pull.head else None) or now


def _is_green(pull: Pull) -> bool:
    """Whether at least one check passed, and every other one passed or was skipped."""
    states = {check.state for check in pull.checks} - {CheckState.SKIPPED}
    return states == {CheckState.PASSED}


def _clean_since(pull: Pull, was: Pull, now: datetime) -> datetime | None:
    """Return since when GitHub has considered the head mergeable; None if it does not."""
    if pull.merge is not Merge.CLEAN:
        return None
    return (was.clean_since if was.head == pull.head else None) or now
