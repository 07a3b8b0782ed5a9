"""Describes an agent's dialogs to people, and finds the keys or requests that answer them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

_NUMBER = re.compile(r"\W*(\d+)\W*")
_SIGNS = re.compile(r"[^\w']+")
#: Short answers that people give, each with a pattern of the choices it can mean.
_SHORT_CHOICES = {
    "yes": re.compile(r"(yes|allow|trust)\b(?!.*(always|don't ask|session))"),
    "always": re.compile(r"(.*\balways\b|.*don't ask|.*for this session|all\b)"),
    "no": re.compile(r"(no|reject|deny)\b"),
}
_SHORT_ANSWERS = {
    **dict.fromkeys(("yes", "y", "ok", "allow", "once"), "yes"),
    **dict.fromkeys(("always", "yes always"), "always"),
    **dict.fromkeys(("no", "n", "reject", "deny"), "no"),
}


class AnswerStep(Struct, frozen=True, kw_only=True):
    """One step of an answer: keys and text for the terminal, or a request to the program's port."""

    keys: tuple[str, ...] = ()  #: Names of keys to press first.
    text: str = ""  #: Pasted and submitted afterwards.
    #: Called instead of keys and text; may raise `OSError`.
    request: Callable[[], None] | None = None


class Dialog(Struct, frozen=True, kw_only=True):
    """The dialog that a program shows now."""

    #: Distinguishes the dialog from any that looks different; empty if no dialog is recognised.
    id: str = ""
    state: str = ""  #: Changes with every step of an answer that takes several steps.
    choices: tuple[tuple[str, AnswerStep], ...] = ()  #: Each label with the step that takes it.
    #: Returns the next step of an answer in free text, or None if the text does not fit. The
    #: attribute itself is None if the dialog takes no free text.
    free_text: Callable[[str], AnswerStep | None] | None = None

    def step(self, answer: str) -> AnswerStep | None:
        """Return the next step of giving this answer; None if the dialog does not take it."""
        number = choice_number(answer, [label for label, _ in self.choices])
        if number is not None:
            return self.choices[number - 1][1]
        return self.free_text(answer) if self.free_text is not None else None


def choice_number(answer: str, labels: Sequence[str]) -> int | None:
    """Return the number of the choice that an answer names, from 1; None if it names no single one.

    An answer is the number, the label, or the label's first words, each in full. A word such as
    yes, no or always takes the first choice with that meaning.
    """
    words = _normalised(answer)
    normalised = dict(enumerate(map(_normalised, labels), 1))
    given = _NUMBER.fullmatch(answer)
    for fits in (
        lambda number: given is not None and int(given[1]) == number,
        lambda number: normalised[number] == words,
        lambda number: normalised[number].startswith(f"{words} "),
    ):
        found = [number for number in normalised if fits(number)]
        if len(found) == 1:
            return found[0]
    meant = _SHORT_CHOICES.get(_SHORT_ANSWERS.get(words, ""))
    for number, label in enumerate(labels, 1):
        if meant is not None and meant.match(label.lower()):
            return number
    return None


def _normalised(text: str) -> str:
    """Return lower-case words without punctuation; the curly apostrophes of phones become `'`."""
    return _SIGNS.sub(" ", text.lower().replace("’", "'")).strip()


def numbered_dialog(heading: str, labels: Sequence[str]) -> Dialog:
    """Return a terminal dialog in which a choice is taken by pressing its number."""
    return _terminal_dialog(heading, labels, [(str(n),) for n in range(1, len(labels) + 1)])


def arrow_key_dialog(heading: str, labels: Sequence[str], marked: int) -> Dialog:
    """Return a terminal dialog in which arrow keys and Enter take a choice.

    `marked` is the index of the choice that Enter takes now, counted from 0.
    """
    places = range(len(labels))
    keys = [("Down",) * (n - marked) + ("Up",) * (marked - n) + ("Enter",) for n in places]
    return _terminal_dialog(heading, labels, keys)


def _terminal_dialog(
    heading: str, labels: Sequence[str], keys: Iterable[tuple[str, ...]]
) -> Dialog:
    steps = (AnswerStep(keys=pressed) for pressed in keys)
    choices = tuple(zip(labels, steps, strict=True))
    return Dialog(id="\n".join((heading, *labels)), choices=choices)


def as_question(dialog: Dialog) -> str:
    """Describe a terminal dialog for people in one line, which is empty if none is open."""
    labels = [label for label, _ in dialog.choices]
    heading = dialog.id.removesuffix("\n".join(labels))
    return with_choices(" ".join(heading.split()), labels)


def text_of(pattern: re.Pattern[str], screen: str) -> str:
    """Return group 1 of the pattern's last match on the screen, stripped; empty without a match."""
    return next((found[1] for found in reversed([*pattern.finditer(screen)])), "").strip()


def permission_request(tool: str, arguments: Mapping[str, object]) -> str:
    """Describe for people which tool the agent wants to use, and for what."""
    what = arguments.get("command") or arguments.get("file_path") or arguments.get("url") or ""
    return f"May I use {tool}? {what}".rstrip()


def with_choices(question: str, choices: Iterable[str]) -> str:
    """Append the choices to the question, if there are any: `Which? (one / two)`.

    ` / ` within a choice becomes `/`, which `choice_number` takes for the same choice.
    """
    listed = " / ".join(choice.replace(" / ", "/") for choice in choices)
    return f"{question} ({listed})" if listed else question


def choices_in(question: str) -> Sequence[str]:
    """Return the choices that `with_choices` appended; empty if there are fewer than two."""
    opened = 0
    for place in range(len(question) - 1, -1, -1) if question.endswith(")") else ():
        opened += {")": 1, "(": -1}.get(question[place], 0)
        if not opened:
            listed = question[place + 1 : -1].split(" / ")
            return listed if len(listed) > 1 else ()
    return ()
