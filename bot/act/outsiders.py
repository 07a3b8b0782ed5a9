"""Telling people once that their word does not count here; nothing else is done about it."""

import logging
from collections.abc import Callable

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, Refused
from bot.github.retries import Retries
from bot.store import Outsider, Store
from bot.system.clock import Clock
from bot.text import messages

log = logging.getLogger(__name__)


class Outsiders:
    """Tells those whom the observers turned away: each once for an issue, also over restarts."""

    def __init__(
        self,
        store: Store,
        github: GitHub,
        clock: Clock,
        may_act: Callable[[], bool],
        may_speak: Callable[[str], bool],
    ) -> None:
        """`may_act`: whether the database is ours; `may_speak`: whether anything may be said."""
        self._store = store
        self._github = github
        self._clock = clock
        self._may_act = may_act
        self._may_speak = may_speak
        self._retries = Retries(clock)
        self._later = clock()

    def tell(self) -> int:
        """Tell everybody who is to be told. Returns how many were."""
        if self._clock() < self._later or not self._may_act():
            return 0
        told = 0
        for one in self._store.outsiders.unnotified():
            try:
                self._tell(one)
            except GitHubFailure as failure:
                log.warning("%s: @%s not told: %s", one.repository, one.login, failure)
                self._later = self._retries.after("outsiders", failure)
                break
            self._store.outsiders.mark_notified(one, self._clock())
            told += 1
        return told

    def _tell(self, one: Outsider) -> None:
        """A crash after it repeats it, and the comment is found by its key."""
        if not self._may_speak(one.repository):
            return
        body = messages.comment_body("outsider", {"login": one.login})
        key = f"outsider:{one.issue}:{one.login}"
        try:
            self._github.write.comment(one.repository, one.number, body, key)
        except Refused as refusal:
            log.warning("%s#%s: nothing said: %s", one.repository, one.number, refusal)
