"""Reads the board and gives commands for `mergewright top`: locally, or by a server's API."""

from pathlib import Path
from threading import Event
from typing import Protocol

from bot.cli import context, submit
from bot.cli.options import PROBLEM, CliError
from bot.cli.remote import RemoteServer
from bot.decide.assignment import caps
from bot.show.board import Board, BoardFilter, board
from bot.show.command_outcome import CommandOutcome
from bot.show.next_action import NextAction
from lifecycle.model.text import plain

_POLL_SECONDS = 0.25


class BoardSource(Protocol):
    """Where the board is read and commands are given. Its methods raise `CliError`."""

    @property
    def where(self) -> str:
        """The data folder or the server's URL, for the screen's first line."""

    def board(self, search: str) -> Board:
        """Read the board; `search` is as in `BoardFilter`."""

    def watch(self, changed: Event, ended: Event) -> None:
        """Set `changed` at once, and whenever something happens in a session.

        Returns after `ended` is set, or the connection has ended.
        """

    def give(self, id: str, action: NextAction) -> str:
        """Give a session an action's command and return what became of it, as a sentence."""

    def url(self, path: str) -> str:
        """Return the URL of a web page from its path, such as `/sessions/widgets-12`."""

    def attach(self, id: str) -> tuple[str, ...]:
        """Return the command that opens a session's terminal."""


class LocalBoard:
    """The board of the database on this machine."""

    def __init__(self, config: Path | None) -> None:
        self._settings, self._redact = context.redacting(config)
        self.where = str(self._settings.data)
        # libtmux looks at standard output when it is imported, which textual then replaces.
        context.runtime(self._settings)

    def board(self, search: str) -> Board:
        with context.store(self._settings) as store:
            return board(store, BoardFilter(search=search), caps(self._settings))

    def watch(self, changed: Event, ended: Event) -> None:
        with context.store(self._settings) as store:
            last = store.history.newest_seq()
            changed.set()
            while not ended.wait(_POLL_SECONDS):
                if (newest := store.history.newest_seq()) != last:
                    last = newest
                    changed.set()

    def give(self, id: str, action: NextAction) -> str:
        with context.store(self._settings, self._redact) as store:
            session = context.session(store, id)
            words = action.command, action.argument, action.head
            outcome = submit.give(self._settings, store, session, *words)
            running = submit.bot_runs(store)
        return _says(outcome, running=running)

    def url(self, path: str) -> str:
        return f"{self._settings.public_url.rstrip('/')}{path}"

    def attach(self, id: str) -> tuple[str, ...]:
        with context.store(self._settings) as store:
            return context.attach(self._settings, context.session(store, id))


class RemoteBoard:
    """The board of a server."""

    def __init__(self, server: RemoteServer) -> None:
        self._server = server
        self.where = server.url

    def board(self, search: str) -> Board:
        return self._server.board(search)

    def watch(self, changed: Event, ended: Event) -> None:
        for _ in self._server.events():
            if ended.is_set():
                return
            changed.set()

    def give(self, id: str, action: NextAction) -> str:
        key = self._server.command(id, action.command, action.argument, action.head)
        return _says(submit.remote_outcome(self._server, key, wait=True), running=True)

    def url(self, path: str) -> str:
        return f"{self._server.url}{path}"

    def attach(self, id: str) -> tuple[str, ...]:
        raise CliError(f"the terminal of {id} is on the server; `o` opens its page", PROBLEM)


def _says(outcome: CommandOutcome, *, running: bool) -> str:
    """Return what became of a command as a sentence. Raises `CliError` if it was refused."""
    if outcome.accepted is False:
        raise CliError(f"{outcome.kind} refused: {plain(outcome.reason)}", PROBLEM)
    if not running:
        return f"{outcome.kind} submitted; no bot is running to apply it"
    if outcome.accepted is None:
        return outcome.reply or f"{outcome.kind} submitted, not applied yet"
    return outcome.reply or f"{outcome.session}: {outcome.kind} done"
