"""What arrives: kept once, then turned into touches and commands. Nothing is done about it here."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from bot.intake.commands import parse
from bot.intake.events import EVENTS
from bot.intake.events.payloads import NewText, ParsedEvent
from bot.store import RIGHTS, Delivery, DeliveryOutcome, NewCommand, RefreshRequest, Store
from lifecycle.model.names import NAME

#: What every comment of the bot's own has in it.
OWN = f"<!-- {NAME}:key="


class Inbox:
    """Takes deliveries in at the web's pace and reads them at the scheduler's."""

    def __init__(
        self,
        store: Store,
        repositories: frozenset[str],
        wake: Callable[[], None],
        lists_bot: Callable[[str, str], bool] = lambda *_: False,
        app_slug: str = "",
        is_me: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`kick` says that there is something to process; it runs on the store's writer thread
        after every commit, so it must only set a flag. `repositories` are `owner/name`; `lists_bot`
        says of one of them whether a bot may ask for something there, as people do; `app_slug` is
        what people call the bot besides its own name; `is_me` says whether a login is the bot's.
        """
        self._store = store
        self._lists_bot = lists_bot
        self._app_slug = app_slug
        self._is_me = is_me
        # GitHub's names are the same in any case; a configured one may be spelled otherwise.
        self._repositories = {name.casefold(): name for name in repositories}
        self._wake = wake

    def accept(self, deliveries: Sequence[Delivery]) -> Future[list[DeliveryOutcome]]:
        """Keep deliveries; the future is done when all are on disk, or holds the store's error."""
        kept = self._store.deliveries.add(deliveries)
        kept.add_done_callback(lambda kept: None if kept.exception() else self._wake())
        return kept

    def process(self) -> int:
        """Read the waiting deliveries, oldest first; returns how many.

        One that cannot be read is kept as failed with its reason, and stops no other. An event
        or a repository that concerns nobody here is settled without effect.
        """
        waiting = self._store.deliveries.waiting()
        for delivery in waiting:
            self._store.deliveries.redact(delivery)
            try:
                refreshes, commands = self.meaning(delivery.event, delivery.body)
            except Exception as problem:  # noqa: BLE001 - one odd payload must not stop the rest
                self._store.deliveries.mark_failed(
                    delivery.id, f"{type(problem).__name__}: {problem}"
                )
                continue
            self._store.deliveries.mark_done(delivery.id, refreshes, commands)
        return len(waiting)

    def meaning(
        self, event: str, body: bytes
    ) -> tuple[tuple[RefreshRequest, ...], tuple[NewCommand, ...]]:
        """Where a delivery says to look, and what people ask for in it; nothing is written down.

        Raises whatever a body that is no such event raises.
        """
        read = EVENTS.get(event)
        parsed = read(body) if read else ParsedEvent()
        if parsed.edited is not None and self._is_ours(parsed.edited):
            return (), ()  # A report that was brought up to date tells us nothing.
        return self._refreshes(parsed), self._commands(parsed.written)

    def _refreshes(self, parsed: ParsedEvent) -> tuple[RefreshRequest, ...]:
        refreshes = tuple(
            RefreshRequest(repository=repository, subject=changed.subject)
            for changed in parsed.changed
            if (repository := self._known(changed.repository, changed.repository_id))
        )
        ours = self._repositories.values() if parsed.access_changed else ()
        return (*(RefreshRequest(repository=name, subject=RIGHTS) for name in ours), *refreshes)

    def _commands(self, comment: NewText | None) -> tuple[NewCommand, ...]:
        if comment is None:
            return ()
        repository = self._known(comment.repository, comment.repository_id)
        if not repository or not self._may_ask(comment, repository):
            return ()
        return tuple(
            NewCommand(
                key=_command_key(comment, repository, line),
                repository=repository,
                number=comment.number,
                kind=found.name,
                actor=comment.author,
                text=found.text,
                at=comment.at,
                comment=comment.id if comment.kind == "comment" else None,
            )
            for line, found in enumerate(parse(comment.body, self._app_slug))
        )

    def _may_ask(self, comment: NewText, repository: str) -> bool:
        """Whether a person wrote it, or a bot that is listed: two that answer each other never end.

        What carries a key of the bot's own is an answer of it, or a copy of one; with a token the
        bot writes in the name of a person.
        """
        if OWN in comment.body:
            return False
        return comment.author_type == "User" or self._lists_bot(repository, comment.author)

    def _is_ours(self, comment: NewText) -> bool:
        """Whether the bot wrote it, and no person to whom its account belongs."""
        return OWN in comment.body and self._is_me(comment.author)

    def _known(self, repository: str, id: int) -> str:
        """A repository as it is configured; empty for one that is none of ours.

        Its number counts, whatever it is called by now, and whoever has taken its name since.
        """
        place = self._store.repositories.get(id)
        if place is not None and place.name.casefold() in self._repositories:
            return self._repositories[place.name.casefold()]
        name = self._repositories.get(repository.casefold(), "")
        return "" if name and id and self._store.repositories.named(name) else name


def _command_key(comment: NewText, repository: str, line: int) -> str:
    # Issues are numbered in each repository, the rest over all of them.
    place = f"{repository}#" if comment.kind == "issue" else ""
    cause = f"{comment.kind}:{place}{comment.id}"
    return cause + (f":{line}" if line else "")
