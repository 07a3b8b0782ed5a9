"""No value in a file that an agent can write makes reading it fail."""

import os
import random
import re
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import pytest

from lifecycle.model.facts import Agent
from runtimes.agents.aider.files import AiderMessageParser
from runtimes.agents.base import RunFiles, conversation_id
from runtimes.agents.opencode import port
from runtimes.agents.shared.files import decode_lines
from runtimes.agents.shared.hooks import HookCall
from tests.runtimes.agents.recordings import CASES, Recording, each_recording

NUMBERS = ("1e999", "NaN", "-1", "0", "99999999999999999999999", "4e12", "253402300800", "true")
TIMES = ("9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+12:00", "9999-12-31T23:59:59-12:00")
TEXTS = ("", "\\ud800", "\\u0000", "../../x", "**", "--x", "try again in " + "999999h" * 40, *TIMES)
VALUES = (*NUMBERS, *(f'"{text}"' for text in TEXTS), "null", "[]", "{}", "[" * 2000)
#: What a column of a database may hold, whatever its type.
COLUMNS = (None, 1e308, -1, 2**62, "x", b"\xff", *TEXTS)
#: Seconds since 1970.
MODIFIED = (-(10**11), -1, 0, 2**32, 253_402_300_800, 10**15)
TIME = re.compile(rb"20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?")
#: A value in JSON, and not the name of a field.
VALUE = re.compile(r'"(?:[^"\\]|\\.)*"(?!\s*:)|-?\b\d+(?:\.\d+)?\b|\b(?:true|false|null)\b')


def spoilt(text: str, chance: random.Random, share: float) -> str:
    """The text with about this share of its JSON values replaced by odd ones."""
    return VALUE.sub(lambda one: chance.choice(VALUES) if chance.random() < share else one[0], text)


def spoil_database(path: Path, chance: random.Random, share: float) -> None:
    with closing(sqlite3.connect(path)) as database:
        for table in ("session", "message", "part"):
            names = [row[1] for row in database.execute(f"pragma table_info({table})")]
            for name in names:
                rows = database.execute(f"select rowid, {name} from {table}").fetchall()
                for row, value in rows:
                    if chance.random() < share:
                        json = name == "data" and chance.random() < 0.9
                        other = spoilt(value, chance, share) if json else chance.choice(COLUMNS)
                        with suppress(sqlite3.IntegrityError):
                            database.execute(
                                f"update {table} set {name} = ? where rowid = ?", (other, row)
                            )
        database.commit()


@each_recording(CASES)
@pytest.mark.parametrize("share", [0.02, 0.2])
def test_odd_values_do_not_make_a_look_fail(case: Path, recording: Recording, share: float) -> None:
    files, chance = recording.files, random.Random(f"{case.parts[-3:]} {share}")
    reader = recording.adapter.reader(files)
    recording.look(reader)
    for path in sorted((*files.dir.rglob("*"), *files.home.rglob("*"))):
        if path.suffix == ".db":
            spoil_database(path, chance, share)
        elif path.is_file():
            text = spoilt(path.read_text(), chance, share).encode(errors="replace")
            path.write_bytes(text + b"\xff\xfe\x00\n" * (chance.random() < 0.5))
        with suppress(OverflowError):  # Not every file system has such times.
            os.utime(path, (0, chance.choice(MODIFIED)))
    for each in (reader, recording.adapter.reader(files)):
        agent = recording.look(each)
        assert msgspec.json.decode(msgspec.json.encode(agent), type=Agent) == agent
        each.received("mergewright:1")
    messages = recording.adapter.messages(files)
    while messages.new():
        pass


@each_recording(CASES)
def test_records_of_no_plausible_time_do_not_make_a_look_fail(recording: Recording) -> None:
    for path, content in recording.grown().items():
        recording.write(path, content + TIME.sub(TIMES[0].encode(), content))
    recording.look()
    messages = recording.adapter.messages(recording.files)
    while messages.new():
        pass


@pytest.mark.parametrize("number", ["0", "-1", "70000", "1" + "0" * 30])
def test_no_program_is_asked_at_a_port_that_is_none(files: RunFiles, number: str) -> None:
    port.server_file(files).write_text(f'{{"port": {number}, "password": ""}}')
    assert port.get(files, port.PENDING) is None


def test_a_start_at_no_plausible_time_is_left_out() -> None:
    parse = AiderMessageParser()
    assert [*parse("# aider chat started at 9999-99-99 99:99:99")] == []
    assert [one.at for one in parse("Fine.")] == [None]


def test_a_hook_at_no_plausible_time_is_left_out() -> None:
    line = '{"run": 2, "hook": {"hook_event_name": "Stop", "timestamp": "%s"}}'
    assert [*decode_lines([line % time for time in TIMES], HookCall)] == []


@pytest.mark.parametrize("text", ["", "-x", "--resume", "../x", "a/b", "**", "a\0b", "x" * 300])
def test_a_text_that_is_no_id_names_no_conversation(text: str) -> None:
    assert conversation_id(text) == ""
