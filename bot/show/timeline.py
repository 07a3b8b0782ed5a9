"""The timeline of a session: its history in sentences, each with details."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from bot.show.session_detail import CommandReply
from bot.store import HistoryKind, SessionEvent
from bot.text import page_text
from bot.text import timeline as say
from bot.text.history import describe_action
from bot.text.timeline import Line
from lifecycle.model.key import KeyKind

#: The most details that an entry keeps; a session may have thousands.
_MOST_DETAILS = 30


class TimelineDetail(Struct, frozen=True):
    """A smaller event, shown below the entry that it belongs to."""

    at: datetime
    text: str


class TimelineEntry(Struct, frozen=True, kw_only=True):
    """Something that happened to a session."""

    at: datetime
    text: str  #: A phrase; text in backticks is code.
    tone: str  #: A CSS class, such as `good`; see `Line`.
    quote: str = ""  #: The text of a person's command, if it has any.
    details: tuple[TimelineDetail, ...] = ()
    more: int = 0  #: The number of details that are left out.


class _Open:
    """An entry to which details are still added."""

    def __init__(self, at: datetime, line: Line) -> None:
        self.at = at
        self.line = line
        self.quote = ""
        self.details: list[TimelineDetail] = []

    def add(self, at: datetime, text: str) -> None:
        self.details.append(TimelineDetail(at, page_text.line(text)))

    def closed(self) -> TimelineEntry:
        return TimelineEntry(
            at=self.at,
            text=page_text.line(self.line.text),
            tone=self.line.tone,
            quote=page_text.block(self.quote),
            details=tuple(self.details[:_MOST_DETAILS]),
            more=max(0, len(self.details) - _MOST_DETAILS),
        )


def timeline(
    events: Iterable[SessionEvent], base: str, replies: Mapping[str, CommandReply]
) -> list[TimelineEntry]:
    """Return a session's timeline from `events`, both with the newest first.

    `base` is the commit from which the branch was made: a workspace at this commit has no work yet.
    `replies` are the replies to commands, by the command's key.
    """
    entries: list[_Open] = []
    sentences = _Sentences(base)
    for event in _merged(reversed(list(events))):
        for line in sentences.of(event):
            before = entries[-1].line.text if entries else ""
            if entries and line.replaces and before.startswith(line.replaces):
                entries[-1].add(entries[-1].at, before)
                entries[-1].at, entries[-1].line = event.row.at, line
            elif entries and (line.minor or _is_detail(line, before)):
                entries[-1].add(event.row.at, line.text)
            else:
                entries.append(_Open(event.row.at, line))
        if event.row.kind is HistoryKind.COMMAND:
            _add_command(entries[-1], event, replies)
    return [entry.closed() for entry in reversed(entries)]


def _merged(events: Iterable[SessionEvent]) -> Iterator[SessionEvent]:
    """Merge successive events of keys typed by one person into one; yield all others unchanged.

    Takes and yields the oldest event first.
    """
    for about, group in groupby(events, _typing):
        if about is None:
            yield from group
            continue
        *_, last = batches = list(group)
        count = sum(one.row.data["count"] for one in batches)
        yield replace(last, row=replace(last.row, data={**last.row.data, "count": count}))


def _typing(event: SessionEvent) -> tuple[str, str] | None:
    """Return who typed the keys of an event, and why they were dropped, if they were.

    Returns None for other events.
    """
    row, data = event.row, event.row.data
    if row.kind is not HistoryKind.KEYS:
        return None
    return data.get("by", row.actor), data.get("dropped", "")  # The bot records dropped keys.


def _is_detail(line: Line, before: str) -> bool:
    return bool(line.detail_of) and before.startswith(line.detail_of)


def _add_command(entry: _Open, event: SessionEvent, replies: Mapping[str, CommandReply]) -> None:
    """Add what the person wrote, and the reply to it."""
    data = event.row.data
    entry.quote = "" if data["kind"] == "help" else data["text"]
    if reply := replies.get(data.get("key", "")):
        entry.add(event.row.at, say.reply(reply.text, accepted=reply.accepted))


class _Sentences:
    """Turns events into sentences.

    Pass the oldest event first: sentences depend on earlier events.
    """

    def __init__(self, base: str) -> None:
        self._base = base
        self._status = ""
        self._red: frozenset[str] = frozenset()

    def of(self, event: SessionEvent) -> Iterator[Line]:
        """Yield the sentences for an event; most events have one."""
        row, data = event.row, event.row.data
        match row.kind:
            case HistoryKind.CREATED:
                yield say.created_line(data["issue"], data.get("origin", ""), row.actor)
            case HistoryKind.COMMAND:
                yield say.command_line(row.actor, data["kind"])
            case HistoryKind.OBSERVED:
                for change in data["changes"]:
                    yield from self._observed(change)
            case HistoryKind.SLOT:
                yield Line(
                    "The limits of concurrent sessions allow the agent to run now",
                    minor=True,
                )
            case HistoryKind.DECISION:
                is_new = data["status"] != self._status
                self._status = data["status"]
                yield say.status_line(data["status"], data["because"], is_new=is_new)
            case HistoryKind.DONE | HistoryKind.FAILED | HistoryKind.WITHDRAWN:
                yield _action(event)
            case HistoryKind.FREEZE | HistoryKind.UNFREEZE:
                yield say.freeze_line(row.actor, data["scope"], on=row.kind is HistoryKind.FREEZE)
            case HistoryKind.KEYS if "dropped" in data:
                yield say.dropped_line(data["by"], data["count"], data["dropped"])
            case HistoryKind.KEYS:
                yield say.keys_line(row.actor, data["count"])
            case HistoryKind.METADATA:
                yield say.metadata_line(row.actor, data["keys"])

    def _observed(self, change: str) -> Iterator[Line]:
        if checks := list(say.check_changes(change)):
            yield from say.checks_line(checks, self._red)
            changed = {one.name for one in checks if one.state in ("passed", "failed")}
            failed = {one.name for one in checks if one.state == "failed"}
            self._red = self._red - changed | failed
        elif self._base and change == f"workspace at {self._base[:7]}":
            yield Line(f"The workspace was created at `{self._base[:7]}`", minor=True)
        else:
            yield say.observed_line(change)


def _action(event: SessionEvent) -> Line:
    row, data = event.row, event.row.data
    action = event.actions.get(data["action"])
    phrase = describe_action(action) if action else "An action"
    if data["action"].startswith(f"{KeyKind.PRESS_KEYS}:"):
        return Line(
            "What a person typed was dropped: the bot is frozen, or the run is over", "warn"
        )
    if row.kind is HistoryKind.WITHDRAWN:
        return Line(f"{phrase}: no longer needed", minor=True)
    if row.kind is HistoryKind.FAILED:
        return say.failed_line(phrase, data["error"])
    return say.done_line(action, data["result"]) if action else Line("An action: done", minor=True)
