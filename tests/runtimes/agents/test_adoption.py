"""Copying a user's own conversation into a session's home."""

import os
import shutil
from pathlib import Path

import pytest

from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, RunFiles
from runtimes.agents.shared.adapter import AgentAdapter, NotAdopted
from runtimes.files import read_text
from tests.runtimes.agents.recordings import RECORDINGS

ABLE = ("claude", "codex", "gemini")


class Person:
    """A user with a recorded conversation."""

    def __init__(self, agent: str, home: Path) -> None:
        recorded = RECORDINGS / agent / "ready" / "turn_over"
        shutil.copytree(recorded / "home", home, dirs_exist_ok=True)
        (self.transcript,) = (home / f".{agent}").rglob("*.jsonl")
        # Codex chooses its id itself; its file name has the whole id, unlike Gemini's.
        recorded_id = read_text(recorded / "run" / "conversation")
        self.native = recorded_id or self.transcript.stem[-36:]
        self.place = self.transcript.relative_to(home)
        self.adapter: AgentAdapter = AGENTS[agent](AgentType(program=agent))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "ada"))
    return tmp_path / "ada"


@pytest.fixture(params=ABLE)
def person(request: pytest.FixtureRequest, home: Path) -> Person:
    return Person(request.param, home)


def test_the_first_run_resumes_a_copy_of_the_adopted_conversation(
    person: Person, files: RunFiles
) -> None:
    person.adapter.adopt(files, person.native)
    launch = person.adapter.prepare(files, "Go on.", person.native)
    words = list(launch.argv)
    assert {"--resume", "resume"} & set(words)
    assert (launch.native_id, person.native in words) == (person.native, True)
    copy = files.home / person.place
    assert copy.read_bytes() == person.transcript.read_bytes()
    assert (copy.stat().st_mode & 0o777, copy.is_symlink()) == (0o600, False)
    assert person.adapter.records(files) == [copy]


def test_the_longest_transcript_of_the_conversation_is_copied(
    person: Person, files: RunFiles
) -> None:
    chats = person.transcript.parent
    folder = chats.parent if chats.name == "chats" else chats
    longer = folder.with_name("99") / person.transcript.relative_to(folder)
    longer.parent.mkdir(parents=True)
    longer.write_bytes(2 * person.transcript.read_bytes())
    person.adapter.adopt(files, person.native)
    (copy,) = person.adapter.records(files)
    assert copy.stat().st_size == longer.stat().st_size


def test_a_transcript_of_another_user_is_refused(
    person: Person, files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: person.transcript.stat().st_uid + 1)
    with pytest.raises(NotAdopted, match="no file of yours matches"):
        person.adapter.adopt(files, person.native)
    assert not files.home.exists()


def test_a_transcript_that_is_no_regular_file_is_refused(person: Person, files: RunFiles) -> None:
    elsewhere = person.transcript.rename(files.dir / "elsewhere")
    person.transcript.symlink_to(elsewhere)
    with pytest.raises(NotAdopted, match="no file of yours matches"):
        person.adapter.adopt(files, person.native)


def test_a_missing_conversation_is_refused_although_another_id_begins_alike(
    person: Person, files: RunFiles
) -> None:
    with pytest.raises(NotAdopted, match="you have no conversation"):
        person.adapter.adopt(files, person.native[:-12] + "0" * 12)


@pytest.mark.parametrize("name", ["", "latest", "../../etc/passwd", "*", "4BB28834"])
def test_a_malformed_conversation_id_is_refused(home: Path, files: RunFiles, name: str) -> None:
    with pytest.raises(NotAdopted, match="is not a conversation id"):
        Person("claude", home).adapter.adopt(files, name)


def test_the_users_folder_is_found_by_the_programs_variable(
    home: Path, files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    for agent, variable in (("claude", "CLAUDE_CONFIG_DIR"), ("codex", "CODEX_HOME")):
        person = Person(agent, home)
        moved = (home / f".{agent}").rename(home / f"{agent}-elsewhere")
        monkeypatch.setenv(variable, str(moved))
        person.adapter.adopt(files, person.native)
        assert person.adapter.records(files) == [files.home / person.place]


def test_gemini_gets_the_copied_folder_registered_for_the_workspace(
    home: Path, files: RunFiles
) -> None:
    person = Person("gemini", home)
    person.adapter.adopt(files, person.native)
    folder = files.home / ".gemini" / "tmp" / "gemini-wt-1"
    assert read_text(folder / ".project_root") == str(files.workspace)
    known = f'{{"projects": {{"{files.workspace}": "gemini-wt-1"}}}}'
    assert read_text(files.home / ".gemini" / "projects.json") == known


def test_codex_is_started_with_its_working_directory(files: RunFiles) -> None:
    argv = AGENTS["codex"](AgentType(program="codex")).prepare(files, "Go on.", "").argv
    assert argv[argv.index("--cd") + 1] == str(files.workspace)


@pytest.mark.parametrize("agent", sorted(AGENTS.keys() - set(ABLE)))
def test_agents_without_adoption_name_the_reason(agent: str, files: RunFiles) -> None:
    adapter = AGENTS[agent](AgentType(program=agent, command=("cat",)))
    with pytest.raises(NotAdopted, match="start the session without --resume"):
        adapter.adopt(files, "4bb28834-d7d9-428f-9c9f-9179ca24a4f5")
