"""What agents ask, in words for people, and how they are answered."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

_NUMBER = re.compile(r"\W*(\d+)\W*")
_SIGNS = re.compile(r"[^\w']+")
#: What people say in short, each with how the choice begins that they mean, or what it has in it.
_SHORT = {
    "yes": re.compile(r"(yes|allow|trust)\b(?!.*(always|don't ask|session))"),
    "always": re.compile(r"(.*\balways\b|.*don't ask|.*for this session|all\b)"),
    "no": re.compile(r"(no|reject|deny)\b"),
}
_MEANT = {
    **dict.fromkeys(("yes", "y", "ok", "allow", "once"), "yes"),
    **dict.fromkeys(("always", "yes always"), "always"),
    **dict.fromkeys(("no", "n", "reject", "deny"), "no"),
}


class AnswerStep(Struct, frozen=True, kw_only=True):
    """How one answer is given: at the program's terminal, or at its port."""

    keys: tuple[str, ...] = ()  #: Pressed first, each by its name.
    text: str = ""  #: Pasted and submitted then.
    request: Callable[[], None] | None = None  #: Asked instead; raises `OSError`.


class Choice(Struct, frozen=True, kw_only=True):
    """One of the answers that are offered."""

    number: int
    label: str
    way: AnswerStep


class Dialog(Struct, frozen=True, kw_only=True):
    """What a program asks at this moment, and what it takes for an answer."""

    asks: str = ""  #: Tells it from the next one; empty: none is open that is understood.
    shows: str = ""  #: Where it takes an answer in several steps, another text after each of them.
    choices: tuple[Choice, ...] = ()
    #: How other words are given, or the next step of that; it may refuse them.
    words: Callable[[str], AnswerStep | None] | None = None

    def way(self, answer: str) -> AnswerStep | None:
        """How this answer is given; None: it is no choice, and such words are not taken."""
        ways = {choice.number: choice.way for choice in self.choices}
        number = number_of(answer, {choice.number: choice.label for choice in self.choices})
        if number is not None:
            return ways[number]
        return self.words(answer) if self.words is not None else None


def number_of(answer: str, labels: Mapping[int, str]) -> int | None:
    """The choice that is meant: by a number, its label or its first words, yes, no or always."""
    said = _bare(answer)
    bare = {number: _bare(label) for number, label in labels.items()}
    given = _NUMBER.fullmatch(answer)
    for fits in (
        lambda number: given is not None and int(given[1]) == number,
        lambda number: bare[number] == said,
        lambda number: bare[number].startswith(f"{said} "),
    ):
        found = [number for number in labels if fits(number)]
        if len(found) == 1:
            return found[0]
    meant = _SHORT.get(_MEANT.get(said, ""))
    for number, label in labels.items():
        if meant is not None and meant.match(label.lower()):
            return number
    return None


def on_screen(above: str, labels: Iterable[str]) -> Dialog:
    """A dialog of numbered choices at a terminal, each taken by the key of its number."""
    choices = tuple(
        Choice(number=number, label=label, way=AnswerStep(keys=(str(number),)))
        for number, label in enumerate(labels, 1)
    )
    return Dialog(asks="\n".join((above, *(one.label for one in choices))), choices=choices)


def walked(above: str, labels: Sequence[str], marked: int) -> Dialog:
    """A dialog whose choices have no numbers, taken by walking there from the marked one."""
    ways = [
        ("Down",) * (place - marked) + ("Up",) * (marked - place) + ("Enter",)
        for place in range(len(labels))
    ]
    return Dialog(
        asks="\n".join((above, *labels)),
        choices=tuple(
            Choice(number=number, label=label, way=AnswerStep(keys=keys))
            for number, (label, keys) in enumerate(zip(labels, ways, strict=True), 1)
        ),
    )


def put(dialog: Dialog) -> str:
    """A dialog of a screen in one line, for people; empty where none is open."""
    labels = [choice.label for choice in dialog.choices]
    above = dialog.asks.removesuffix("\n".join(labels))
    return with_choices(" ".join(above.split()), labels)


def _bare(text: str) -> str:
    """Words as they are compared; telephones write another apostrophe."""
    return _SIGNS.sub(" ", text.lower().replace("’", "'")).strip()


def permission(tool: str, given: Mapping[str, object]) -> str:
    """That it asks for leave to use a tool, and for what."""
    what = given.get("command") or given.get("file_path") or given.get("url") or ""
    return f"It asks for permission to use {tool}: {what}".rstrip(": ")


def with_choices(question: str, choices: Iterable[str]) -> str:
    """A question with its choices behind it, where there are any.

    One that has ` / ` in it loses the blanks: as an answer it means the same (see `number_of`).
    """
    listed = " / ".join(choice.replace(" / ", "/") for choice in choices)
    return f"{question} ({listed})" if listed else question


def choices_in(question: str) -> Sequence[str]:
    """The choices that `with_choices` put behind a question; none where there are several."""
    opened = 0
    for place in range(len(question) - 1, -1, -1) if question.endswith(")") else ():
        opened += {")": 1, "(": -1}.get(question[place], 0)
        if not opened:
            listed = question[place + 1 : -1].split(" / ")
            return listed if len(listed) > 1 else ()
    return ()
