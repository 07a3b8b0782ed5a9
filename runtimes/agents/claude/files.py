"""Where Claude Code keeps what it says of itself, and what of it is used.

It keeps a status file while it lives (`sessions/PID.json`: `idle`, `busy`, `waiting`, or `shell`:
idle, while a command of its own runs on in the background), appends everything said and done to a
transcript (`projects/*/ID.jsonl`), calls hooks, which append their payloads to the run's spool, and
a status line, whose first and last input are kept in the run's folder. Activity comes from the
first, words and tokens from the next two, costs from the last.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from lifecycle.model.facts import Usage
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import Count, Dollars, Seconds, opened, read_text, understood
from runtimes.agents.shared.forms import Ask, Page, asks_in, form, place_of
from runtimes.agents.shared.hooks import Hook, last
from runtimes.agents.shared.questions import Dialog, on_screen, walked

_CHOICE = re.compile(r"^ *(❯ )?(\d)\. (.+?) *$", re.MULTILINE)
_RULE = re.compile(r"─{20,}")
#: The box for the next message, between two rules.
_BOX = re.compile(r"^─{20,}[^\n]*\n❯[ \u00a0]?((?:(?!─{20,})[^\n]*\n)*?)─{20,}", re.MULTILINE)
#: Above its questions, behind a rule.
_HEADINGS = re.compile(r"─{20,}\n(?:←  | )[☐☒] ")
#: So begins what it shows in an empty box.
_PROPOSES = re.compile(r'Try "|Resend |Once fixed, resend|Run /rewind|Press (up|Enter) to ')
#: The choices of its first questions, which it does not number, and the foot.
_LISTED = re.compile(r"((?:^ *(?:❯ )?\S.*\n)+)\n* *Enter to confirm · Esc to cancel", re.MULTILINE)
_MARK = "❯ "
#: What it shows of an error that it is about to get over: `✻ 429 ... · retrying in 8s · ...`.
_RETRIES = re.compile(r"^\S (.+?) · retrying\b.* · attempt ", re.MULTILINE)
#: The line of an answer, below its question, before all of them are sent.
_REVIEWED = re.compile(r"^ +→ (.*(?:\n(?! +● ).+)*)", re.MULTILINE)
#: The choice of its questions that is none of them.
_OWN_WORDS = "Type something."
_FIRST_LINES = 20  #: At the latest the first prompt tells its time.


class Status(Struct, frozen=True, rename="camel"):
    """`sessions/PID.json`."""

    pid: int
    session_id: str
    proc_start: str
    status: str = ""
    waiting_for: str = ""
    status_updated_at: Annotated[float, Meta(ge=0, le=4e12)] = 0.0  #: Milliseconds.


class Payload(Struct, frozen=True):
    """What a hook is given."""

    session_id: str
    hook_event_name: str
    tool_name: str = ""
    tool_input: dict[str, object] = {}
    last_assistant_message: str = ""
    error: str = ""


class Tokens(Struct, frozen=True):
    """What one answer of the model used; it is repeated with every part of the answer."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_creation_input_tokens: Count = 0
    cache_read_input_tokens: Count = 0


class Message(Struct, frozen=True):
    """What was said, by whom and at what expense."""

    id: str = ""
    model: str = ""
    content: str | list[dict[str, object]] = ""
    usage: Tokens | None = None


class Record(Struct, frozen=True, rename="camel"):
    """One line of the transcript."""

    type: str
    timestamp: Annotated[datetime, Meta(tz=True)] | None = None
    message: Message | None = None
    is_api_error_message: bool = False
    is_meta: bool = False  #: Whether the program itself put it in.
    prompt_source: str = ""  #: Of a prompt: `system` where nobody wrote it.
    error: object = ""  #: A word beside an error message, e.g. `rate_limit`.


class Cost(Struct, frozen=True):
    """What the whole conversation has cost, by the program's own prices."""

    total_cost_usd: Dollars = 0.0


class Window(Struct, frozen=True):
    """One usage limit of a subscription."""

    used_percentage: float
    resets_at: Seconds


class Line(Struct, frozen=True):
    """What the status line is given."""

    cost: Cost = Cost()
    rate_limits: dict[str, Window] = {}


def used(tokens: Tokens) -> Usage:
    """What an answer used."""
    return Usage(
        input=tokens.input_tokens,
        output=tokens.output_tokens,
        cache_read=tokens.cache_read_input_tokens,
        cache_write=tokens.cache_creation_input_tokens,
    )


def folder(files: RunFiles) -> Path:
    """The program's own folder."""
    return files.home / ".claude"


def first_line(files: RunFiles) -> Path:
    """What the status line was given first in this run: before anything was spent."""
    return files.dir / "claude-line.first"


def last_line(files: RunFiles) -> Path:
    """What the status line was given last."""
    return files.dir / "claude-line.last"


def transcript(files: RunFiles, native: str) -> Path | None:
    """The transcript of a conversation, where there is one."""
    found = (folder(files) / "projects").glob(f"*/{native}.jsonl") if native else ()
    return next(iter(found), None)


def transcripts(files: RunFiles) -> list[Path]:
    """The transcripts of all conversations, in no order."""
    return list((folder(files) / "projects").glob("*/*.jsonl"))


def subagents(transcript: Path) -> list[Path]:
    """The transcripts of agents that a conversation began."""
    return sorted((transcript.with_suffix("") / "subagents").glob("*.jsonl"))


def began(transcript: Path) -> datetime:
    """When a transcript begins, by the first of its lines that says when it was written."""
    with suppress(OSError), opened(transcript) as file:
        for line in islice(file, _FIRST_LINES):
            record = understood(line.decode(errors="replace"), Record)
            if record is not None and record.timestamp is not None:
                return record.timestamp
    return datetime.max.replace(tzinfo=UTC)


def lives(status: Status) -> bool:
    """Whether the file is of a living process, and not left by one whose pid was given away."""
    words = read_text(Path(f"/proc/{status.pid}/stat"))
    return words.rpartition(")")[2].split()[19:20] == [status.proc_start]


def dialog(files: RunFiles, screen: str) -> Dialog:
    """What its screen asks: questions below their headings, or leave below the last rule."""
    asked = last(files, "PermissionRequest", Hook[Payload])
    name = str(asked.at) if asked else ""
    if headings := list(_HEADINGS.finditer(screen)):
        asks = asks_in(asked.hook.tool_input) if asked else ()
        page = _page(screen[headings[-1].start() :], asks)
        return form(name, asks, page) if page else Dialog()
    found = _choices(screen)
    if not found or "Esc to cancel" not in screen[found[-1].end() :]:
        return first_question(screen)
    above = _RULE.split(screen[: found[0].start()])[-1].strip()
    return on_screen(f"{name} {above}", (one[3] for one in found))


def _choices(screen: str) -> Sequence[re.Match[str]]:
    """The choices of a dialog, the last that begin with 1; none where none of them is marked."""
    found = list(_CHOICE.finditer(screen))
    first = max((place for place, one in enumerate(found) if one[2] == "1"), default=0)
    return found[first:] if any(one[1] for one in found[first:]) else ()


def _page(shows: str, asks: Sequence[Ask]) -> Page | None:
    """What it shows of its questions; None: of none of these."""
    found = _choices(shows)
    if not found or not asks:
        return None
    said = shows[: found[0].start()]
    if "\nReview your answers\n" in said:
        return Page(at=None, shows=shows, said=tuple(_REVIEWED.findall(said)), on=("1",))
    at = place_of(said.partition("\n\n")[2], asks)
    if at is None:
        return None
    own = found[len(asks[at].labels) :][:1]  # Beside a preview there is none.
    return Page(
        at=at,
        shows=shows,
        marked=next(int(one[2]) for one in found if one[1]),
        ticks={int(one[2]): one[3].startswith("[✔]") for one in found},
        own=(own[0][2],) if own else None,
        typed="".join(one[3] for one in own if one[3] != _OWN_WORDS),
        on=("Tab",),
    )


def first_question(screen: str) -> Dialog:
    """What its screen asks before its first turn: one walks from the marked choice to another."""
    found = _LISTED.search(screen)
    if found is None:
        return Dialog()
    lines = [line.strip() for line in found[1].splitlines()]
    marked = next((place for place, line in enumerate(lines) if line.startswith(_MARK)), None)
    if marked is None:
        return Dialog()
    above = _RULE.split(screen[: found.start()])[-1].strip()
    return walked(above, [line.removeprefix(_MARK) for line in lines], marked)


def retried(screen: str) -> str:
    """The error after which its screen says that it tries again; empty: it does not."""
    found = _RETRIES.search(screen)
    return found[1] if found else ""


def typed(screen: str) -> str:
    """The words in the box for the next message."""
    boxes = _BOX.findall(screen)
    words = boxes[-1].strip() if boxes else ""
    return "" if _PROPOSES.match(words) else words
