"""Opens sessions for issues, prompts, chats and adopted pull requests; restores ended sessions.

People without write access who request an agent get a comment that says so, once for each issue.
"""

import logging
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bot.decide.assignment import Assignment, describe
from bot.store import (
    NewCommand,
    NewSession,
    Outsider,
    OutsidersTable,
    RefreshRequest,
    Session,
    Store,
    requested_by,
)
from bot.system.clock import Clock
from bot.system.crash_points import AtCrashPoint, CrashPoint
from bot.system.tracing import hand_on
from config.contradictions import nearest
from config.projects import project_of
from config.settings import ProjectSettings
from lifecycle.judge.commands import mode_fault
from lifecycle.model import keys
from lifecycle.model.actions import Action, Comment
from lifecycle.model.candidates import Candidate, Labelled, Reopened, Requested, Spawn
from lifecycle.model.facts import Command, Issue
from lifecycle.model.names import CHAT_MODE, PERMISSION_MODES
from lifecycle.model.status import Origin
from lifecycle.react.notices import replies

log = logging.getLogger(__name__)

#: The most characters of a prompt's first line that become a title; GitHub's limit is 256.
_MOST_OF_TITLE = 100


@dataclass(eq=False)
class Opening:
    """Turns candidates into sessions and commands. Every method is safe to repeat.

    A candidate is a label, an assignment, a reopening, or a command `start` or `adopt`, with the
    permissions that were read for it.
    """

    store: Store
    projects: Mapping[str, ProjectSettings]
    assignment: Assignment
    is_silenced: Callable[[str], bool]  #: Whether the bot must not write to a repository.
    clock: Clock
    crash_point: AtCrashPoint
    #: Returns the permission modes that people may choose in a project, by agent name.
    modes_of: Callable[[str], Mapping[str, Sequence[str]]] = lambda _: {}

    def consider(self, candidate: Candidate) -> None:
        """Open a session for a candidate, give its existing session a command, or do neither.

        Idempotent.
        """
        known = candidate.session
        if candidate.number and not known:
            issue = f"issue:{candidate.number}"
            known = self.store.sessions.of_subject(candidate.repository, issue) or ""
        session = self.store.sessions.get(known) if known else None
        match candidate.trigger:
            case Requested() as requested:
                self._start(candidate, requested, session)
            case Labelled() as label:
                self._label(candidate, label, session)
            case Reopened() as reopened if session is not None:
                self._restore(candidate, reopened, session)

    def open_prompt(self, command: NewCommand) -> None:
        """Open a session or chat for an authorized start command without an issue, or refuse it.

        Idempotent. Not called again once the session is open, because its command is settled then.
        """
        self.consider(
            Candidate(
                project=project_of(self.projects, command.repository),
                repository=command.repository,
                number=0,
                trigger=requested_by(command),
                allowed=True,
                issue=_of_request(command.spawn),
            )
        )

    def _start(self, candidate: Candidate, requested: Requested, session: Session | None) -> None:
        now = self.clock()
        if session is not None and requested.spawn is None:
            self.store.commands.grant(requested.key, session.id, now)
            return
        issue, why = candidate.issue, self._unfit(candidate, requested)
        if issue is not None and not why:
            agent = requested.agent or self.projects[candidate.project].agent
            if self._open(candidate, issue, agent, requested):
                return
            spawn = requested.spawn
            name = spawn.session if spawn else f"{candidate.project}-{issue.number}"
            why = f"another session already has the ID or the branch of {name}"
        self.store.commands.refuse(requested.key, why, self._reply(candidate, requested, why))

    def _reply(self, candidate: Candidate, requested: Requested, why: str) -> tuple[Action, ...]:
        if requested.is_local or self.is_silenced(candidate.repository):
            return ()
        return replies(requested.key, None, candidate.number, "not_started", {"why": why})

    def _unfit(self, candidate: Candidate, requested: Requested) -> str:
        """Return what bars a command from opening a session; empty if nothing.

        Whether the session's ID and branch are free is left to `_open`.
        """
        if candidate.project not in self.projects:
            return f"no project is configured for {candidate.repository}"
        agent = requested.agent or self.projects[candidate.project].agent
        known = self.assignment.names
        if agent not in known:
            return f"there is no agent `{agent}` here; {nearest(agent, list(known))}"
        allowed = self.modes_of(candidate.project).get(agent, PERMISSION_MODES)
        if fault := mode_fault(agent, requested.permission_mode, allowed):
            return fault
        if requested.adopts:
            return self._not_to_adopt(candidate)
        if candidate.issue is None or candidate.is_pull or not candidate.issue.open:
            return "agents can only be started on an open issue"
        return _edited(candidate, "the command")

    def _not_to_adopt(self, candidate: Candidate) -> str:
        """Return what bars a pull request from being adopted; empty if nothing."""
        adopted = candidate.adopted
        if adopted is None:
            return "only an open pull request can be adopted"
        if adopted.from_fork:
            return "the pull request's branch is in a fork, to which Mergewright does not push"
        if self.projects[candidate.project].push_to == "fork":
            return "in this project Mergewright pushes only to a fork, not to this branch"
        return _edited(candidate, "the command")

    def _label(self, candidate: Candidate, label: Labelled, session: Session | None) -> None:
        about = session.id if session else f"{candidate.repository}#{candidate.number}"
        if why := self._not_permitted(candidate, label.actor):
            log.warning("%s: label ignored: %s", about, why)
        elif session is None and candidate.issue is not None:
            self._open(candidate, candidate.issue, label.agent)
        elif session is not None:
            command = Command(
                key=f"label:{session.id}:{label.at.isoformat()}",
                kind="start",
                actor=label.actor,
                at=self.clock(),
                text=label.agent if label.names_agent else "",
                number=candidate.number,
            )
            self.store.commands.add_granted(session.id, command)

    def _not_permitted(self, candidate: Candidate, actor: str) -> str:
        """Return why a label is ignored; empty if it is not.

        A person without write access who added the label is recorded for `notify_outsiders`.
        """
        if not actor:
            return "it is unknown who added it"
        if candidate.allowed:
            return _edited(candidate, "the label was added")
        number, repository = candidate.number, candidate.repository
        outsider = Outsider(repository=repository, issue=number, login=actor, number=number)
        self.store.outsiders.add(outsider, self.clock())
        return f"@{actor}, who added it, has no write access"

    def _restore(self, candidate: Candidate, reopened: Reopened, session: Session) -> None:
        if not candidate.allowed:
            log.warning("%s: not restored: @%s has no write access", session.id, reopened.actor)
            return
        command = Command(
            key=f"reopened:{session.id}:{reopened.number}:{reopened.at.isoformat()}",
            kind="start",
            actor=reopened.actor,
            at=self.clock(),
            number=reopened.number,
        )
        self.store.commands.add_granted(session.id, command)

    def _open(
        self, candidate: Candidate, issue: Issue, agent: str, requested: Requested | None = None
    ) -> bool:
        """Open a session and settle its start command. Returns False if the ID or branch is taken.

        `requested` is the start command, or None if a label requests the session.
        """
        name, project = candidate.project, self.projects[candidate.project]
        requester, spawn = candidate.trigger.actor, requested.spawn if requested else None
        chosen = self.assignment.choose(agent, name, requester, describe(issue))
        session = spawn.session if spawn else f"{name}-{issue.number}"
        number = session.removeprefix(f"{name}-")
        branch = spawn.branch if spawn else ""
        new = NewSession(
            id=session,
            project=name,
            repository=project.repository,
            created=self.clock(),
            issue=issue,
            branch=branch or branch_name(project.branch, number, issue.title),
            origin=_origin(candidate, issue),
            base=candidate.adopted.head if candidate.adopted else "",
            requester=requester,
            agent_type=chosen.agent_type,
            agent_name=chosen.agent,
            priority=candidate.priority,
            native_id=requested.resume if requested else "",
            permission_mode=self._mode(candidate, requested, agent),
            budget_usd=spawn.budget_usd if spawn else 0.0,
            metadata=spawn.metadata if spawn else {},
        )
        hand_on([new.id])
        opened = self.store.sessions.create(new, requested.key if requested else "")
        if opened:
            where = f"{project.repository}#{candidate.number}"
            log.info("%s: opened for %s", new.id, where if candidate.number else f"a {new.origin}")
            if candidate.adopted:
                pull = RefreshRequest(
                    repository=candidate.repository, subject=f"pull:{candidate.number}"
                )
                self.store.refreshes.request([pull], self.clock())
            self.crash_point(CrashPoint.OBSERVED, new.id)
        return opened

    def _mode(self, candidate: Candidate, requested: Requested | None, agent: str) -> str:
        """Return the session's permission mode; empty for that of its agent type.

        Unless a mode was requested, a chat gets the mode in which the agent asks the person before
        it uses tools, if people may choose that mode.
        """
        mode = requested.permission_mode if requested else ""
        if mode or requested is None or requested.spawn is None or not requested.spawn.chat:
            return mode
        allowed = self.modes_of(candidate.project).get(agent, PERMISSION_MODES)
        return CHAT_MODE if CHAT_MODE in allowed else ""


def _edited(candidate: Candidate, then: str) -> str:
    if candidate.edited_by is None:
        return ""
    who = f" (@{candidate.edited_by})" if candidate.edited_by else ""
    return (
        f"somebody without write access{who} edited the title or description after {then}: read"
        " them, then repeat the request"
    )


def _origin(candidate: Candidate, issue: Issue) -> Origin:
    if candidate.adopted:
        return Origin.PULL
    trigger = candidate.trigger
    if isinstance(trigger, Requested) and trigger.spawn is not None and trigger.spawn.chat:
        return Origin.CHAT
    return Origin.ISSUE if issue.number else Origin.PROMPT


def _of_request(spawn: Spawn | None) -> Issue:
    """Return the prompt of a start command in the form of an issue, with the number 0.

    The first line is the title, the rest the body. For a chat, and if the first line is too long
    for a title and was cut, the body is the whole prompt.
    """
    prompt = spawn.prompt.strip() if spawn else ""
    first, _, rest = prompt.partition("\n")
    title = first.strip()
    if len(title) > _MOST_OF_TITLE:
        title, rest = f"{title[:_MOST_OF_TITLE].rstrip()}…", prompt
    if spawn and spawn.chat:
        return Issue(number=0, title=title or "Chat", body=prompt)
    return Issue(number=0, title=title, body=rest.strip())


def branch_name(pattern: str, number: str, title: str) -> str:
    """Fill `pattern`, which has the fields `{number}` and `{words}`; return the branch name.

    `number` is the end of the session's ID: `12` for issue 12, `12b` for its second session, `p3`
    without an issue. The words are those of the title in lower-case ASCII, joined by hyphens: at
    most 40 characters, none of which needs quoting in a shell. For a title without such words they
    are `issue`.
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-")
    return pattern.format(number=number, words=words or "issue")


def notify_outsiders(
    outsiders: OutsidersTable, is_silenced: Callable[[str], bool], clock: Clock
) -> int:
    """Reply to recorded people without write access who have no reply yet; return their number.

    The comments are added to the outbox. People in a silenced repository are counted, but get no
    reply, not even later.
    """
    recorded = outsiders.unnotified()
    for one in recorded:
        key, values = keys.outsider(one.issue, one.login), {"login": one.login}
        comment = Comment(key=key, number=one.number, topic="outsider", values=values)
        outsiders.settle(one, () if is_silenced(one.repository) else (comment,), clock())
    return len(recorded)
