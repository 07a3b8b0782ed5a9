"""What was said in the conversations of OpenCode, from its database."""

import sqlite3
from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from runtimes.agents.base import RunFiles
from runtimes.agents.opencode import files as its
from runtimes.agents.shared.conversation import shown
from runtimes.agents.shared.databases import reading
from runtimes.agents.shared.files import understood
from runtimes.agents.shared.messages import Kind, Message

#: So many parts are read at once.
_MOST = 200
#: The parts behind a place, in their order; behind those of a message, `~` stands for its end.
_SAID = """
with root as (
    select message.* from message join session on session.id = message.session_id
    where session.parent_id is null
), said as (
    select message_id, id, data from part union all select id, '~', '{"type": "end"}' from root
)
select root.time_created, root.id, said.id, said.data, root.data,
    root.id = (select id from root order by time_created desc, id desc limit 1)
from said join root on root.id = said.message_id
where (root.time_created, root.id, said.id) > (?, ?, ?)
order by root.time_created, root.id, said.id limit ?
"""


class OpenCodeMessages:
    """The messages of its own conversations, without those of agents that these began."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._written = its.written(files)
        self._told: tuple[float, str, str] = (0, "", "")  #: The last part that was told whole.
        self._called = ""  #: The part behind it, where its call was told and has not returned.
        self._changed: tuple[object, ...] = ()  #: At the last look, where it had no more.

    def new(self) -> list[Message]:
        """The next of them; see `Messages`."""
        changed = its.changed(self._written)
        found: list[Message] = []
        while changed and changed != self._changed and not found:
            try:
                with reading(its.database(self._files)) as database:
                    rows = database.execute(_SAID, (*self._told, _MOST)).fetchall()
            except sqlite3.Error:
                break
            place = self._told
            found = list(self._messages(rows))
            if self._told == place:
                self._changed = changed
        return found

    def _messages(self, rows: list[tuple[float, str, str, str, str, bool]]) -> Iterator[Message]:
        for created, name, part_name, part_data, data, last in rows:
            message, part = understood(data, its.Message), understood(part_data, its.Part)
            if message is not None and part is not None:
                over = not last or message.time.completed is not None
                answer = name if message.role == "assistant" else ""
                for told in self._of_part(message, part, part_name, over):
                    yield replace(told, answer=answer, model=message.model_id)
                if not over and _grows(message, part):
                    return
            self._told = (created, name, part_name)

    def _of_part(
        self, message: its.Message, part: its.Part, name: str, over: bool
    ) -> Iterator[Message]:
        at = its.time(part.time.start or message.time.created)
        end = its.time(message.time.completed or message.time.created)
        match part.type:
            case "text" if message.role == "user":
                yield Message(kind=Kind.PROMPT, text=part.text, at=at)
            case "text" | "reasoning" if over or part.time.end:
                kind = Kind.ANSWER if part.type == "text" else Kind.THOUGHT
                yield Message(kind=kind, text=part.text, at=at)
            case "tool":
                yield from self._of_tool(part, name, at, over)
            case "step-finish":
                yield Message(kind=Kind.USAGE, used=its.used(part.tokens, part.cost), at=end)
            case "end" if message.error is not None:
                text = str(message.error.data.get("message") or message.error.name)
                yield Message(kind=Kind.NOTE, text=text, at=end)

    def _of_tool(self, part: its.Part, name: str, at: datetime, over: bool) -> Iterator[Message]:
        """Its call as soon as it is there, and its result once it has returned."""
        state, span = part.state, part.state.time
        began = its.time(span.start) if span.start else at
        if self._called != name:
            self._called = name
            text = shown(state.input)
            yield Message(kind=Kind.CALL, tool=part.tool, call=part.call_id, text=text, at=began)
        if over or state.status not in its.RUNNING:
            ended = its.time(span.end) if span.end else began
            text = state.output or state.error
            yield Message(kind=Kind.RESULT, call=part.call_id, text=text, at=ended)


def _grows(message: its.Message, part: its.Part) -> bool:
    """Whether there will be more of a part of the last message."""
    match part.type:
        case "tool":
            return part.state.status in its.RUNNING
        case "text" | "reasoning":
            return message.role != "user" and part.time.end is None
    return part.type == "end"
