"""Observes issues: reads those that changed, records facts, reports candidates for sessions."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure
from bot.github.snapshots import IssueSnapshot
from bot.github.write_access import WriteAccess
from bot.observe.discussions import Discussions
from bot.observe.pulls import PullObserver
from bot.observe.refresh_budget import Numbered, RefreshBudget
from bot.observe.triggers import (
    frozen_by_label,
    has_any,
    last_labeling,
    reopening,
    triggers_of,
)
from bot.store import NewCommand, Observation, RefreshRequest, Session, Store, requested_by
from bot.system.clock import Clock
from bot.system.crash_points import AtCrashPoint, CrashPoint
from bot.system.tracing import hand_on
from config.projects import project_of
from config.settings import ProjectSettings
from lifecycle.judge.capacity import priority_of
from lifecycle.model.candidates import Adopted, Candidate, Labelled, Requested, Spawn, Trigger
from lifecycle.model.facts import Issue
from lifecycle.model.status import PullState

log = logging.getLogger(__name__)

#: The most issues that are followed to find a circle of dependencies.
_MOST_FOLLOWED = 10


@dataclass(eq=False)
class IssueObserver:
    """Reads issues that may have changed, one GitHub request at a time."""

    store: Store
    github: GitHub
    people: WriteAccess
    discussions: Discussions
    pulls: PullObserver
    refresh_budget: RefreshBudget
    projects: Mapping[str, ProjectSettings]
    agents: Collection[str]  #: Agents and agent types that a label may request.
    #: Called with each issue or pull request that requests an agent, and with each reopening that
    #: may restore an ended session. The refresh is marked as done only afterwards, so that a crash
    #: in between leads to the same call again.
    on_candidate: Callable[[Candidate], None]
    clock: Clock
    crash_point: AtCrashPoint

    @property
    def triggers(self) -> Mapping[str, Collection[str]]:
        """Return the labels and assignees that request an agent, in lower case, by repository."""
        found: dict[str, set[str]] = {}
        for name, project in self.projects.items():
            found.setdefault(project.repository, set()).update(self._triggers(name))
        return found

    def _triggers(self, project: str) -> Mapping[str, str]:
        return triggers_of(self.projects[project], self.agents)

    def read_requested(self) -> int:
        """Carry out due refreshes of issues and of repositories; return how many were due.

        A refresh of a repository requests refreshes of its labelled issues and live sessions. If a
        read fails, the refresh is postponed.
        """
        due = self.store.refreshes.due(self.clock(), ("issue:", "repository:"))
        for refresh in due:
            with self.refresh_budget.postponed_on_failure(refresh):
                kind, _, number = refresh.subject.partition(":")
                if kind == "repository":
                    self._refresh_repository(refresh.repository)
                else:
                    thing = (refresh.repository, int(number))
                    fingerprint = self.refresh_budget.found(thing)
                    with self.github.caching():
                        self._read(*thing)
                        self.refresh_budget.record(thing, fingerprint)
                self.store.refreshes.mark_done(refresh)
        return len(due)

    def labelled(self) -> list[Numbered]:
        """Return the open issues that request an agent, in all projects that can be read now."""
        found: list[Numbered] = []
        for name, project in self.projects.items():
            if not self.refresh_budget.has_spare(project.repository):
                continue
            try:
                numbers = self._labelled_in(name)
            except GitHubFailure as failure:
                log.warning("%s: labelled issues not listed: %s", project.repository, failure)
                continue
            found += [(project.repository, number) for number in numbers]
        return found

    def _labelled_in(self, name: str) -> set[int]:
        """Return a project's open issues that request an agent. Raises `GitHubFailure`.

        GitHub's search compares labels case-sensitively, and the configuration may spell them
        differently, so the repository's labels are read first.
        """
        project, triggers, read = self.projects[name], self._triggers(name), self.github.read
        existing = read.labels(project.repository, project.label)
        spelled = [label for label in existing if label.lower() in triggers]
        words = dict.fromkeys([*triggers, project.label, *spelled])
        return read.labelled_issues(project.repository, words)

    def _refresh_repository(self, repository: str) -> None:
        """Request a refresh of labelled issues and live sessions. Raises `GitHubFailure`."""
        live = [one for one in self.store.sessions.live() if one.repository == repository]
        numbers = {one.number for one in live if one.number}
        for name, project in self.projects.items():
            if project.repository == repository:
                numbers |= self._labelled_in(name)
        branches = [f"branch:{one.branch}" for one in live]
        self._request(repository, [*(f"issue:{number}" for number in numbers), *branches])

    def _request(self, repository: str, subjects: Iterable[str]) -> None:
        requests = [RefreshRequest(repository=repository, subject=subject) for subject in subjects]
        self.store.refreshes.request(requests, self.clock())

    def _read(self, repository: str, number: int) -> None:
        """Read one issue, record facts of its sessions, and report candidates for sessions.

        If it is closed or gone, also requests refreshes of the issues that waited for it.
        """
        project = project_of(self.projects, repository)
        sessions = self.store.sessions.of_issue(repository, number)
        starts = self.store.commands.authorized(repository, number)
        if not project and not sessions:
            for command in starts:
                self._report_start(project, None, command)
            return
        reading = self.github.read.issue(repository, number)
        if reading is None or not reading.issue.open:
            waiting = self.store.sessions.issues_blocked_by(repository, number)
            self._request(repository, [f"issue:{other}" for other in waiting])
        for session in sessions:
            self._update(session, reading, foremost=session == sessions[0])
        if not sessions and project and reading is not None:
            self._report_label(project, reading)
        for command in starts:
            self._report_start(project, reading, command)

    def _update(self, id: str, reading: IssueSnapshot | None, *, foremost: bool) -> None:
        """Record an issue's state in its session. `reading` is None for a deleted or moved issue.

        `foremost` says that the session is the first of those that `of_issue` returns. The issue's
        text stays as it was when the session was opened; a later edit by people who may give
        commands is recorded as a remark.
        """
        session = self.store.sessions.get(id)
        if session is None or session.project not in self.projects:
            return  # Without the project, its label is unknown: nothing counts as removed.
        if reading is None:
            # Deleted, or moved to another repository.
            if not session.issue.open:
                return
            issue = replace(session.issue, open=False, state_reason="deleted")
        elif reading.is_pull:
            return
        else:
            issue = self._current(session, reading)
            self.store.slots.prioritize(id, priority_of(reading.labels))
        if not issue.open:
            # A merge closes the issue: the merge has to be recorded before the closing.
            self.pulls.read_open(session)
        if reading is not None and issue.open:
            issue = self._report_new_triggers(session, issue, reading, foremost=foremost)
        hand_on([id])
        if self.store.observations.record([Observation(session=id, issue=issue)], self.clock()):
            self.crash_point(CrashPoint.OBSERVED, id)

    def _current(self, session: Session, reading: IssueSnapshot) -> Issue:
        issue = replace(
            session.issue,
            private=reading.issue.private,
            open=reading.issue.open,
            state_reason=reading.issue.state_reason,
            # A session that a command opened on an issue without the label needs no label.
            labelled=has_any(reading.labels, self._triggers(session.project))
            or session.issue.labelled_at is None,
            frozen=frozen_by_label(reading, session.issue.frozen, self.clock()),
        )
        if session.ended is None and reading.issue.open:
            triggers = self._triggers(session.project)
            issue = self.discussions.of(session.repository, reading, issue, triggers)
            issue = self.discussions.with_edit(session, issue, reading)
        return self._with_blockers(session.repository, issue, begun=session.run > 0)

    def _report_new_triggers(
        self, session: Session, issue: Issue, reading: IssueSnapshot, *, foremost: bool
    ) -> Issue:
        """Report a reopening or a new agent label; return the issue with the time of that label.

        A reopening is reported only if `foremost` is true: `session` is then the newest of the
        issue's sessions that have not ended or, if all have ended, the newest of all.
        """
        if (
            foremost
            and not session.issue.open
            and (found := reopening(session, reading, self.people))
        ):
            self.on_candidate(found)
        label = self._label(session.project, reading)
        beside = _is_beside(session.id, session.project, session.issue.number)
        began = session.created.replace(microsecond=0)  # As GitHub's times are.
        before = began if beside else session.issue.labelled_at
        if label is None or (before is not None and label.at <= before):
            return issue
        self.on_candidate(self._candidate(session.project, reading, label))
        # A session beside another one lasts without the label.
        return issue if beside else replace(issue, labelled_at=label.at)

    def _report_label(self, project: str, reading: IssueSnapshot) -> None:
        labelled = has_any(reading.labels, self._triggers(project))
        if not reading.issue.open or reading.is_pull or not labelled:
            return
        # The label is set, but it may be unknown who added it.
        unknown = Labelled(actor="", at=self.clock(), agent="", names_agent=False)
        label = self._label(project, reading) or unknown
        self.on_candidate(self._new(project, reading, label))

    def _report_start(
        self, project: str, reading: IssueSnapshot | None, command: NewCommand
    ) -> None:
        trigger = requested_by(command)
        if reading is not None and project and trigger.adopts:
            self.on_candidate(self._adoption(project, reading, trigger))
            return
        if reading is not None and project:
            self.on_candidate(self._new(project, reading, trigger))
            return
        place, number = command.repository, command.number
        self.on_candidate(
            Candidate(
                project=project, repository=place, number=number, trigger=trigger, allowed=True
            )
        )

    def _adoption(self, project: str, reading: IssueSnapshot, trigger: Requested) -> Candidate:
        """Return a candidate for adopting a pull request by command. Raises `GitHubFailure`."""
        candidate = self._candidate(project, reading, trigger)
        repository, number = candidate.repository, candidate.number
        found = self.github.read.pull(repository, number) if reading.is_pull else None
        if found is None or found.pull.state is not PullState.OPEN:
            return candidate
        home = self.github.aliases.name(repository)
        adopted = Adopted(
            branch=found.pull.branch,
            head=found.pull.head,
            from_fork=found.head_repository.casefold() != home.casefold(),
        )
        spawn = Spawn(session=f"{project}-{number}", branch=adopted.branch)
        return replace(
            candidate,
            trigger=replace(trigger, spawn=spawn),
            issue=Issue(
                number=0,
                title=reading.issue.title,
                body=reading.issue.body,
                private=reading.issue.private,
            ),
            adopted=adopted,
        )

    def _label(self, project: str, reading: IssueSnapshot) -> Labelled | None:
        """Return the last known label or assignment that still requests an agent, or None."""
        event = last_labeling(reading, self._triggers(project))
        if event is None:
            return None
        label, prefix = event.label.lower(), f"{self.projects[project].label.lower()}:"
        agent, named = self._triggers(project)[label], label.startswith(prefix)
        return Labelled(actor=event.actor, at=event.at, agent=agent, names_agent=named)

    def _candidate(self, project: str, reading: IssueSnapshot, trigger: Trigger) -> Candidate:
        """Return a candidate; its `allowed` says whether the trigger's actor may give commands.

        `allowed` is true for a start command, whose author was authorized before. For all other
        triggers, such as labels, the actor's permission is checked now. Raises `GitHubFailure`.
        """
        repository = self.projects[project].repository
        # Authors of commands are already authorized; the actor of a label is checked here.
        allowed = isinstance(trigger, Requested) or self.people.may_command(
            repository, trigger.actor, fresh=True
        )
        return Candidate(
            project=project,
            repository=repository,
            number=reading.issue.number,
            trigger=trigger,
            allowed=allowed,
            edited_by=self._edited_by(repository, reading, trigger.at) if allowed else None,
            issue=reading.issue,
            is_pull=reading.is_pull,
            priority=priority_of(reading.labels),
        )

    def _new(self, project: str, reading: IssueSnapshot, trigger: Trigger) -> Candidate:
        """Return a candidate for a new session, with the issue as it is given to the session."""
        candidate = self._candidate(project, reading, trigger)
        if not candidate.allowed or candidate.edited_by is not None or candidate.is_pull:
            return candidate
        label = self._label(project, reading)
        issue = replace(
            reading.issue,
            labelled=True,
            labelled_at=label.at if label and not _is_spawned_beside(candidate) else None,
            frozen=frozen_by_label(reading, None, self.clock()),
            commented=bool(reading.earlier_comments) or any(one.own for one in reading.comments),
        )
        issue = self._with_blockers(candidate.repository, issue, begun=False)
        triggers = self._triggers(project)
        issue = self.discussions.of(candidate.repository, reading, issue, triggers)
        return replace(candidate, issue=issue)

    def _edited_by(self, repository: str, reading: IssueSnapshot, since: datetime) -> str | None:
        """Return the login of the first editor of the title or text who may not give commands.

        Only edits at `since` or later count. Returns an empty string if GitHub does not name that
        editor, and None if there is no such editor.
        """
        for edit in reading.edits:
            # GitHub's times are whole seconds: an edit in the same second may be later.
            if edit.at >= since and not self.people.may_command(repository, edit.actor):
                return edit.actor
        return None

    def _with_blockers(self, repository: str, issue: Issue, *, begun: bool) -> Issue:
        """Return the issue with the issues that block it, and whether these wait for the issue.

        If the issue is closed or its session has begun, its blockers no longer matter and are
        omitted.
        """
        if begun or not issue.open:
            return replace(issue, blocked_by=(), in_circle=False)
        blockers = self.github.read.blocked_by(repository, issue.number)
        circle = self._leads_back(repository, issue.number, blockers)
        return replace(issue, blocked_by=blockers, in_circle=circle)

    def _leads_back(self, repository: str, number: int, blockers: Iterable[str]) -> bool:
        """Whether this issue itself blocks one of its blockers, directly or through others.

        Follows only issues of this repository, and not more than 10.
        """
        ahead, seen = list(blockers), set[str]()
        while ahead and len(seen) < _MOST_FOLLOWED:
            one = ahead.pop(0)
            if one in seen or not one.startswith("#"):
                continue
            seen.add(one)
            further = self.github.read.blocked_by(repository, int(one[1:]))
            if f"#{number}" in further:
                return True
            ahead += further
        return False


def _is_spawned_beside(candidate: Candidate) -> bool:
    spawn = candidate.trigger.spawn if isinstance(candidate.trigger, Requested) else None
    return spawn is not None and _is_beside(spawn.session, candidate.project, candidate.number)


def _is_beside(session: str, project: str, number: int) -> bool:
    """Whether a session is not the first one of its issue, judging by its ID."""
    return session != f"{project}-{number}"
