"""The dialogs of `mergewright top`."""

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

HELP: Final = """\
j k, arrows   next, previous session     g G     first, last
Enter         the next action of the session, as the line below the list says
a             answer the agent's question
t             send the agent a message
s             stop the session, after a confirmation
r             restart the agent, after a confirmation
o             open the session's page in a browser
A             attach to the terminal; leave it with Ctrl-b d
/             filter by a part of the ID, title or branch; Esc shows all
q             quit

Esc closes this."""


class Ask(ModalScreen[str]):
    """Asks for a text; the result is empty if the person gives none."""

    CSS = """
    Ask { align: center middle; }
    Ask > Vertical { width: 76; height: auto; border: round $primary; padding: 0 1; }
    Ask VerticalScroll { height: auto; max-height: 10; }
    Ask #title { text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel")]

    def __init__(self, title: str, question: str) -> None:
        super().__init__()
        self._title = title
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(self._title), id="title")
            if self._question:
                with VerticalScroll(can_focus=False):
                    yield Static(Text(self._question, "yellow"))
            yield Input(placeholder="Enter sends, Esc cancels", compact=True)

    def on_mount(self) -> None:
        """Let the person type."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Return the text."""
        event.stop()
        self.dismiss(event.value.strip())

    def on_input_changed(self, event: Input.Changed) -> None:
        """Stop the event here; otherwise the board would take the text for its filter."""
        event.stop()

    def action_cancel(self) -> None:
        """Return nothing."""
        self.dismiss("")


class Confirm(ModalScreen[bool]):
    """Asks a person to confirm an action; only `y` means yes."""

    CSS = """
    Confirm { align: center middle; }
    Confirm > Static { width: 70; height: auto; border: round $warning; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "agree", "Yes"),
        Binding("n,escape,enter,q", "cancel", "No"),
    ]

    def __init__(self, question: str, consequence: str) -> None:
        super().__init__()
        self._question = question
        self._consequence = consequence

    def compose(self) -> ComposeResult:
        keys = ("\n\ny yes    n no", "bold")
        yield Static(Text.assemble((self._question, "bold"), "\n", self._consequence, keys))

    def action_agree(self) -> None:
        """Return yes."""
        self.dismiss(True)

    def action_cancel(self) -> None:
        """Return no."""
        self.dismiss(False)


class Help(ModalScreen[None]):
    """Shows the keys."""

    CSS = """
    Help { align: center middle; }
    Help > Static { width: 78; height: auto; border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "close")]

    def __init__(self, keys: str) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        yield Static(Text(self._keys))

    def action_close(self) -> None:
        """Close the list of keys."""
        self.dismiss()
