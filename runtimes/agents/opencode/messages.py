"""Reads the messages in the database of OpenCode."""

import sqlite3
from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from runtimes.agents.base import RunFiles
from runtimes.agents.opencode import files as opencode_files
from runtimes.agents.opencode.files import RUNNING, OpenCodeMessage, OpenCodePart, to_datetime
from runtimes.agents.shared.files import decode_json, open_database
from runtimes.agents.shared.messages import Message, MessageKind, as_text

_BATCH = 200  #: Parts read at once.
#: The parts after a position, in order; `~` sorts after the parts of a message and marks its end.
_PARTS_AFTER = """
with root as (
    select message.* from message join session on session.id = message.session_id
    where session.parent_id is null
), parts as (
    select message_id, id, data from part union all select id, '~', '{"type": "end"}' from root
)
select root.time_created, root.id, parts.id, parts.data, root.data,
    root.id = (select id from root order by time_created desc, id desc limit 1)
from parts join root on root.id = parts.message_id
where (root.time_created, root.id, parts.id) > (?, ?, ?)
order by root.time_created, root.id, parts.id limit ?
"""


class OpenCodeMessageReader:
    """Reads the messages of a session's conversations, without those of subagents."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._database_files = opencode_files.database_files(files)
        #: Position of the last part that was returned completely.
        self._position: tuple[float, str, str] = (0, "", "")
        #: The part after it, if its call was returned and its result is still missing.
        self._called = ""
        self._exhausted: tuple[object, ...] = ()  #: Fingerprint when there were no more messages.

    def new(self) -> list[Message]:
        """Return the next messages; see `MessageReader`."""
        fingerprint = opencode_files.fingerprint(self._database_files)
        found: list[Message] = []
        while fingerprint and fingerprint != self._exhausted and not found:
            try:
                with open_database(opencode_files.database(self._files)) as database:
                    rows = database.execute(_PARTS_AFTER, (*self._position, _BATCH)).fetchall()
            except sqlite3.Error:
                break
            position = self._position
            found = list(self._messages(rows))
            if self._position == position:
                self._exhausted = fingerprint
        return found

    def _messages(self, rows: list[tuple[float, str, str, str, str, bool]]) -> Iterator[Message]:
        for created, name, part_name, part_data, data, last in rows:
            message = decode_json(data, OpenCodeMessage)
            part = decode_json(part_data, OpenCodePart)
            if message is not None and part is not None:
                over = not last or message.time.completed is not None
                answer = name if message.role == "assistant" else ""
                for found in self._from_part(message, part, part_name, over):
                    yield replace(found, answer=answer, model=message.model_id)
                if not over and _is_growing(message, part):
                    return
            self._position = (created, name, part_name)

    def _from_part(
        self, message: OpenCodeMessage, part: OpenCodePart, name: str, over: bool
    ) -> Iterator[Message]:
        at = to_datetime(part.time.start or message.time.created)
        end = to_datetime(message.time.completed or message.time.created)
        match part.type:
            case "text" if message.role == "user":
                yield Message(kind=MessageKind.PROMPT, text=part.text, at=at)
            case "text" | "reasoning" if over or part.time.end:
                kind = MessageKind.ANSWER if part.type == "text" else MessageKind.THOUGHT
                yield Message(kind=kind, text=part.text, at=at)
            case "tool":
                yield from self._from_tool(part, name, at, over)
            case "step-finish":
                yield Message(kind=MessageKind.USAGE, used=part.tokens.usage(part.cost), at=end)
            case "end" if message.error is not None:
                text = str(message.error.data.get("message") or message.error.name)
                yield Message(kind=MessageKind.NOTE, text=text, at=end)

    def _from_tool(
        self, part: OpenCodePart, name: str, at: datetime, over: bool
    ) -> Iterator[Message]:
        """Yield the call as soon as it is recorded, and the result once the tool has returned."""
        state, span = part.state, part.state.time
        began = to_datetime(span.start) if span.start else at
        if self._called != name:
            self._called = name
            text = as_text(state.input)
            yield Message(
                kind=MessageKind.CALL, tool=part.tool, call=part.call_id, text=text, at=began
            )
        if over or state.status not in RUNNING:
            ended = to_datetime(span.end) if span.end else began
            text = state.output or state.error
            yield Message(kind=MessageKind.RESULT, call=part.call_id, text=text, at=ended)


def _is_growing(message: OpenCodeMessage, part: OpenCodePart) -> bool:
    """Whether a part of the last message is incomplete."""
    match part.type:
        case "tool":
            return part.state.status in RUNNING
        case "text" | "reasoning":
            return message.role != "user" and part.time.end is None
    return part.type == "end"
