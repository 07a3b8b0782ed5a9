"""Answers the forms that agents' question tools show at a terminal, key press by key press.

Each step is derived from what the screen shows now and from the whole answer, so an interrupted
answer continues where it stopped.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import msgspec
from msgspec import Struct, field

from runtimes.agents.shared.dialogs import AnswerStep, Dialog, choice_number, with_choices
from runtimes.agents.shared.hooks import HookCall

#: Shown in place of a question that cannot be read from the agent's files or port.
UNREADABLE_QUESTION = "a question that cannot be shown here; see the agent's terminal"
_SEVERAL_CHOICES = "Choose one or more, separated by commas"
_SEVERAL_QUESTIONS = "Answer every question, each on its own line"


class _Option(Struct, frozen=True):
    label: str


class Question(Struct, frozen=True):
    """A question in the arguments of a question tool. Each program sets some of the fields."""

    question: str
    options: tuple[_Option, ...] = ()
    type: str = ""
    placeholder: str = ""  #: What an empty text field shows.
    multiple: bool = False
    multi_select: bool = field(default=False, name="multiSelect")

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the choices; empty if the question takes only free text."""
        return ("Yes", "No") if self.type == "yesno" else tuple(one.label for one in self.options)

    @property
    def takes_several(self) -> bool:
        """Whether an answer may name several of its choices."""
        return self.multiple or self.multi_select


class FormScreen(Struct, frozen=True, kw_only=True):
    """What a question tool's form shows now."""

    at: int | None  #: Index of the question shown; if None, the answers are about to be sent.
    text: str  #: The form's text, which changes with every step.
    marked: int = 0  #: The choice that Enter takes, from 1; if 0, none.
    ticks: dict[int, bool] = {}  #: Whether each choice on the screen is ticked, by its number.
    own: tuple[str, ...] | None = None  #: Keys to press before free text; None if it is not taken.
    typed: str = ""  #: Free text that was typed into its field and not sent.
    answers: tuple[str, ...] = ()  #: The answers about to be sent, if the form shows them.
    proceed: tuple[str, ...] = ()  #: Keys that confirm when nothing is left to choose.


class _Arguments(Struct, frozen=True):
    questions: tuple[Question, ...]


def parse_questions(arguments: object) -> Sequence[Question]:
    """Return the questions in a tool's arguments; empty if none can be read."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(arguments, _Arguments).questions
    return ()


def describe_questions(arguments: object) -> str:
    """Describe for people the questions in a tool's arguments, and how to answer them.

    The description includes the choices. It is empty if the arguments have no questions.
    """
    asked = parse_questions(arguments)
    lines = [
        f"{line} {_SEVERAL_CHOICES}" if question.takes_several else line
        for question in asked
        for line in (with_choices(question.question, question.labels),)
    ]
    return "\n".join((*lines, _SEVERAL_QUESTIONS) if len(lines) > 1 else lines)


def parse_answers(questions: Sequence[Question], text: str) -> Sequence[Sequence[str]] | None:
    """Split a text into an answer for each question: labels of choices, or free text.

    A single question gets the whole text, several get a non-blank line each. Several choices are
    separated by commas. Returns None if the number of lines differs from that of the questions, or
    if a question gets free text where choices have to be ticked.
    """
    lines = [text] if len(questions) == 1 else [line for line in text.splitlines() if line.strip()]
    found = [_answer(one, line.strip()) for one, line in zip(questions, lines, strict=False)]
    return found if all(found) and len(lines) == len(questions) else None


def _answer(question: Question, line: str) -> Sequence[str]:
    labels = question.labels
    if one := choice_number(line, labels):
        return (labels[one - 1],)
    if not question.takes_several:
        return (line,)
    found = [choice_number(part.strip(), labels) for part in line.split(",")]
    return tuple(labels[one - 1] for one in found if one) if all(found) else ()


def asked_form(
    asked: HookCall | None, parse: Callable[[Sequence[Question]], FormScreen | None]
) -> Dialog:
    """Return the dialog of the form that a question tool shows; empty if none is recognised.

    `asked` is the hook call of the last tool call, or None. `parse` gets the questions in that tool
    call's arguments and returns the form on the screen, or None if no form shows these questions.
    """
    questions = parse_questions(asked.hook.tool_input) if asked else ()
    form = parse(questions)
    if asked is None or form is None:
        return Dialog()
    call = f"{asked.time} {asked.hook.tool_use_id}"
    return Dialog(
        id="\n".join((call, *(one.question for one in questions))),
        state=form.text,
        free_text=partial(_next_step, questions, form),
    )


def _next_step(questions: Sequence[Question], screen: FormScreen, text: str) -> AnswerStep | None:
    answers = parse_answers(questions, text)
    if answers is None:
        return None
    if screen.at is None:
        sent = [", ".join(each) for each in answers]
        return AnswerStep(keys=screen.proceed) if _same(screen.answers or sent, sent) else None
    question, answer = questions[screen.at], answers[screen.at]
    wanted = [number for number, label in enumerate(question.labels, 1) if label in answer]
    if not wanted and screen.typed:
        return AnswerStep(keys=("Enter",)) if _same([screen.typed], answer) else None
    if not wanted:
        return None if screen.own is None else AnswerStep(keys=screen.own, text=answer[0])
    if not question.takes_several:
        return AnswerStep(keys=("Enter",) if screen.marked == wanted[0] else (str(wanted[0]),))
    wrong = [str(number) for number, is_on in screen.ticks.items() if is_on != (number in wanted)]
    return AnswerStep(keys=tuple(wrong[:1]) or screen.proceed)


def shown_question(shown: str, questions: Sequence[Question]) -> int | None:
    """Return the index of the question with the text `shown`; None if none or several match.

    Only letters and digits are compared, because screens wrap and decorate the text.
    """
    found = [
        place for place, one in enumerate(questions) if _letters(one.question) == _letters(shown)
    ]
    return found[0] if len(found) == 1 else None


def _same(shown: Sequence[str], given: Sequence[str]) -> bool:
    """Whether the answers on the screen are those given, ignoring spaces and the choices' order."""
    one, other = ([sorted("".join(each.split()).split(",")) for each in a] for a in (shown, given))
    return one == other


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))
