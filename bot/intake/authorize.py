"""Authorizes commands: granted to a session, refused, or answered where no session exists."""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, Refused, TryLater
from bot.github.retries import Retries
from bot.github.write_access import WriteAccess, from_here
from bot.intake.local_commands import standing_head
from bot.observe.issues import IssueObserver
from bot.store import NewCommand, Outsider, Session, Store
from bot.system.clock import Clock
from bot.text import messages
from lifecycle.react.notices import SEEN

log = logging.getLogger(__name__)


class Commands:
    """Grants what people with write access asked for, and refuses the rest."""

    def __init__(
        self,
        store: Store,
        github: GitHub,
        people: WriteAccess,
        issues: IssueObserver,
        clock: Clock,
        may_act: Callable[[], bool],
        may_speak: Callable[[str], bool],
    ) -> None:
        """`may_act`: whether the database is ours, asked before an answer goes out; `may_speak`:
        whether anything may be written to this repository.
        """
        self._store = store
        self._github = github
        self._people = people
        self._issues = issues
        self._clock = clock
        self._may_act = may_act
        self._may_speak = may_speak
        self._retries = Retries(clock)
        self._waiting: dict[str, datetime] = {}  # By repository.

    def settle(self) -> int:
        """Settle every new command. Returns how many."""
        settled = 0
        for command in self._store.commands.new():
            name = f"{command.repository} commands"
            until = self._waiting.get(command.repository)
            if until is not None and self._clock() < until:
                continue
            try:
                self._settle(command)
            except Exception as failure:
                # Left as they are, and asked for again: a repository that gives no answer keeps
                # its own commands waiting, and no other's.
                unforeseen = not isinstance(failure, GitHubFailure)
                log.warning("%s: not settled: %s", command.key, failure, exc_info=unforeseen)
                self._waiting[command.repository] = self._retries.after(name, failure)
            else:
                self._retries.worked(name)
                settled += 1
        return settled

    def _settle(self, command: NewCommand) -> None:
        session = self._session_of(command)
        if not self._may(command, fresh=command.kind in ("merge", "start")):
            about = session.issue.number if session else command.number
            outsider = Outsider(
                repository=command.repository,
                issue=about,
                login=command.actor,
                number=command.number,
            )
            self._store.outsiders.add(outsider, self._clock())
            self._store.commands.refuse(
                command.key, f"@{command.actor} may not write to the repository"
            )
            log.warning("%s: %s by @%s refused", command.key, command.kind, command.actor)
        elif session is not None:
            head = standing_head(session, command.number, command.at)
            self._store.commands.grant(command.key, session.id, self._clock(), head)
            log.info("%s: %s by @%s", session.id, command.kind, command.actor)
        elif command.kind == "start":
            refusal = self._issues.start(command)
            self._answer(command, "not_started" if refusal else "", refusal or "a session was made")
        else:
            topic = "answer" if command.kind == "help" else "no_session"
            self._answer(command, topic, "no session works on this")

    def _answer(self, command: NewCommand, topic: str, why: str) -> None:
        """Answer a command that is no session's; it is itself what was written down before.

        A crash in between repeats it, and the comment is found by its key. Refused or answered, a
        command is settled.
        """
        if not from_here(command.actor) and self._may_speak(command.repository):
            if not self._may_act():
                raise TryLater("this bot acts no more; the next one answers")
            try:
                self._say(command, topic, why)
            except Refused as refusal:
                log.warning("%s: not answered: %s", command.key, refusal)
        self._store.commands.refuse(command.key, why)

    def _say(self, command: NewCommand, topic: str, why: str) -> None:
        """Show that it was seen; what has an effect that people see needs no topic."""
        write = self._github.write
        if command.comment is not None:
            with suppress(Refused):  # Where people are locked out, a comment of ours may stand.
                write.react(command.repository, command.comment, SEEN)
        if topic:
            values = {
                "answer": {"text": command.text},
                "no_session": {"kind": command.kind},
                "not_started": {"why": why},
            }
            body = messages.comment_body(topic, values[topic])
            write.comment(command.repository, command.number, body, command.key)

    def _may(self, command: NewCommand, *, fresh: bool) -> bool:
        if from_here(command.actor):
            return True
        # A merge wants the right to write itself, whoever is listed.
        ask = self._people.may_write if command.kind == "merge" else self._people.may_steer
        return ask(command.repository, command.actor, fresh=fresh)

    def _session_of(self, command: NewCommand) -> Session | None:
        found = self._store.sessions.of_pull(command.repository, command.number)
        found = found or self._store.sessions.of_issue(command.repository, command.number)
        return self._store.sessions.get(found) if found else None
