"""Messages of recorded conversations, in one form for every agent type.

A recording's `messages.jsonl` has the expected messages, one a line.
"""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, RunFiles
from runtimes.agents.claude import Claude
from runtimes.agents.claude.files import parse_line
from runtimes.agents.codex import Codex
from runtimes.agents.opencode import OpenCode
from runtimes.agents.shared.messages import Message, MessageKind, MessageReader
from tests.runtimes.agents.recordings import RECORDINGS, adapter_of, copy_recording

RECORDED = sorted(RECORDINGS.glob("*/*/*/messages.jsonl"))


def expected(path: Path) -> list[Message]:
    return [msgspec.json.decode(line, type=Message) for line in path.read_text().splitlines()]


def everything(messages: MessageReader) -> list[Message]:
    found: list[Message] = []
    while new := messages.new():
        found += new
    return found


def of(case: Path, files: RunFiles) -> MessageReader:
    copy_recording(case, files, 1)
    return adapter_of(case).messages(files)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: "-".join(path.parts[-4:-1]))
def test_a_recorded_conversation_is_read_as_messages(path: Path, files: RunFiles) -> None:
    messages = of(path.parent, files)
    assert everything(messages) == expected(path)
    assert messages.new() == [], "no message comes twice"


def test_every_agent_type_has_a_recorded_conversation() -> None:
    assert {path.parts[-4] for path in RECORDED} == set(AGENTS)


@pytest.mark.parametrize(
    "path",
    [path for path in RECORDED if path.parts[-4] != "opencode"],
    ids=lambda path: "-".join(path.parts[-4:-1]),
)
def test_growing_files_yield_each_message_once_in_order(path: Path, files: RunFiles) -> None:
    messages = of(path.parent, files)
    name = path.parts[-4]
    records = AGENTS[name](AgentType(program=name)).records(files)
    whole = {record: record.read_bytes() for record in records if record.exists()}
    for record in whole:
        record.write_bytes(b"")
    found: list[Message] = []
    for record, content in whole.items():
        with record.open("ab", buffering=0) as file:
            for begin in range(0, len(content), 700):
                file.write(content[begin : begin + 700])
                found += everything(messages)
    assert found == expected(path)


@pytest.mark.parametrize("name", ["codex", "gemini"])
def test_unknown_content_parts_are_ignored(name: str, files: RunFiles) -> None:
    path = RECORDINGS / name / "ready" / "turn_over" / "messages.jsonl"
    messages = of(path.parent, files)
    for record in AGENTS[name](AgentType(program=name)).records(files):
        if record.suffix == ".jsonl":
            odd = re.sub(
                r'("(?:content|summary)": ?\[)(?=\{)', r'\1 5, "text", ', record.read_text()
            )
            record.write_text(odd)
    assert everything(messages) == expected(path)


def test_a_claude_tool_result_consists_of_its_text_parts() -> None:
    back = {"type": "tool_result", "tool_use_id": "c1", "content": [5, "text", {"text": "x"}]}
    (message,) = parse_line(json.dumps({"type": "user", "message": {"content": [back]}}))
    assert message.text == "x"


@pytest.fixture
def database(files: RunFiles) -> Iterator[sqlite3.Connection]:
    """An empty OpenCode database, open for writing; `begins` fills it from a recording."""
    path = OpenCode(AgentType(program="opencode")).records(files)[0]
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def begins(database: sqlite3.Connection, case: str) -> None:
    script = RECORDINGS / "opencode" / case / "home/.local/share/opencode/opencode.db.sql"
    database.executescript(script.read_text())


def of_database(files: RunFiles) -> MessageReader:
    return OpenCode(AgentType(program="opencode")).messages(files)


def test_a_running_tool_yields_its_call_first_and_later_its_result(
    files: RunFiles, database: sqlite3.Connection
) -> None:
    begins(database, "active/tool_runs")
    messages = of_database(files)
    begun = everything(messages)
    assert [each.kind for each in begun[-2:]] == [MessageKind.USAGE, MessageKind.CALL]
    database.execute(
        "update part set data = json_set(data, '$.state.status', 'completed',"
        " '$.state.output', 'made') where json_extract(data, '$.state.status') = 'running'"
    )
    (result,) = everything(messages)
    assert (result.kind, result.call, result.text) == (MessageKind.RESULT, begun[-1].call, "made")
    database.execute(
        "insert into part select 'prt_zz', message_id, session_id, time_created, time_updated,"
        ' \'{"type": "text", "text": "Well.", "time": {"end": 1}}\''
        " from part order by id desc limit 1"
    )
    assert [each.text for each in everything(messages)] == ["Well."], "its answer went on"


def test_a_growing_response_is_returned_when_it_is_complete(
    files: RunFiles, database: sqlite3.Connection
) -> None:
    begins(database, "active/tool_runs")
    messages = of_database(files)
    database.execute(
        "update part set data = json_set(data, '$.state.status', 'completed')"
        " where json_extract(data, '$.state.status') = 'running'"
    )
    everything(messages)
    database.execute(
        "insert into part select 'prt_zz', message_id, session_id, time_created, time_updated,"
        ' \'{"type": "text", "text": "We", "time": {"start": 1}}\''
        " from part order by id desc limit 1"
    )
    assert everything(messages) == []
    database.execute(
        "update part set data = json_set(data, '$.text', 'Well.', '$.time.end', 2)"
        " where id = 'prt_zz'"
    )
    assert [each.text for each in everything(messages)] == ["Well."]


def test_subagents_messages_are_not_part_of_the_conversation(
    files: RunFiles, database: sqlite3.Connection
) -> None:
    begins(database, "ready/turn_over")
    messages = of_database(files)
    before = everything(messages)
    database.execute("update session set parent_id = 'ses_other'")
    assert everything(of_database(files)) == []
    database.execute("update session set parent_id = null")
    assert everything(of_database(files)) == before


def test_a_conversation_of_thousands_of_parts_comes_in_batches(
    files: RunFiles, database: sqlite3.Connection
) -> None:
    begins(database, "ready/turn_over")
    database.execute(
        "insert into part with recursive n(v) as (select 1 union all select v + 1 from n"
        " where v < 1000) select printf('prt_z%04d', v), message_id, session_id,"
        " time_created, time_updated, data from part, n where data ->> 'text' = 'All finished.'"
    )
    messages = of_database(files)
    first = messages.new()
    assert len(first) < 250
    answers = [each for each in first + everything(messages) if each.kind is MessageKind.ANSWER]
    assert len(answers) == 1001


@pytest.mark.parametrize(
    ("record", "expected_messages"),
    [
        ({"type": "user"}, []),
        ({"type": "user", "message": {"content": [{"type": "image"}]}}, []),
        ({"type": "assistant", "message": {"content": [{"type": "image"}]}}, []),
        (
            {"type": "assistant", "message": {"content": "Done."}},
            [Message(kind=MessageKind.ANSWER, text="Done.")],
        ),
    ],
)
def test_claude_messages_without_usage_are_returned(
    record: object, expected_messages: list[Message]
) -> None:
    assert [*parse_line(json.dumps(record))] == expected_messages


def test_claudes_conversations_are_read_in_the_order_they_began(files: RunFiles) -> None:
    folder = files.home / ".claude" / "projects" / "-x"
    folder.mkdir(parents=True)
    order = "dbgaecfh"  # No file system lists eight files in this order by chance.
    for hour, name in enumerate(order):
        prompt = (
            '{"type": "user", "timestamp": "2026-11-21T0%d:00:00Z", "message": {"content": "%s"}}'
        )
        head = 'no JSON\n{"type": "mode"}\n'
        (folder / f"{name}.jsonl").write_text(head + prompt % (hour, name) + "\n")
    messages = Claude(AgentType(program="claude")).messages(files)
    assert [each.text for each in everything(messages)] == list(order)


def test_claudes_insertions_are_no_prompts_and_interruptions_are_notes(
    files: RunFiles,
) -> None:
    folder = files.home / ".claude" / "projects" / "-x"
    folder.mkdir(parents=True)
    texts = [{"type": "text", "text": "[Request interrupted by user for tool use]"}]
    long = "x" * (12 * 1024 * 1024)
    records: list[dict[str, object]] = [
        {"type": "user", "isMeta": True, "message": {"content": "a caveat"}},
        {"type": "user", "message": {"content": "begin"}},
        {"type": "user", "message": {"content": long}},
        {"type": "user", "message": {"content": texts}},
        {"type": "user", "message": {"content": "go on"}},
        {"type": "user", "promptSource": "system", "message": {"content": "<task-notification>"}},
        {"type": "api-request-blob", "message": {"content": "<system-reminder>"}},
    ]
    lines = [json.dumps({"timestamp": "2026-11-21T01:00:00Z", **record}) for record in records]
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    found = everything(Claude(AgentType(program="claude")).messages(files))
    shown = [(each.kind, each.text[:24]) for each in found]
    assert shown == [
        (MessageKind.PROMPT, "begin"),
        (MessageKind.NOTE, "a line of 12.6 MB is lef"),
        (MessageKind.NOTE, "[Request interrupted by "),
        (MessageKind.PROMPT, "go on"),
        (MessageKind.NOTE, "<task-notification>"),
    ]
    assert found[1].at == found[0].at, "so it keeps its place"


def test_records_without_a_message_are_ignored(files: RunFiles) -> None:
    lines = (
        "no JSON",
        "[]",
        '{"type": "user"}',
        '{"type": "assistant", "message": {"content": 7}}',
    )
    folder = files.home / ".claude" / "projects" / "-x"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    assert everything(Claude(AgentType(program="claude")).messages(files)) == []
    assert everything(Codex(AgentType(program="codex")).messages(files)) == []
    assert everything(OpenCode(AgentType(program="opencode")).messages(files)) == []


@pytest.mark.parametrize(("given", "shown"), [(7, "7"), ({"a": 1}, '{"a": 1}'), ("Fine.", "Fine.")])
def test_a_tool_result_without_text_parts_is_shown_as_json(
    given: object, shown: str, files: RunFiles
) -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": given}
    record = {"type": "user", "timestamp": "2026-11-21T01:00:00Z", "message": {"content": [result]}}
    folder = files.home / ".claude" / "projects" / "-x"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text(json.dumps(record) + "\n")
    messages = Claude(AgentType(program="claude")).messages(files)
    assert [each.text for each in everything(messages)] == [shown]
