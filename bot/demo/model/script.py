"""The script language of the scripted model: lines `#do: VERB REST` in a prompt, run in order.

    write PATH TEXT     with the program's own tool; a \\n in TEXT is a new line
    bash COMMAND        with its shell
    read PATH           with its tool that reads
    ask QUESTION        with its tool that asks people
    plan TEXT           with its tool that shows a plan
    tool NAME {json}    with any tool it has
    say TEXT            text before the next tool use, or the final text (default: `Done.`)
    think TEXT          a thought before the next tool use
    sleep SECONDS       wait before the response with the next tool use
    stall SECONDS       wait in the middle of the response with the next tool use
    error STATUS [N]    respond with this HTTP status first, N times (default: 1)
    cut                 close the connection in the middle of a response, once

The last user message with such lines counts. The model keeps no state: it finds the next line from
the conversation, in which one tool result follows for each line that was executed.
"""

import hashlib
import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

USES = ("write", "bash", "read", "ask", "plan", "tool")
_DO = re.compile(r"#do:[ \t]*([a-z]+)[ \t]*([^\n<]*)")


class Turn(Struct, frozen=True):
    """One message of a conversation. A tool's result has a text only in Chat Completions."""

    who: str  #: `system`, `user`, `assistant` or `tool`.
    text: str = ""


class Step(Struct, frozen=True, kw_only=True):
    """One response of the model, with the fault that is injected into it, if any."""

    #: Verbs of `USES`, each with its REST; if empty, the turn ends.
    uses: tuple[tuple[str, str], ...] = ()
    say: str = ""
    think: str = ""
    sleep: float = 0.0
    stall: float = 0.0
    error: int = 0
    errors: int = 0
    cut: bool = False


class Due(Struct, frozen=True, kw_only=True):
    """The next step of a conversation."""

    step: Step
    key: str = ""  #: Identifies the step across repeated requests.


def due(turns: Sequence[Turn], *, at_once: bool = False) -> Due:
    """Return the next step of a conversation.

    `at_once` says that the program has no tools, so one response contains all steps.
    """
    scripts = [place for place, turn in enumerate(turns) if turn.who == "user" and steps(turn.text)]
    if not scripts:
        return Due(step=Step(say="Hello from the scripted model."))
    text, since = turns[scripts[-1]].text, turns[scripts[-1] + 1 :]
    found = [_together(steps(text)), Step(say="Done.")] if at_once else steps(text)
    done = sum(turn.who == ("assistant" if at_once else "tool") for turn in since)
    key = hashlib.sha256(f"{text} {scripts[-1]} {done}".encode()).hexdigest()
    return Due(step=found[min(done, len(found) - 1)], key=key)


def steps(text: str) -> list[Step]:
    """Return the steps of the script in a text, the last of which ends the turn.

    The list is empty if the text has no script.
    """
    found: list[Step] = []
    step = Step()
    for verb, words in _DO.findall(text):
        rest = words.strip()
        match verb:
            case "say":
                step = replace(step, say=rest)
            case "think":
                step = replace(step, think=rest)
            case "sleep":
                step = replace(step, sleep=float(rest))
            case "stall":
                step = replace(step, stall=float(rest))
            case "cut":
                step = replace(step, cut=True)
            case "error":
                status, _, times = rest.partition(" ")
                step = replace(step, error=int(status), errors=int(times or 1))
            case _ if verb in USES:
                found.append(replace(step, uses=((verb, rest),)))
                step = Step()
    if not found and step == Step():
        return []
    return [*found, replace(step, say=step.say or "Done.")]


def _together(found: Sequence[Step]) -> Step:
    """Merge all steps into one, which keeps only the first step's delays and fault."""
    return replace(
        found[0],
        uses=tuple(use for step in found for use in step.uses),
        say="\n".join(step.say for step in found if step.say),
        think="\n".join(step.think for step in found if step.think),
    )
