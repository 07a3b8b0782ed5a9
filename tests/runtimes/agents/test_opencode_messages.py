"""Messages of an OpenCode database with open turns or malformed rows."""

import json

import pytest

from runtimes.agents.base import RunFiles
from runtimes.agents.opencode import files as opencode_files
from runtimes.agents.opencode.files import OpenCodeMessageReader
from runtimes.agents.shared.messages import Message, MessageKind
from tests.runtimes.agents.fake_opencode import ID, Agent


@pytest.fixture
def agent(files: RunFiles) -> Agent:
    agent = Agent(files)
    agent.session()
    return agent


@pytest.fixture
def messages(files: RunFiles, agent: Agent) -> OpenCodeMessageReader:
    return OpenCodeMessageReader(files)


def kinds_and_texts(found: list[Message]) -> list[tuple[MessageKind, str]]:
    return [(each.kind, each.text) for each in found]


def test_malformed_rows_are_skipped(agent: Agent, messages: OpenCodeMessageReader) -> None:
    agent.write("message", "m0", ID, agent.at, agent.at, "{odd")
    agent.part("m0", type="text", text="lost")
    agent.complete("m1")
    agent.write("part", "prt_0", "m1", ID, agent.at, agent.at, "{odd")
    agent.part("m1", type="text", text="Fine.")
    assert kinds_and_texts(messages.new()) == [(MessageKind.ANSWER, "Fine.")]


def test_open_parts_are_returned_at_the_end_of_the_turn(
    agent: Agent, messages: OpenCodeMessageReader
) -> None:
    agent.complete("m1", error={"name": "MessageAbortedError"})
    for name, data in (
        ("prt_1", {"type": "reasoning", "text": "Well ..."}),
        ("prt_2", {"type": "text", "text": "I"}),
        ("prt_3", {"type": "tool", "tool": "bash", "state": {"status": "running"}}),
    ):
        agent.write("part", name, "m1", ID, agent.at, agent.at, json.dumps(data))
    found = messages.new()
    assert kinds_and_texts(found) == [
        (MessageKind.THOUGHT, "Well ..."),
        (MessageKind.ANSWER, "I"),
        (MessageKind.CALL, "{}"),
        (MessageKind.RESULT, ""),
        (MessageKind.NOTE, "MessageAbortedError"),
    ]
    assert {each.at.timestamp() for each in found[:4] if each.at} == {agent.at / 1000}


def test_complete_parts_of_an_active_turn_are_returned_once(
    agent: Agent, messages: OpenCodeMessageReader
) -> None:
    agent.message("m1", "user")
    agent.part("m1", type="text", text="Do it.")
    assert kinds_and_texts(messages.new()) == [(MessageKind.PROMPT, "Do it.")]
    assert messages.new() == []
    agent.message("m2", "assistant")
    agent.part("m2", type="text", text="Yes.", time={"start": 1, "end": agent.at})
    assert kinds_and_texts(messages.new()) == [(MessageKind.ANSWER, "Yes.")]
    assert messages.new() == []
    agent.write("part", "prt_z", "m2", ID, agent.at, agent.at, '{"type": "step-finish"}')
    (used,) = messages.new()
    assert used.kind is MessageKind.USAGE
    assert used.at is not None
    assert used.at.timestamp() == agent.at / 1000


@pytest.mark.parametrize("kind", [MessageKind.ANSWER, MessageKind.THOUGHT])
def test_text_of_an_active_turn_is_returned_once_complete(
    agent: Agent, messages: OpenCodeMessageReader, kind: MessageKind
) -> None:
    type_ = "text" if kind is MessageKind.ANSWER else "reasoning"
    agent.message("m1", "assistant")
    agent.part("m1", type=type_, text="I")
    assert messages.new() == []
    agent.change("m1", type=type_, text="I see.", time={"start": 1, "end": agent.at})
    assert kinds_and_texts(messages.new()) == [(kind, "I see.")]


def test_the_call_of_an_active_turn_is_returned_before_its_result(
    agent: Agent, messages: OpenCodeMessageReader
) -> None:
    agent.message("m1", "assistant")
    agent.part("m1", type="tool", tool="bash", state={"status": "pending"})
    assert kinds_and_texts(messages.new()) == [(MessageKind.CALL, "{}")]
    agent.change("m1", type="tool", tool="bash", state={"status": "running"})
    assert messages.new() == []
    agent.change("m1", type="tool", tool="bash", state={"status": "completed", "output": "ok"})
    assert kinds_and_texts(messages.new()) == [(MessageKind.RESULT, "ok")]
    assert messages.new() == []


def test_an_unreadable_database_has_no_messages(
    files: RunFiles, messages: OpenCodeMessageReader
) -> None:
    opencode_files.database(files).write_text("odd")
    assert messages.new() == []


def test_messages_beyond_a_batch_are_returned_by_the_next_reading(
    agent: Agent, messages: OpenCodeMessageReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencode_files, "_BATCH", 1)
    for name, text in (("m1", "One."), ("m2", "Two.")):
        agent.complete(name)
        agent.part(name, type="text", text=text)
    assert kinds_and_texts(messages.new()) == [(MessageKind.ANSWER, "One.")]
    assert kinds_and_texts(messages.new()) == [(MessageKind.ANSWER, "Two.")]
