"""Stores each webhook delivery once, then derives refresh requests and commands from it."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future

from bot.github.comment_markers import KEY
from bot.intake.changes import NewText, ParsedEvent, RepositoryPayload
from bot.intake.commands import parse
from bot.intake.events import parse_event
from bot.intake.relevance import Relevance
from bot.intake.salvage import UNDECODABLE, salvage
from bot.store import (
    ACCESS,
    Delivery,
    DeliveryOutcome,
    Ignored,
    NewCommand,
    ProcessedDelivery,
    RefreshRequest,
    Store,
)
from bot.system.log import log_fields
from bot.system.tracing import hand_on, note, span
from lifecycle.model.accounts import BOT

log = logging.getLogger(__name__)

_INCIDENT = "undecoded-deliveries"
#: How many deliveries are processed before one transaction marks them as done. The transaction
#: takes longer than the processing.
_BATCH = 200
#: The beginning of the hidden marker in every comment of the bot.
OWN_MARKER = f"<!-- {KEY}"


class Inbox:
    """Stores deliveries as they arrive; a worker processes them later."""

    def __init__(
        self,
        store: Store,
        repositories: Iterable[str],
        wake: Callable[[], None],
        is_listed: Callable[[str, str], bool] = lambda *_: False,
        app_slug: str = "",
        is_me: Callable[[str], bool] = lambda _: False,
        triggers: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """Accept deliveries about these `repositories`, given by their configured names.

        `wake` is called on the store's writer thread after every commit, so it may only set a flag.
        `is_listed(repository, login)` says whether a bot may give commands. `app_slug` is the App's
        slug, by which people may mention the bot; it is empty if there is no App. `is_me(login)`
        says whether the login is the bot's. `triggers` is as in `Relevance`.
        """
        self._store = store
        self._is_listed = is_listed
        self._app_slug = app_slug
        self._is_me = is_me
        self._counted = False
        self._wake = wake
        self.use(repositories, triggers or {})

    def use(self, repositories: Iterable[str], triggers: Mapping[str, Collection[str]]) -> None:
        """Replace the configured names of the repositories, and the triggers of agents in each."""
        self._relevance = Relevance(self._store.sessions, triggers)
        # GitHub ignores the case of names, so the configuration may spell them differently.
        self._repositories = {name.casefold(): name for name in repositories}

    def accept(self, deliveries: Sequence[Delivery]) -> Future[list[DeliveryOutcome]]:
        """Store deliveries. The future resolves once all are on disk, or raises a store failure."""
        kept = self._store.deliveries.add(deliveries)
        kept.add_done_callback(lambda kept: None if kept.exception() else self._wake())
        return kept

    def process(self) -> int:
        """Process up to 200 waiting deliveries, oldest first; return how many.

        A delivery that cannot be processed is marked as failed, and a refresh is requested of the
        subjects it names. An incident counts the failed deliveries. Unknown events and repositories
        are ignored.
        """
        waiting = self._store.deliveries.waiting(_BATCH)
        done = list[ProcessedDelivery]()
        for delivery in waiting:
            self._store.deliveries.redact(delivery)
            about = {"delivery": delivery.id, "event": delivery.event}
            with log_fields(**about), span("delivery", **about):
                try:
                    parsed = parse_event(delivery.event, delivery.body)
                    refreshes, commands = self._effects(parsed)
                    ignored = "" if refreshes or commands else self._why_ignored(parsed)
                    repository = self._repository(parsed)
                except Exception as problem:  # noqa: BLE001 - a malformed payload must not stop the rest
                    note(error=type(problem).__name__)
                    self._fail(delivery, problem)
                    continue
                hand_on(refresh.name for refresh in refreshes)
                hand_on(command.key for command in commands)
            done.append(ProcessedDelivery(delivery.id, refreshes, commands, repository, ignored))
        self._store.deliveries.mark_all_done(done)
        if waiting or not self._counted:
            self._count_failed()
        return len(waiting)

    def _fail(self, delivery: Delivery, problem: Exception) -> None:
        name, error = delivery.event, f"{type(problem).__name__}: {problem}"
        if isinstance(problem, UNDECODABLE):
            log.error("delivery %s (%s) could not be decoded: %s", delivery.id, name, error)
        else:
            log.exception("delivery %s (%s) could not be processed", delivery.id, name)
        refreshes = self._refreshes(ParsedEvent(changed=salvage(delivery.body)))
        self._store.deliveries.mark_failed(delivery.id, error, refreshes)

    def _count_failed(self) -> None:
        """Open or update the incident about failed deliveries; close it if there are none."""
        count, now = self._store.deliveries.failed_count(), self._store.clock()
        if count:
            (last,) = self._store.deliveries.failed(limit=1)
            many = "1 webhook delivery" if count == 1 else f"{count} webhook deliveries"
            self._store.incidents.report(
                _INCIDENT,
                f"{many} could not be processed, the last is an event `{last.event}`"
                f" ({last.error}). The issues and pull requests they name were read again; commands"
                " in them were not applied. `mergewright deliveries` lists them; upgrade"
                " Mergewright, then run `mergewright deliveries --retry`",
                now,
            )
        else:
            self._store.incidents.clear(_INCIDENT, now)
        self._counted = True

    def interpret(
        self, event: str, body: bytes
    ) -> tuple[tuple[RefreshRequest, ...], tuple[NewCommand, ...]]:
        """Return the refresh requests and commands of a delivery; record nothing.

        Raises the exceptions of `parse_event` if the body is not a payload of the event.
        """
        return self._effects(parse_event(event, body))

    def why_ignored(self, event: str, body: bytes) -> Ignored:
        """Return why a delivery has no effects. Call it if `interpret` returns none.

        Raises the exceptions of `interpret`.
        """
        return self._why_ignored(parse_event(event, body))

    def _effects(
        self, parsed: ParsedEvent
    ) -> tuple[tuple[RefreshRequest, ...], tuple[NewCommand, ...]]:
        if self._is_own(parsed):
            return (), ()  # The bot itself wrote the comment or updated the report.
        return self._refreshes(parsed), self._commands(parsed.written)

    def _why_ignored(self, parsed: ParsedEvent) -> Ignored:
        if not parsed.changed:
            return Ignored.EVENT
        if self._is_own(parsed):
            return Ignored.OWN
        known = next(filter(None, (self._known(one.repository) for one in parsed.changed)), "")
        if not known:
            return Ignored.REPOSITORY
        text = parsed.written
        if text is not None and not self._may_command(text, known):
            return Ignored.BOT
        return Ignored.SESSION

    def _repository(self, parsed: ParsedEvent) -> str:
        """Return the repository that an event names; empty if it names none or several."""
        named = {one.repository for one in parsed.changed}
        if len(named) != 1:
            return ""
        (repository,) = named
        return self._known(repository) or repository.full_name

    def _is_own(self, parsed: ParsedEvent) -> bool:
        comment = parsed.edited or parsed.written
        return comment is not None and comment.kind == "comment" and self._is_ours(comment)

    def _refreshes(self, parsed: ParsedEvent) -> tuple[RefreshRequest, ...]:
        refreshes = tuple(
            RefreshRequest(repository=repository, subject=subject)
            for changed in parsed.changed
            if (repository := self._known(changed.repository))
            for subject in self._relevance.refreshes(repository, changed)
        )
        # At least one request, because the repository may be the first one.
        ours = (self._repositories.values() or ("",)) if parsed.access_changed else ()
        return (*(RefreshRequest(repository=name, subject=ACCESS) for name in ours), *refreshes)

    def _commands(self, comment: NewText | None) -> tuple[NewCommand, ...]:
        if comment is None:
            return ()
        repository = self._known(comment.repository)
        if not repository or not self._may_command(comment, repository):
            return ()
        return tuple(
            NewCommand(
                key=_command_key(comment, repository, line),
                repository=repository,
                number=comment.number,
                kind=found.name,
                actor=comment.author,
                text=found.text,
                addressee=found.session,
                at=comment.at,
                comment=comment.id if comment.kind == "comment" else None,
            )
            for line, found in enumerate(parse(comment.body, self._app_slug))
        )

    def _may_command(self, comment: NewText, repository: str) -> bool:
        """Whether a text may contain commands: if its author is a person, or a bot that is listed.

        People's permissions are checked later. Texts of this bot do not count, because it would
        answer itself; they are recognised by their marker, because with a token the bot writes from
        the account of the token's owner.
        """
        if OWN_MARKER in comment.body:
            return False
        if comment.author_type == BOT:
            return self._is_listed(repository, comment.author)
        return comment.author_type == "User"

    def _is_ours(self, comment: NewText) -> bool:
        """Whether the bot wrote the comment, and not the person who owns the bot's account."""
        return OWN_MARKER in comment.body and self._is_me(comment.author)

    def _known(self, repository: RepositoryPayload) -> str:
        """Return the configured name of a repository; empty if it is not configured.

        The repository is found by its numeric ID, because another repository may have taken the old
        name of a renamed one. The name counts only if the payload has no ID, or if the bot has not
        recorded any ID for this name.
        """
        if configured := self._configured(repository.id):
            return configured
        name = self._repositories.get(repository.full_name.casefold(), "")
        if not name or not repository.id or self._store.repositories.named(name) is None:
            return name
        # Another thread may have recorded the ID between the two reads.
        return self._configured(repository.id)

    def _configured(self, id: int) -> str:
        """Return the configured name of the repository with this ID; empty if there is none."""
        place = self._store.repositories.get(id)
        return self._repositories.get(place.name.casefold(), "") if place else ""


def _command_key(comment: NewText, repository: str, line: int) -> str:
    # Issue numbers are unique in one repository, ids of comments and reviews in all of GitHub.
    place = f"{repository}#" if comment.kind == "issue" else ""
    cause = f"{comment.kind}:{place}{comment.id}"
    return cause + (f":{line}" if line else "")
