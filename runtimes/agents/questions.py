"""What agents ask, in words for people, and how they are answered."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

_NUMBER = re.compile(r"\W*(\d+)\W*")
_SIGNS = re.compile(r"[^\w']+")
#: What people say in short, each with how the choice begins that they mean, or what it has in it.
_SHORT = {
    "yes": re.compile(r"(yes|allow|trust)\b(?!.*(always|don't ask|session))"),
    "always": re.compile(r"(.*\balways allow|.*\balways\b|.*don't ask|.*for this session|all\b)"),
    "no": re.compile(r"(no|reject|deny)\b"),
}
_MEANT = {
    **dict.fromkeys(("yes", "y", "ok", "allow", "once"), "yes"),
    **dict.fromkeys(("always", "yes always"), "always"),
    **dict.fromkeys(("no", "n", "reject", "deny"), "no"),
}


class Way(Struct, frozen=True, kw_only=True):
    """How one answer is given: at the program's terminal, or at its port."""

    keys: tuple[str, ...] = ()  #: Pressed first, each by its name.
    text: str = ""  #: Pasted and submitted then.
    request: Callable[[], None] | None = None  #: Asked instead; raises `OSError`.


class Choice(Struct, frozen=True, kw_only=True):
    """One of the answers that are offered."""

    number: int
    label: str
    way: Way


class Dialog(Struct, frozen=True, kw_only=True):
    """What a program asks at this moment, and what it takes for an answer."""

    asks: str = ""  #: Tells it from the next one; empty: none is open that is understood.
    choices: tuple[Choice, ...] = ()
    words: Callable[[str], Way] | None = None  #: How words of one's own are given, if it takes any.

    def way(self, answer: str) -> Way | None:
        """How this answer is given: a number, a choice or its first words, yes, no or always.

        None: it is none of these, and words of one's own are not taken.
        """
        said = _bare(answer)
        labels = {choice.label: _bare(choice.label) for choice in self.choices}
        number = _NUMBER.fullmatch(answer)
        for fits in (
            lambda one: number is not None and int(number[1]) == one.number,
            lambda one: labels[one.label] == said,
            lambda one: bool(said) and labels[one.label].startswith(f"{said} "),
        ):
            found = [one for one in self.choices if fits(one)]
            if len(found) == 1:
                return found[0].way
        meant = _SHORT.get(_MEANT.get(said, ""))
        for one in self.choices:
            if meant is not None and meant.match(one.label.lower()):
                return one.way
        return self.words(answer) if self.words is not None else None


def on_screen(above: str, labels: Iterable[str], own: str = "") -> Dialog:
    """A dialog of numbered choices at a terminal, each taken by the key of its number.

    `own`: the label of the one for words of one's own, which are typed then.
    """
    keys = {label: (str(number),) for number, label in enumerate(labels, 1)}
    return Dialog(
        asks="\n".join((above, *keys)),
        choices=tuple(
            Choice(number=int(*pressed), label=label, way=Way(keys=pressed))
            for label, pressed in keys.items()
            if label != own
        ),
        words=(lambda text: Way(keys=keys[own], text=text)) if own in keys else None,
    )


def _bare(text: str) -> str:
    """Words as they are compared."""
    return _SIGNS.sub(" ", text.lower()).strip()


class _Option(Struct, frozen=True):
    label: str


class Ask(Struct, frozen=True):
    """One question of a tool that asks people."""

    question: str
    options: tuple[_Option, ...] = ()


def permission(tool: str, given: Mapping[str, object]) -> str:
    """That it asks for leave to use a tool, and for what."""
    what = given.get("command") or given.get("file_path") or given.get("url") or ""
    return f"It asks for permission to use {tool}: {what}".rstrip(": ")


def questions(given: object) -> str:
    """Its questions, each with its choices; empty where they are something else."""
    return " ".join(with_choices(ask.question, labels(ask)) for ask in asks_in(given))


def asks_in(given: object) -> Sequence[Ask]:
    """Its questions; none where they are something else."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(given, list[Ask])
    return ()


def labels(ask: Ask) -> Sequence[str]:
    """The choices of a question."""
    return [option.label for option in ask.options]


def with_choices(question: str, choices: Iterable[str]) -> str:
    """A question with its choices behind it, where there are any."""
    listed = " / ".join(choices)
    return f"{question} ({listed})" if listed else question
