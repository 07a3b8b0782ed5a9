"""Questions of a tool that asks people, and how they are answered at a terminal, step by step.

Each step follows from what the screen shows now and from the whole answer, so that one which broke
off in the middle goes on where it stopped.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import msgspec
from msgspec import Struct, field

from runtimes.agents.shared.questions import AnswerStep, Dialog, number_of, with_choices

_MANY = "Several may be taken, with commas between them"
_LINES = "Answer all of them, each in a line of its own"


class _Option(Struct, frozen=True):
    label: str


class Ask(Struct, frozen=True):
    """One question."""

    question: str
    options: tuple[_Option, ...] = ()
    type: str = ""
    placeholder: str = ""  #: What stands where words are wanted and there are none yet.
    multiple: bool = False
    multi_select: bool = field(default=False, name="multiSelect")

    @property
    def labels(self) -> tuple[str, ...]:
        """Its choices; none: it takes any words."""
        return ("Yes", "No") if self.type == "yesno" else tuple(one.label for one in self.options)

    @property
    def many(self) -> bool:
        """Whether several of its choices may be taken."""
        return self.multiple or self.multi_select


class Page(Struct, frozen=True, kw_only=True):
    """What such a tool shows at this moment."""

    at: int | None  #: The place of the question it is at; None: only sending is left.
    shows: str  #: Another text after every step.
    marked: int = 0  #: The choice that Enter takes.
    ticks: dict[int, bool] = {}  #: Which choices are ticked, of those on the screen.
    own: tuple[str, ...] | None = None  #: Pressed before words of one's own; None: it takes none.
    typed: str = ""  #: Words of one's own that were not sent.
    said: tuple[str, ...] = ()  #: The answers it is about to send, where it shows them all.
    on: tuple[str, ...] = ()  #: What is pressed where there is nothing to be chosen any more.


class _Given(Struct, frozen=True):
    questions: tuple[Ask, ...]


def asks_in(given: object) -> Sequence[Ask]:
    """The questions that a tool was given; none where it was given something else."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(given, _Given).questions
    return ()


def questions(given: object) -> str:
    """The questions with their choices, and how to answer them; empty where it asks nothing."""
    asks = asks_in(given)
    lines = [with_choices(ask.question, ask.labels) for ask in asks]
    lines = [f"{line} {_MANY}" if ask.many else line for ask, line in zip(asks, lines, strict=True)]
    return "\n".join((*lines, _LINES) if len(lines) > 1 else lines)


def answers(asks: Sequence[Ask], text: str) -> Sequence[Sequence[str]] | None:
    """What a text answers each question: the labels of choices, or words of one's own.

    Several questions have a line each, several choices stand between commas. None: it is no answer
    to all of them, or has words of one's own where choices are ticked.
    """
    lines = [text] if len(asks) == 1 else [line for line in text.splitlines() if line.strip()]
    found = [_answer(ask, line.strip()) for ask, line in zip(asks, lines, strict=False)]
    return found if all(found) and len(lines) == len(asks) else None


def _answer(ask: Ask, line: str) -> Sequence[str]:
    labels = dict(enumerate(ask.labels, 1))
    if one := number_of(line, labels):
        return (labels[one],)
    if not ask.many:
        return (line,)
    found = [number_of(part.strip(), labels) for part in line.split(",")]
    return tuple(labels[one] for one in found if one) if all(found) else ()


def form(name: str, asks: Sequence[Ask], page: Page) -> Dialog:
    """The dialog of a tool at a terminal; `name` tells this use of it from the next one."""
    return Dialog(
        asks="\n".join((name, *(ask.question for ask in asks))),
        shows=page.shows,
        words=partial(_step, asks, page),
    )


def _step(asks: Sequence[Ask], page: Page, text: str) -> AnswerStep | None:
    """What is done next to give this answer."""
    given = answers(asks, text)
    if given is None:
        return None
    if page.at is None:
        sent = [", ".join(each) for each in given]
        return AnswerStep(keys=page.on) if _same(page.said or sent, sent) else None
    ask, said = asks[page.at], given[page.at]
    wanted = [number for number, label in enumerate(ask.labels, 1) if label in said]
    if not wanted and page.typed:
        return AnswerStep(keys=("Enter",)) if _same([page.typed], said) else None
    if not wanted:
        return None if page.own is None else AnswerStep(keys=page.own, text=said[0])
    if not ask.many:
        return AnswerStep(keys=("Enter",) if page.marked == wanted[0] else (str(wanted[0]),))
    wrong = [str(number) for number, is_on in page.ticks.items() if is_on != (number in wanted)]
    return AnswerStep(keys=tuple(wrong[:1]) or page.on)


def place_of(said: str, asks: Sequence[Ask]) -> int | None:
    """Which question a screen shows, which wraps and adorns it; None: no one of them."""
    found = [place for place, ask in enumerate(asks) if _words(ask.question) == _words(said)]
    return found[0] if len(found) == 1 else None


def _same(shown: Sequence[str], given: Sequence[str]) -> bool:
    """Whether answers on a screen, which wraps them and has an order of its own, are these."""
    one, other = ([sorted("".join(each.split()).split(",")) for each in a] for a in (shown, given))
    return one == other


def _words(text: str) -> str:
    return "".join(filter(str.isalnum, text))
