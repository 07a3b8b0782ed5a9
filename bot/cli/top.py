"""Implements `mergewright top`: the board in a terminal, updated as things happen."""

import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from bot.cli.options import CliError
from bot.cli.screens import age, color
from bot.cli.top_dialogs import HELP, Ask, Confirm, Help
from bot.cli.top_source import BoardSource
from bot.show.board import Board, BoardGroup, Card
from bot.show.next_action import NextAction
from bot.text.next_action import ANSWER, BUTTONS, MESSAGE
from bot.text.page_text import sentence
from lifecycle.model.status import status_words
from lifecycle.read.sentences import person

#: The board is read again after this time even if nothing is known to have happened.
_REFRESH_SECONDS = 15.0
#: The pause after a failure.
_RETRY_SECONDS = 3.0
#: Events that follow each other within this time are read together.
_TOGETHER_SECONDS = 0.1
_ID, _STATUS, _AGE, _PULLS = 14, 20, 4, 5
_EMPTY: Final = "No sessions yet. Label an issue, or open one with `mergewright spawn`."


class BoardRead(Message):
    """The board has been read."""

    def __init__(self, board: Board) -> None:
        super().__init__()
        self.board = board


class BoardFailed(Message):
    """The board cannot be read."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self.why = why


class CommandDone(Message):
    """A command has been given or has failed; `says` is the result in words."""

    def __init__(self, says: str, *, refused: bool = False) -> None:
        super().__init__()
        self.says = says
        self.refused = refused


class Sessions(OptionList):
    """The sessions in their groups."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Down", show=False),
        Binding("k", "cursor_up", "Up", show=False),
        Binding("g", "first", "First", show=False),
        Binding("G", "last", "Last", show=False),
    ]

    def show(self, groups: Sequence[BoardGroup]) -> None:
        """Replace the content; highlight the same session, or else the one now in its place."""
        before, place = self.chosen, self.highlighted
        options = list(_options(groups))
        self.set_options(options)
        ids = [one.id for one in options]
        if before and before in ids:
            self.highlighted = ids.index(before)
        elif options:
            self.highlighted = min(place or 0, len(options) - 1)
            if self.chosen is None:  # A heading.
                self.action_cursor_down()

    @property
    def chosen(self) -> str | None:
        """The ID of the highlighted session, or None."""
        option = self.highlighted_option
        return option.id if option else None


class Top(App[None]):
    """The terminal application that shows the board."""

    TITLE = "Mergewright"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; }
    #notice { height: auto; max-height: 3; color: $text-error; display: none; }
    Sessions {
        height: 1fr; border: none; padding: 0; background: transparent;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    #filter { display: none; border: none; height: 1; padding: 0; }
    #details { height: auto; min-height: 3; max-height: 9; border-top: solid $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "answer", "Answer"),
        Binding("t", "tell", "Tell"),
        Binding("s", "command('stop')", "Stop"),
        Binding("r", "command('restart')", "Restart"),
        Binding("o", "open", "Open"),
        Binding("A", "attach", "Attach"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("escape", "clear_filter", "All", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, source: BoardSource) -> None:
        super().__init__()
        self.theme = "ansi-dark"  # The terminal's own colors.
        self._source = source
        self._cards: dict[str, Card] = {}
        self._search = ""
        self._changed = Event()
        self._ended = Event()

    def compose(self) -> ComposeResult:
        yield Static(Text(f"Mergewright  {self._source.where}"), id="head")
        yield Static(id="notice")
        yield Sessions()
        yield Input(placeholder="ID, title or branch; Esc shows all", id="filter")
        yield Static(id="details")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Start the daemon threads that watch for changes and read the board."""
        self.query_one(Sessions).focus()
        for work in (self._watch, self._read):
            Thread(target=work, daemon=True).start()

    def on_unmount(self) -> None:
        """Let the threads end."""
        self._ended.set()
        self._changed.set()

    def _watch(self) -> None:
        while not self._ended.is_set():
            # Reading the board fails too, and says why. RuntimeError: the connections were closed.
            with suppress(CliError, RuntimeError):
                self._source.watch(self._changed, self._ended)
            self._ended.wait(_RETRY_SECONDS)

    def _read(self) -> None:
        while not self._ended.is_set():
            self._changed.clear()
            wait = _REFRESH_SECONDS
            try:
                self.post_message(BoardRead(self._source.board(self._search)))
            except CliError as failure:
                self.post_message(BoardFailed(str(failure)))
                wait = _RETRY_SECONDS
            except RuntimeError:  # The connections were closed in between.
                if not self._ended.is_set():
                    raise
            self._changed.wait(wait)
            self._ended.wait(_TOGETHER_SECONDS)

    def on_board_read(self, message: BoardRead) -> None:
        """Show a new board, unless it is for an earlier search."""
        board = message.board
        notices = self.query("#notice")
        if board.filter.search != self._search or not notices:  # None: the program is ending.
            return
        notices.first().display = False
        self._cards = {card.row.id: card for group in board.groups for card in group.cards}
        waiting = board.groups[0].count
        head = Text("Mergewright", "bold", no_wrap=True, overflow="ellipsis")
        counted = f"  {board.total} {'session' if board.total == 1 else 'sessions'}"
        head.append(
            f"{counted}, {waiting} {'needs' if waiting == 1 else 'need'} you"
            if waiting
            else counted,
            "not bold",
        )
        if self._search:
            head.append(f"  filter: {self._search}", "yellow")
        head.append(f"  {self._source.where}", "dim")  # Last, because it may be long.
        self.query_one("#head", Static).update(head)
        self.query_one(Sessions).show([group for group in board.groups if group.cards])
        self._show_details()

    def on_board_failed(self, message: BoardFailed) -> None:
        """Say that the board shown may be out of date."""
        for notice in self.query("#notice").results(Static):
            notice.update(Text(f"Not up to date: {message.why}"))
            notice.display = True

    def on_command_done(self, message: CommandDone) -> None:
        """Say what became of a command."""
        self.notify(
            message.says,
            severity="error" if message.refused else "information",
            markup=False,
            timeout=8,
        )

    def on_option_list_option_highlighted(self) -> None:
        """Show the details of the session that is highlighted now."""
        self._show_details()

    def _show_details(self) -> None:
        card = self._card()
        none = Text("No sessions match." if self._search else _EMPTY, "dim")
        self.query_one("#details", Static).update(_details(card) if card else none)

    def _card(self) -> Card | None:
        return self._cards.get(self.query_one(Sessions).chosen or "")

    def on_option_list_option_selected(self) -> None:
        """Do the next action that the details of the session show."""
        if card := self._card():
            self._do(card, card.next)

    def _do(self, card: Card, action: NextAction) -> None:
        if action.command:
            self._give(card.row.id, action)
        elif action.label in (ANSWER, MESSAGE):
            self._ask(card, "answer" if action.label == ANSWER else "tell")
        elif action.url.startswith("/"):
            self.action_attach()
        elif action.url:
            self._open(action.url)
        else:
            self.notify(action.text, markup=False)

    def _give(self, id: str, action: NextAction) -> None:
        """Give a command, after a confirmation if `action` wants one."""

        def confirmed(agreed: bool | None) -> None:
            if agreed:
                self.notify(f"{id}: {action.command} ...", markup=False, timeout=2)
                self._in_background(lambda: self._source.give(id, action))

        if action.confirm:
            self.push_screen(Confirm(f"{action.label} {id}?", action.confirm), confirmed)
        else:
            confirmed(True)

    def _ask(self, card: Card, command: str) -> None:
        """Ask the person for a text, then give a command with it."""
        row, words = card.row, BUTTONS[command]

        def written(text: str | None) -> None:
            if text:
                action = NextAction(text="", label=words.label, command=command, argument=text)
                self._give(row.id, action)

        question = row.agent_info.question if command == "answer" else ""
        title = f"{'Answer to' if command == 'answer' else 'Message to the agent of'} {row.id}"
        self.push_screen(Ask(title, question), written)

    def _in_background(self, act: Callable[[], str]) -> None:
        def work() -> None:
            try:
                self.post_message(CommandDone(act()))
            except CliError as failure:
                self.post_message(CommandDone(str(failure), refused=True))
            self._changed.set()

        Thread(target=work, daemon=True).start()

    def action_answer(self) -> None:
        """Answer the agent's question."""
        if card := self._card():
            self._ask(card, "answer")

    def action_tell(self) -> None:
        """Send the agent a message."""
        if card := self._card():
            self._ask(card, "tell")

    def action_command(self, command: str) -> None:
        """Give a command without a text."""
        if card := self._card():
            words = BUTTONS[command]
            action = NextAction(text="", label=words.label, command=command, confirm=words.confirm)
            self._give(card.row.id, action)

    def action_open(self) -> None:
        """Open the session's page in a browser."""
        if card := self._card():
            self._open(self._source.url(f"/sessions/{card.row.id}"))

    def _open(self, url: str) -> None:
        self.open_url(url)
        self.notify(url, title="Opened in the browser", markup=False)

    def action_attach(self) -> None:
        """Open the session's terminal; the board comes back when the person leaves it."""
        card = self._card()
        if card is None:
            return
        try:
            command = self._source.attach(card.row.id)
        except CliError as failure:
            self.notify(str(failure), severity="warning", markup=False)
            return
        with self.suspend():
            ended = subprocess.run(command, check=False)
        if ended.returncode:
            self.notify(
                f"the terminal of {card.row.id} cannot be opened: `mergewright attach` says why",
                severity="error",
            )
        self._changed.set()

    def action_filter(self) -> None:
        """Ask for a part of an ID, title or branch, or the number of an issue or pull request."""
        field = self.query_one("#filter", Input)
        field.display = True
        self.set_focus(field)  # At once: the next key belongs to it.

    def action_clear_filter(self) -> None:
        """Show all sessions."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self.query_one(Sessions).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the person types."""
        self._search = event.value.strip()
        self._changed.set()

    def on_input_submitted(self) -> None:
        """Go back to the list, which stays filtered."""
        self.query_one("#filter").display = False
        self.query_one(Sessions).focus()

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Help(HELP))


def _options(groups: Iterable[BoardGroup]) -> Iterable[Option]:
    for group in groups:
        more = f" of {group.count}" if group.count > len(group.cards) else ""
        yield Option(Text(f"{group.title} ({len(group.cards)}{more})", "bold"), disabled=True)
        for card in group.cards:
            yield Option(_line(card), id=card.row.id)


def _line(card: Card) -> Text:
    row = card.row
    pulls = " ".join(f"#{pull.number}" for pull in row.pulls if pull.state in ("open", "draft"))
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"  {row.id:<{_ID}} ")
    line.append(f"{status_words(row.status):<{_STATUS}} ", color(row.status))
    line.append(f"{age(row.since):>{_AGE}} {pulls:<{_PULLS}} {row.title}")
    return line


def _details(card: Card) -> Text:
    """Return the details of a session: title, reason, question, then what to do next."""
    row, action = card.row, card.next
    text = Text.assemble((row.title, "bold"), "\n", sentence(row.because))
    if row.agent_info.question:
        text.append(f"\n{row.agent_info.question}", "yellow")
    text.append(f"\n{action.text}")
    if action.label:
        text.append(f"  Enter: {action.label}", "bold")
    if row.blockers:
        text.append(f"\nmerge blocked by: {'; '.join(row.blockers)}", "dim")
    facts = [
        *(f"#{pull.number} {_checks(pull.checks)}" for pull in row.pulls),
        row.agent or row.agent_type,
        f"for {person(row.requester)}" if row.requester else "",
        f"${row.agent_info.cost_usd:.2f}" if row.agent_info.cost_usd else "",
        f"position {row.place.position} in the queue" if row.place else "",
    ]
    return text.append(f"\n{'  '.join(filter(None, facts))}", "dim")


def _checks(checks: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in checks.items()) or "no checks"
