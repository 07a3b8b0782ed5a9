"""Tests of transcripts from homes and archives."""

import json
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from bot.archive.archiver import Archive
from bot.show.transcripts import NoTranscript, Transcripts
from bot.system.redaction import Redaction
from lifecycle.model.actions import Prompt, Start
from lifecycle.model.key import parse
from runtimes.agents.base import AgentType
from runtimes.agents.claude import Claude
from runtimes.agents.opencode import OpenCode
from runtimes.agents.shared.messages import Message
from runtimes.agents.shell import Shell
from tests.harness.fixtures import Scenario
from tests.harness.site import Site

SECRET = "s3cret-of-the-agent"
REDACT = Redaction([SECRET])
HOSTILE = "\x1b]52;c;aGk=\x07\x1b[31m\u202e"


class Conversations:
    """The conversation of a session, with scripted messages for each run."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.locations = site.locations
        site.adapters["shell"] = Claude(AgentType(program="claude"))
        self.home = site.paths.home(site.id)
        self.file = self.home / ".claude" / "projects" / "-w" / "talk.jsonl"
        self.file.parent.mkdir(parents=True)

    def runs(self, run: int, *texts: str) -> None:
        scenario = self.site.scenario
        prompt = Prompt(name="start")
        scenario.orders(
            self.site.id, Start(key=parse(f"start:x#{run}"), run=run, prompt=prompt), run=run
        )
        for text in texts:
            scenario.clock.passes(1)
            self.says(text, scenario.clock())
        scenario.clock.passes(60)

    def says(self, text: str, at: datetime) -> None:
        self.records("user", {"content": text}, at)

    def records(self, by: str, message: Mapping[str, object], at: datetime) -> None:
        said = {"type": by, "timestamp": at.isoformat(), "message": message}
        with self.file.open("a") as file:
            file.write(json.dumps(said) + "\n")

    def archived(self) -> None:
        """Move the records to the compressed archive."""
        archive = Archive(self.locations, REDACT)
        archive.keep(self.site.session)
        archive.pack(self.site.id)
        shutil.rmtree(self.home)

    def texts_of(self, run: int, first: int = 0, most: int = 99) -> list[str]:
        return [message.text for message in self.messages(run, first, most)]

    def last(self, run: int, most: int) -> tuple[int, list[str]]:
        """Read a run's last `most` messages; return the index of the earliest, and their texts."""
        store, paths = self.site.scenario.store, self.site.paths
        transcripts = Transcripts(
            store, self.locations.host.records, self.locations.adapters, paths.archive, REDACT
        )
        with transcripts.of(self.site.session, run) as found:
            first, messages = found.last(most)
        return first, [message.text for message in messages]

    def messages(self, run: int, first: int = 0, most: int = 99) -> list[Message]:
        store, paths = self.site.scenario.store, self.site.paths
        transcripts = Transcripts(
            store, self.locations.host.records, self.locations.adapters, paths.archive, REDACT
        )
        with transcripts.of(self.site.session, run) as found:
            return found.page(first, most)


@pytest.fixture
def conversations(site: Site) -> Conversations:
    return Conversations(site)


def test_the_last_messages_are_numbered(conversations: Conversations) -> None:
    conversations.runs(1, "one", "two", "three")
    conversations.runs(2)
    assert conversations.last(1, 2) == (1, ["two", "three"])
    assert conversations.last(1, 9) == (0, ["one", "two", "three"])
    assert conversations.last(2, 9) == (0, [])


def test_a_transcript_has_the_messages_of_its_run(conversations: Conversations) -> None:
    conversations.runs(1, "one", "two")
    conversations.runs(2, "three")
    assert conversations.texts_of(1) == ["one", "two"]
    assert conversations.texts_of(2) == ["three"]


def test_a_run_with_a_conversation_of_its_own_has_a_transcript(
    conversations: Conversations,
) -> None:
    conversations.runs(1, "one")
    conversations.file = conversations.file.with_name("later.jsonl")
    conversations.runs(2, "two")
    assert conversations.texts_of(1) == ["one"]
    assert conversations.texts_of(2) == ["two"]


def test_messages_without_a_time_belong_to_their_run(conversations: Conversations) -> None:
    conversations.site.adapters["shell"] = Shell(AgentType(program="shell"))
    conversations.runs(1)
    output = conversations.site.paths.run(conversations.site.id, 1) / "output.log"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("one\ntwo\n")
    assert conversations.texts_of(1) == ["one", "two"]


def test_a_run_is_read_with_the_adapter_of_its_own_agent_type(conversations: Conversations) -> None:
    store = conversations.site.scenario.store
    conversations.runs(1, "one")
    conversations.runs(2, "two")
    conversations.runs(3)
    store.agents.assign(conversations.site.id, "ada", "plain", 3)
    store.agents.assign(conversations.site.id, "ada", "gone", 3)
    conversations.site.adapters["gone"] = Shell(AgentType(program="shell"))
    output = conversations.site.paths.run(conversations.site.id, 3) / "output.log"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("three\n")
    assert [conversations.texts_of(run) for run in (1, 2, 3)] == [["one"], ["two"], ["three"]]


def test_an_overlong_line_is_reported_as_left_out(conversations: Conversations) -> None:
    conversations.runs(1, "one")
    with conversations.file.open("a") as file:
        file.write("x" * 9_000_000 + "\n")
    conversations.says("two", conversations.site.scenario.clock())
    conversations.site.scenario.clock.passes(1)
    conversations.runs(2, "three")
    assert conversations.texts_of(1) == ["one", "a line of 9.0 MB is left out here", "two"]
    assert conversations.texts_of(2) == ["three"]


def test_a_page_has_the_requested_messages(
    conversations: Conversations,
) -> None:
    conversations.runs(1, *"abcdef")
    assert conversations.texts_of(1, first=2, most=3) == ["c", "d", "e"]
    assert conversations.texts_of(1, first=9) == []


def test_secrets_and_control_characters_are_removed(conversations: Conversations) -> None:
    conversations.runs(1, f"the key is {SECRET}\x1b[31m!\x00\u202e")
    assert conversations.texts_of(1) == ["the key is [secret]!"]


def test_control_characters_are_removed_from_names_of_tools_and_models(
    conversations: Conversations,
) -> None:
    conversations.runs(1)
    call = {"type": "tool_use", "id": "c1", "name": f"Ba{HOSTILE}sh", "input": {}}
    message = {"id": "m1", "model": f"mo{HOSTILE}del", "content": [call]}
    conversations.records("assistant", message, conversations.site.scenario.clock())
    (texts_of,) = conversations.messages(1)
    assert (texts_of.tool, texts_of.model) == ("Bash", "model")


def test_a_lost_home_is_read_from_the_archive(conversations: Conversations) -> None:
    conversations.runs(1, "one", f"my {SECRET}")
    conversations.runs(2, "three")
    conversations.archived()
    assert conversations.texts_of(1) == ["one", f"my {'*' * len(SECRET)}"]
    assert conversations.texts_of(2) == ["three"]
    assert not conversations.home.exists()
    (packed,) = [path for path in conversations.site.paths.archive.rglob("*") if path.is_file()]
    assert packed.suffix == ".gz"


def test_unknown_runs_and_agent_types_have_no_transcript(
    conversations: Conversations,
) -> None:
    conversations.runs(1, "one")
    for run in (0, 2):
        with pytest.raises(NoTranscript, match=f"widgets-12 has no run {run}"):
            conversations.texts_of(run)
    conversations.site.adapters.clear()
    with pytest.raises(NoTranscript, match=r"\[agent-types.shell\] is no longer"):
        conversations.texts_of(1)


def test_a_conversation_in_a_database_is_read_from_the_archive(
    conversations: Conversations, scenario: Scenario
) -> None:
    conversations.site.adapters["shell"] = OpenCode(AgentType(program="opencode"))
    conversations.runs(1)
    path = conversations.home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    recorded = Path(__file__).parents[1] / "runtimes/recordings/opencode/ready/turn_over/home"
    at = (scenario.clock() - timedelta(seconds=30)).timestamp() * 1000
    with closing(sqlite3.connect(path)) as database:
        database.execute("pragma journal_mode = wal")
        script = recorded / ".local/share/opencode/opencode.db.sql"
        database.executescript(script.read_text())
        database.execute("update message set time_created = ?, data = json_set(data, "
                         "'$.time.created', ?, '$.time.completed', ?)", (at, at, at))  # fmt: skip
        database.execute("update part set data = json_remove(data, '$.time')")
        database.commit()
        before = conversations.texts_of(1)
        assert before[0].startswith("Key mw-1")
        conversations.archived()
    assert conversations.texts_of(1) == before
