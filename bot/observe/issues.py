"""The observer of issues: who put the label on, and whether the issue still wants an agent."""

import logging
import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec.structs import replace

from bot.decide.assignment import Assignment
from bot.github.client import GitHub
from bot.github.errors import GitHubFailure
from bot.github.retries import Retries
from bot.github.snapshots import IssueReading, Labeling
from bot.github.write_access import WriteAccess
from bot.observe.labels import frozen_by_label, labelling, wears
from bot.observe.pulls import PullObserver
from bot.observe.refresh_budget import RefreshBudget, Thing
from bot.observe.reopened import command_to_restore
from bot.store import (
    DueRefresh,
    NewCommand,
    NewSession,
    Observation,
    Outsider,
    RefreshRequest,
    Session,
    Store,
)
from bot.system.clock import Clock
from bot.system.crash_points import AtCrashPoint, CrashPoint
from config.contradictions import nearest
from config.settings import ProjectSettings
from lifecycle.judge.capacity import priority_of
from lifecycle.model.facts import Issue

log = logging.getLogger(__name__)

#: So many issues are asked whether the one that waits for them is among what they wait for.
_MOST_FOLLOWED = 10


class IssueObserver:
    """Reads issues where something may have changed, and makes sessions of the labelled ones."""

    def __init__(
        self,
        store: Store,
        github: GitHub,
        people: WriteAccess,
        pulls: PullObserver,
        refresh_budget: RefreshBudget,
        projects: Mapping[str, ProjectSettings],
        identities: Assignment,
        clock: Clock,
        crash_point: AtCrashPoint,
    ) -> None:
        self._store = store
        self._github = github
        self._people = people
        self._pulls = pulls
        self._refresh_budget = refresh_budget
        self._names = {project.repository.lower(): name for name, project in projects.items()}
        self._projects = projects
        self._identities = identities
        self._clock = clock
        self._crash_point = crash_point
        self._retries = Retries(clock)

    def read_requested(self) -> int:
        """Read every issue that was touched, or all of a repository. Returns how many touches."""
        due = self._store.refreshes.due(self._clock(), ("issue:", "repository:"))
        for refresh in due:
            name = f"{refresh.repository} {refresh.subject}"
            try:
                if refresh.subject.startswith("repository:"):
                    self._look_over(refresh.repository)
                else:
                    with self._github.remembering():
                        self._look(refresh)
                self._store.refreshes.mark_done(refresh)
                self._retries.worked(name)
            except GitHubFailure as failure:
                log.warning("%s: not read: %s", name, failure)
                self._store.refreshes.postpone(refresh, self._retries.after(name, failure))
            except Exception as error:
                # What cannot be read must not keep what comes after it from being read.
                log.exception("%s: not read", name)
                self._store.refreshes.postpone(refresh, self._retries.after(name, error))
        return len(due)

    def labelled(self) -> list[Thing]:
        """Every labelled open issue. What cannot be listed now is left out: it cancels nothing."""
        found: list[Thing] = []
        for project in self._projects.values():
            if not self._refresh_budget.afford(project.repository):
                continue
            try:
                numbers = self._triggered(project)
            except GitHubFailure as failure:
                log.warning("%s: labelled issues not listed: %s", project.repository, failure)
                continue
            found += [(project.repository, number) for number in numbers]
        return found

    def _triggered(self, project: ProjectSettings) -> set[int]:
        """The open issues that wear anything that asks for an agent. Raises `GitHubFailure`.

        GitHub lists only what is spelled as it is asked for; the repository's labels may be spelled
        in other letters than the configuration's.
        """
        triggers, read = self._triggers(project), self._github.read
        there = read.labels(project.repository, project.label)
        spelled = [name for name in there if name.lower() in triggers]
        words = dict.fromkeys([*triggers, project.label, *spelled])
        return read.labelled(project.repository, words)

    def _triggers(self, project: ProjectSettings) -> Mapping[str, str]:
        """What asks for an agent where an issue wears it, each with the agent; in small letters."""
        label, assignee = project.label.lower(), project.assignee.removeprefix("@").lower()
        named = {f"{label}:{agent.lower()}": agent for agent in sorted(self._identities.words)}
        assigned = {f"@{assignee}": project.agent} if assignee else {}
        return {label: project.agent, **named, **assigned}

    def _look_over(self, repository: str) -> None:
        """Ask for a look at everything in one repository. Raises `GitHubFailure`."""
        live = [one for one in self._store.sessions.live() if one.repository == repository]
        numbers = {one.number for one in live}
        for project in self._projects.values():
            if project.repository == repository:
                numbers |= self._triggered(project)
        self._refresh((repository, number) for number in numbers)
        branches = [
            RefreshRequest(repository=repository, subject=f"branch:{one.branch}") for one in live
        ]
        self._store.refreshes.request(branches, self._clock())

    def _refresh(self, issues: Iterable[tuple[str, int]]) -> None:
        refreshes = {
            RefreshRequest(repository=name, subject=f"issue:{number}") for name, number in issues
        }
        self._store.refreshes.request(refreshes, self._clock())

    def _look(self, refresh: DueRefresh) -> None:
        number = int(refresh.subject.removeprefix("issue:"))
        thing = (refresh.repository, number)
        fingerprint = self._refresh_budget.found(thing)
        self._read(refresh.repository, number)
        self._refresh_budget.keep(thing, fingerprint)

    def _read(self, repository: str, number: int) -> None:
        """Read one issue, and keep or make its session."""
        name = self._names.get(repository.lower())
        known = self._store.sessions.of_issue(repository, number)
        if name is None and known is None:
            return
        reading = self._github.read.issue(repository, number)
        if reading is None or not reading.issue.open:
            waiting = self._store.sessions.issues_blocked_by(repository, number)
            self._refresh((repository, other) for other in waiting)
        if reading is None:
            if known is not None:
                self._deleted(known)
        elif reading.is_pull:
            return
        elif known is not None:
            self._update(known, reading)
        elif name is not None:
            self._begin(name, self._projects[name], reading)

    def _deleted(self, id: str) -> None:
        """An issue that was deleted, or moved to another repository, wants nobody any more."""
        session = self._store.sessions.get(id)
        if session is None or session.project not in self._projects or not session.issue.open:
            return
        issue = replace(session.issue, open=False, state_reason="deleted")
        self._pulls.read_again(session)
        if self._store.observations.record([Observation(session=id, issue=issue)], self._clock()):
            self._crash_point(CrashPoint.OBSERVED, id)

    def _update(self, id: str, reading: IssueReading) -> None:
        """Keep what the issue is now; its text stays as it stood when it was labelled."""
        session = self._store.sessions.get(id)
        if session is None:
            return
        if session.project not in self._projects:
            return  # Which label counts is not known: nobody may be taken to have removed it.
        triggers = self._triggers(self._projects[session.project])
        issue = replace(
            session.issue,
            private=reading.issue.private,
            open=reading.issue.open,
            state_reason=reading.issue.state_reason,
            # What was started by a word, and never labelled, needs no label to go on.
            labelled=wears(reading.labels, triggers) or session.issue.labelled_at is None,
            frozen=frozen_by_label(reading, session.issue.frozen, self._clock()),
        )
        issue = self._blocked(session.repository, issue, begun=session.run > 0)
        self._store.slots.prioritize(id, priority_of(reading.labels))
        if not issue.open:
            # A merge closes its issue: what is known of the pull request has to come first.
            self._pulls.read_again(session)
        if issue.open and not session.issue.open:
            command = command_to_restore(session, reading, self._people, self._clock())
            if command is not None:
                self._store.commands.add(command)
        put = labelling(reading, triggers)
        before = session.issue.labelled_at
        if issue.open and put is not None and (before is None or put.at > before):
            issue = replace(issue, labelled_at=put.at)
            self._asked_again(session, reading, put)
        if self._store.observations.record([Observation(session=id, issue=issue)], self._clock()):
            self._crash_point(CrashPoint.OBSERVED, id)

    def _blocked(self, repository: str, issue: Issue, *, begun: bool) -> Issue:
        """The issue with those it waits for, as long as its session has not begun."""
        if begun or not issue.open:
            return replace(issue, blocked_by=(), in_circle=False)
        blockers = self._github.read.blocked_by(repository, issue.number)
        circle = self._leads_back(repository, issue.number, blockers)
        return replace(issue, blocked_by=blockers, in_circle=circle)

    def _leads_back(self, repository: str, number: int, blockers: Iterable[str]) -> bool:
        """Whether one of these waits for this issue in turn, maybe by way of others."""
        ahead, seen = list(blockers), set[str]()
        while ahead and len(seen) < _MOST_FOLLOWED:
            one = ahead.pop(0)
            if one in seen or not one.startswith("#"):
                continue
            seen.add(one)
            further = self._github.read.blocked_by(repository, int(one[1:]))
            if f"#{number}" in further:
                return True
            ahead += further
        return False

    def _asked_again(self, session: Session, reading: IssueReading, put: Labeling) -> None:
        """A label put on anew: brings an ended session back, or is answered with what runs."""
        refusal = self._refusal(session.repository, reading, put)
        if refusal:
            log.warning("%s: not asked for again: %s", session.id, refusal)
            return
        project, word = self._projects[session.project], put.label.lower()
        # A label that names an agent asks for that one.
        named = word.startswith(f"{project.label.lower()}:")
        agent = self._triggers(project)[word]
        self._store.commands.add(
            NewCommand(
                key=f"label:{session.id}:{put.at.isoformat()}",
                repository=session.repository,
                number=session.issue.number,
                kind="restore" if session.ended and not named else "start",
                actor=put.actor,
                at=self._clock(),
                text=agent if named else "",
            )
        )

    def _begin(self, name: str, project: ProjectSettings, reading: IssueReading) -> None:
        """Make a session of a labelled open issue, if who labelled it may write."""
        triggers = self._triggers(project)
        put = labelling(reading, triggers)
        if not reading.issue.open or not wears(reading.labels, triggers):
            return
        refusal = self._refusal(project.repository, reading, put)
        if refusal or put is None:
            number = reading.issue.number
            log.warning("%s#%s: not started: %s", project.repository, number, refusal)
            return
        self._make(name, reading, put.actor, triggers[put.label.lower()])

    def start(self, command: NewCommand) -> str:
        """Make a session at the word of a person who may; the refusal, or empty.

        What others wrote into the issue since then keeps it from being started.
        """
        name = self._names.get(command.repository.lower())
        if name is None:
            return f"no project is configured for {command.repository}"
        agent, known = command.text or self._projects[name].agent, self._identities.words
        if agent not in known:
            return f"there is no agent `{agent}` here; {nearest(agent, list(known))}"
        reading = self._github.read.issue(command.repository, command.number)
        if reading is None or reading.is_pull or not reading.issue.open:
            return "an agent is started on an open issue"
        if refusal := self._edited(command.repository, reading, command.at):
            return refusal
        self._make(name, reading, command.actor, agent, command.resume)
        return ""

    def _make(
        self, name: str, reading: IssueReading, requester: str, agent: str, resume: str = ""
    ) -> None:
        project, issue = self._projects[name], reading.issue
        chosen = self._identities.choose(agent, name, requester)
        put = labelling(reading, self._triggers(project))
        waiting = self._blocked(project.repository, issue, begun=False)
        new = NewSession(
            id=f"{name}-{issue.number}",
            project=name,
            repository=project.repository,
            created=self._clock(),
            issue=replace(
                waiting,
                labelled=True,
                labelled_at=put.at if put else None,
                frozen=frozen_by_label(reading, None, self._clock()),
            ),
            branch=branch_name(project.branch, issue.number, issue.title),
            requester=requester,
            agent_type=chosen.agent_type,
            agent_name=chosen.agent,
            priority=priority_of(reading.labels),
            native_id=resume,
        )
        if self._store.sessions.create(new):
            log.info("%s: made for %s#%s", new.id, project.repository, issue.number)
            self._crash_point(CrashPoint.OBSERVED, new.id)

    def _refusal(self, repository: str, reading: IssueReading, put: Labeling | None) -> str:
        """Why a labelled issue starts nothing; empty: it may. Unknown people are refused."""
        if put is None or not put.actor:
            return "nobody is known to have put the label on"
        if not self._people.may_steer(repository, put.actor, fresh=True):
            number = reading.issue.number
            self._store.outsiders.add(
                Outsider(repository=repository, issue=number, login=put.actor, number=number),
                self._clock(),
            )
            return f"@{put.actor}, who put the label on, may not write to the repository"
        return self._edited(repository, reading, put.at)

    def _edited(self, repository: str, reading: IssueReading, since: datetime) -> str:
        """Who changed the text since then and may not; empty: nobody."""
        for edit in reading.edits:
            # GitHub tells whole seconds: what happened in the same one may have come after.
            if edit.at >= since and not self._people.may_steer(repository, edit.actor):
                return f"@{edit.actor}, who may not write, edited it after that"
        return ""


def branch_name(pattern: str, number: int, title: str) -> str:
    """A branch made of the issue's number and plain words of its title, safe in every command."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-")
    return pattern.format(number=number, words=words or "issue")
