"""Programs that are started without a message wait until a person types one in the terminal."""

import json
import re
from datetime import datetime, timedelta

import pytest

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, RunFiles
from runtimes.agents.opencode import port
from runtimes.agents.shared.reader import Reader, in_state
from runtimes.base import Seen
from runtimes.files import write_private
from tests.runtimes.agents import fake_opencode
from tests.runtimes.agents.conftest import ALIVE, NOW
from tests.runtimes.agents.fake_opencode import ID
from tests.runtimes.agents.fake_port import answering

BOXES = {
    "claude": f"{'─' * 30}\n❯ \n{'─' * 30}\n",
    "codex": "› Ask Codex to do anything\n",
    "gemini": " >   Type your message or @path/to/file\n",
}


def kind(name: str) -> AgentType:
    return AgentType(program=name, model="fake/model", args=("--plain",))


@pytest.mark.parametrize(
    ("name", "last"),
    [("claude", "--"), ("codex", "--"), ("gemini", "--plain"), ("opencode", "--plain")],
)
def test_a_new_conversation_has_no_message(files: RunFiles, name: str, last: str) -> None:
    launch = AGENTS[name](kind(name)).prepare(files, "", "")
    assert (launch.argv[0], launch.argv[-1]) == (name, last)
    assert files.prompt.read_text() == ""


def test_aider_starts_once_for_the_conversation(files: RunFiles) -> None:
    launch = AGENTS["aider"](kind("aider")).prepare(files, "", "")
    assert launch.argv[2] == 'exec "$@"'
    assert "--message-file" not in " ".join(launch.argv)


@pytest.mark.parametrize("name", BOXES)
def test_it_is_ready_once_it_shows_its_input_box(files: RunFiles, name: str) -> None:
    adapter = AGENTS[name](kind(name))
    adapter.prepare(files, "", "")
    reader = adapter.reader(files)
    assert reader.read(ALIVE, "", NOW).activity is Activity.NONE
    agent = reader.read(ALIVE, BOXES[name], NOW)
    assert (agent.activity, agent.since) == (Activity.READY, NOW)
    assert agent.evidence == "the agent waits for the first message"


@pytest.mark.parametrize("name", BOXES)
def test_one_that_has_a_message_is_not(files: RunFiles, name: str) -> None:
    adapter = AGENTS[name](kind(name))
    reader = adapter.reader(files)
    assert reader.read(ALIVE, BOXES[name], NOW).activity is Activity.NONE, "nothing is prepared"
    adapter.prepare(files, "Do it.", "")
    assert reader.read(ALIVE, BOXES[name], NOW).activity is Activity.NONE


class Scripted(Reader):
    """A reader whose program's files show an activity."""

    input_box: re.Pattern[str] | None = re.compile("^> ")
    shown = Activity.NONE

    def _update(self) -> None:
        pass

    def _judge(self, agent: Agent, seen: Seen, screen: str, now: datetime) -> Agent:
        return in_state(agent, self.shown, now, "the files say so")


def test_it_is_ready_since_its_input_box_was_first_seen_and_until_it_works(files: RunFiles) -> None:
    files.prompt.write_text("")
    reader, later = Scripted(files), NOW + timedelta(minutes=1)
    for now in (NOW, later):
        agent = reader.read(ALIVE, "> ", now)
        assert (agent.activity, agent.since) == (Activity.READY, NOW)
    reader.shown = Activity.ACTIVE
    assert reader.read(ALIVE, "> ", later).activity is Activity.ACTIVE


def test_a_program_without_an_input_box_is_never_ready_by_it(files: RunFiles) -> None:
    files.prompt.write_text("")
    reader = Scripted(files)
    reader.input_box = None
    assert reader.read(ALIVE, "> ", NOW).activity is Activity.NONE


def test_opencode_is_ready_once_its_port_answers(files: RunFiles, alive: Seen) -> None:
    adapter = AGENTS["opencode"](kind("opencode"))
    adapter.prepare(files, "", "")
    answers: dict[str, object] = {"/permission": [], "/question": [], "/session/status": {}}
    reader = adapter.reader(files)
    with answering(answers, "secret") as number:
        server = json.dumps({"port": number, "password": "secret"})
        write_private(port.server_file(files), server)
        assert reader.read(alive, None, NOW).activity is Activity.READY
    assert reader.read(alive, None, NOW).activity is Activity.READY, "it is not asked at each look"
    assert reader.read(alive, None, NOW + timedelta(minutes=1)).activity is Activity.NONE


def test_opencode_resumes_a_conversation_by_itself(files: RunFiles) -> None:
    fake_opencode.Agent(files).session()
    launch = AGENTS["opencode"](kind("opencode")).prepare(files, "", ID)
    assert launch.argv[0] == "opencode"
    assert launch.argv[-2:] == ("--session", ID)
    assert launch.native_id == ID
