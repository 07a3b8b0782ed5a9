"""What becomes of a wish: granted to its session, refused, or answered where no session works."""

import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, Refused, TryLater
from bot.github.retries import Retries
from bot.github.write_access import People, from_here
from bot.intake.local_commands import standing_head
from bot.observe.issues import WatchIssues
from bot.store import NewWish, Outsider, Session, Store
from bot.system.clock import Clock
from bot.text import messages
from lifecycle.react.notices import SEEN

log = logging.getLogger(__name__)


class Wishes:
    """Grants what people with write access asked for, and refuses the rest."""

    def __init__(
        self,
        store: Store,
        github: GitHub,
        people: People,
        issues: WatchIssues,
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
        """Settle every new wish. Returns how many."""
        settled = 0
        for wish in self._store.new_wishes():
            name = f"{wish.repository} wishes"
            until = self._waiting.get(wish.repository)
            if until is not None and self._clock() < until:
                continue
            try:
                self._settle(wish)
            except Exception as failure:
                # Left as they are, and asked for again: a repository that gives no answer keeps
                # its own wishes waiting, and no other's.
                unforeseen = not isinstance(failure, GitHubFailure)
                log.warning("%s: not settled: %s", wish.key, failure, exc_info=unforeseen)
                self._waiting[wish.repository] = self._retries.after(name, failure)
            else:
                self._retries.worked(name)
                settled += 1
        return settled

    def _settle(self, wish: NewWish) -> None:
        session = self._session_of(wish)
        if not self._may(wish, fresh=wish.kind in ("merge", "start")):
            about = session.issue.number if session else wish.number
            outsider = Outsider(
                repository=wish.repository, issue=about, login=wish.actor, number=wish.number
            )
            self._store.turn_away(outsider, self._clock())
            self._store.refuse_wish(wish.key, f"@{wish.actor} may not write to the repository")
            log.warning("%s: %s by @%s refused", wish.key, wish.kind, wish.actor)
        elif session is not None:
            head = standing_head(session, wish.number, wish.at)
            self._store.grant_wish(wish.key, session.id, self._clock(), head)
            log.info("%s: %s by @%s", session.id, wish.kind, wish.actor)
        elif wish.kind == "start":
            refusal = self._issues.start(wish)
            self._answer(wish, "not_started" if refusal else "", refusal or "a session was made")
        else:
            topic = "answer" if wish.kind == "help" else "no_session"
            self._answer(wish, topic, "no session works on this")

    def _answer(self, wish: NewWish, topic: str, why: str) -> None:
        """Answer a wish that is no session's; it is itself what was written down before.

        A crash in between repeats it, and the comment is found by its key. Refused or answered, a
        wish is settled.
        """
        if not from_here(wish.actor) and self._may_speak(wish.repository):
            if not self._may_act():
                raise TryLater("this bot acts no more; the next one answers")
            try:
                self._say(wish, topic, why)
            except Refused as refusal:
                log.warning("%s: not answered: %s", wish.key, refusal)
        self._store.refuse_wish(wish.key, why)

    def _say(self, wish: NewWish, topic: str, why: str) -> None:
        """Show that it was seen; what has an effect that people see needs no topic."""
        write = self._github.write
        if wish.comment is not None:
            with suppress(Refused):  # Where people are locked out, a comment of ours may stand.
                write.react(wish.repository, wish.comment, SEEN)
        if topic:
            body = messages.say(topic, {"kind": wish.kind, "text": wish.text, "why": why})
            write.comment(wish.repository, wish.number, body, wish.key)

    def _may(self, wish: NewWish, *, fresh: bool) -> bool:
        if from_here(wish.actor):
            return True
        # A merge wants the right to write itself, whoever is listed.
        ask = self._people.may_write if wish.kind == "merge" else self._people.may_steer
        return ask(wish.repository, wish.actor, fresh=fresh)

    def _session_of(self, wish: NewWish) -> Session | None:
        found = self._store.session_of_pull(wish.repository, wish.number)
        found = found or self._store.session_of_issue(wish.repository, wish.number)
        return self._store.session(found) if found else None
