"""Authorizes commands: checks the author's permission, then grants or refuses them."""

import logging
from collections.abc import Callable
from datetime import datetime

from bot.github.errors import GitHubFailure
from bot.github.rate_limits import Backoff
from bot.github.write_access import WriteAccess
from bot.intake.local_commands import allowed_commit, head_at
from bot.store import NewCommand, Outsider, RefreshRequest, Session, Store
from bot.system.clock import Clock
from bot.system.log import log_fields
from bot.system.tracing import hand_on, span
from lifecycle.model.accounts import is_local
from lifecycle.model.actions import Action
from lifecycle.model.roles import Role
from lifecycle.react.notices import replies

log = logging.getLogger(__name__)

#: Commands that need write access, even from people in the configured lists, because they merge,
#: push to a person's branch, push held commits or spend money.
_NEEDS_WRITE_ACCESS = frozenset({"adopt", "merge", "allow", "budget"})
#: The commands that people with the permission `triage` may give: messages to the agent.
TO_AGENT = frozenset({"answer", "tell"})


def may_give(people: WriteAccess, repository: str, actor: str, kind: str) -> bool:
    """Whether a person may give a command, be it in a comment, on a page or over the API.

    Local actors (`is_local`), whose access is checked elsewhere, may give every command. Raises
    `GitHubFailure` if the permission cannot be read.
    """
    if is_local(actor):
        return True
    writes = kind in _NEEDS_WRITE_ACCESS
    may = people.may_write if writes else people.may_command
    if may(repository, actor, fresh=writes or kind == "start"):
        return True
    return kind in TO_AGENT and people.role(repository, actor) >= Role.TRIAGE


class CommandAuthorizer:
    """Grants the commands of people who may give them, and refuses all others."""

    def __init__(
        self,
        store: Store,
        people: WriteAccess,
        clock: Clock,
        is_silenced: Callable[[str], bool],
        open_prompt: Callable[[NewCommand], None],
    ) -> None:
        """Take the store, the people's permissions, the clock and two callbacks.

        `is_silenced(repository)` says whether the bot must not write to the repository.
        `open_prompt` handles an authorized command that starts a session without an issue.
        """
        self._store = store
        self._open_prompt = open_prompt
        self._people = people
        self._clock = clock
        self._is_silenced = is_silenced
        self._backoff = Backoff(clock)
        self._waiting: dict[str, datetime] = {}  # When to try again, by repository.

    def settle(self) -> int:
        """Grant or refuse the new commands; return how many were handled.

        If a permission cannot be read, the command and all later ones in its repository wait. A
        command on a new pull request waits until the bot has read the pull request. A permitted
        command that opens a session for an issue or pull request is only marked as authorized: it
        is granted or refused once the bot has read the issue or pull request.
        """
        settled = 0
        for command in self._store.commands.new():
            name = f"{command.repository} commands"
            until = self._waiting.get(command.repository)
            if until is not None and self._clock() < until:
                continue
            if self._awaits_reading(command):
                continue
            try:
                with (
                    log_fields(repository=command.repository, number=command.number),
                    span("command", command.key, kind=command.kind, number=command.number),
                ):
                    self._settle(command)
            except Exception as failure:
                unforeseen = not isinstance(failure, GitHubFailure)
                log.warning(
                    "%s: command not authorized yet: %s", command.key, failure, exc_info=unforeseen
                )
                self._waiting[command.repository] = self._backoff.next_try(name, failure)
            else:
                self._backoff.reset(name)
                settled += 1
        return settled

    def _awaits_reading(self, command: NewCommand) -> bool:
        subject = f"pull:{command.number}"
        unread = RefreshRequest(repository=command.repository, subject=subject)
        return (
            self._store.refreshes.is_requested(unread)
            and session_on(self._store, command.repository, command.number) is None
        )

    def _settle(self, command: NewCommand) -> None:
        now = self._clock()
        session = session_for(self._store, command)
        if not may_give(self._people, command.repository, command.actor, command.kind):
            outsider = Outsider(
                repository=command.repository,
                issue=(session.issue.number if session else 0) or command.number,
                login=command.actor,
                number=command.number,
            )
            self._store.outsiders.add(outsider, now)
            self._store.commands.refuse(command.key, f"@{command.actor} has no write access")
            log.warning("%s: %s by @%s refused", command.key, command.kind, command.actor)
        elif session is not None:
            head = (
                allowed_commit(session, command.text)
                if command.kind == "allow"
                else head_at(session, command.number, command.at)
            )
            notes = self._several(command, session)
            if notes:
                self._store.outbox.add(command.repository, notes, now)
            hand_on([session.id])
            self._store.commands.grant(command.key, session.id, now, head)
            log.info("%s: %s by @%s", session.id, command.kind, command.actor)
        elif command.addressee:
            why = f"there is no session {command.addressee}"
            replied = self._replies(command, "unknown_session")
            self._store.commands.refuse(command.key, why, replied)
        elif command.kind == "start" and not command.number:
            self._open_prompt(command)
        elif command.kind in ("start", "adopt"):
            self._store.commands.authorize(command, now, self._replies(command, ""))
        else:
            topic = "answer" if command.kind == "help" else "no_session"
            why = "no session works on this"
            self._store.commands.refuse(command.key, why, self._replies(command, topic))

    def _several(self, command: NewCommand, session: Session) -> tuple[Action, ...]:
        """Return a reply to a command on an issue with several open sessions: which one gets it.

        Empty if fewer than two are open or the command names its session, and also for local actors
        and silenced repositories.
        """
        if command.addressee or session.issue.number != command.number:
            return ()
        ids = self._store.sessions.of_issue(command.repository, command.number)
        known = [one for name in ids if (one := self._store.sessions.get(name)) and not one.ended]
        if len(known) < 2 or is_local(command.actor) or self._is_silenced(command.repository):
            return ()
        others = ", ".join(one.id for one in known if one.id != session.id)
        values = {"kind": command.kind, "session": session.id, "others": others}
        return replies(command.key, None, command.number, "several", values)

    def _replies(self, command: NewCommand, topic: str) -> tuple[Action, ...]:
        if is_local(command.actor) or self._is_silenced(command.repository):
            return ()
        by_topic = {
            "no_session": {"kind": command.kind},
            "unknown_session": {"session": command.addressee},
        }
        values = by_topic.get(topic, {"text": command.text})
        return replies(command.key, command.comment, command.number, topic, values)


def session_for(store: Store, command: NewCommand) -> Session | None:
    """Return the session that a command is for, or None.

    That is the session that the command names. If it names none, it is the session of the issue or
    pull request on which the command was written. None for a command that opens another session.
    """
    if command.spawn:
        return None
    found = command.addressee or session_on(store, command.repository, command.number)
    session = store.sessions.get(found) if found else None
    # A name may be that of another repository's session, where other people have access.
    return session if session and session.repository == command.repository else None


def session_on(store: Store, repository: str, number: int) -> str | None:
    """Return the ID of the session of a pull request or issue; None if it has no session.

    The number 0 means that there is neither, so the result is None.
    """
    if not number:
        return None
    found = store.sessions.of_subject
    return found(repository, f"pull:{number}") or found(repository, f"issue:{number}")
