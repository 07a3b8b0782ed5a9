"""A chat with the demo's agent in a sandbox, from its terminal to a merged pull request."""

import sys

import httpx

from bot.demo import agent as demo_agent
from bot.system.locations import Paths
from lifecycle.model.status import Activity
from runtimes import RUNTIMES
from runtimes.base import Options
from runtimes.host import run_name
from tests.runtimes.stages import needs
from tests.world.waiting import eventually
from tests.world.world import IssueStory, World

_AGENT = """
[agent-types.demo]
program = "shell"
command = ["{python}", "-I", "-S", "{agent}"]
isolation = "bubblewrap"
"""


class Chat(IssueStory):
    """A chat that was opened through the API."""

    def __init__(self, world: World, prompt: str = "") -> None:
        self.world = world
        self.id = self._post("sessions", project="widgets", agent="demo", chat=True, prompt=prompt)[
            "session"
        ]

    def gives(self, kind: str) -> None:
        """Give a command."""
        self._post(f"sessions/{self.id}/commands", kind=kind)

    def _post(self, path: str, **body: object) -> dict[str, str]:
        response = httpx.post(
            f"http://127.0.0.1:{self.world.port}/api/v1/{path}",
            json=body,
            headers={
                "authorization": f"Bearer {self.world.secrets.page_token}",
                "idempotency-key": f"k-{body.get('kind')}",
            },
        )
        assert response.status_code == 202, response.text
        return dict(response.json())

    def types(self, text: str) -> None:
        """Type a line into the terminal, as somebody who is attached to it."""
        session = self.session
        assert session is not None
        runtime = RUNTIMES["tmux"](Options(data=Paths(self.world.data).runtime))
        runtime.press(run_name(self.id, session.run), (*text, "Enter"), f"typed {text}")

    def types_on_the_page(self, text: str) -> None:
        """Type a line through the HTTP API, which handles it like a line typed on the page."""
        self._post(f"sessions/{self.id}/keys", paste=text, keys=["Enter"])

    def agent_is(self, activity: Activity) -> None:
        """Wait for the agent's activity."""

        def there() -> bool:
            session = self.session
            return session is not None and session.agent.activity is activity

        eventually(there, f"the agent of {self.id} is {activity}")


def test_a_chat_becomes_a_merged_pull_request(world: World) -> None:
    needs("bubblewrap")
    world.notifiers = _AGENT.format(python=sys.executable, agent=demo_agent.__file__)
    world.bot_starts({"chat_idle_seconds": 3600})
    chat = Chat(world)
    assert chat.id == "widgets-c1"
    session = chat.becomes("working")
    assert (session.issue.title, session.branch) == ("Chat", "mergewright/c1-chat")
    chat.agent_is(Activity.READY)

    chat.types("add `greeting.txt`")
    assert "May I write greeting.txt?" in chat.becomes("needs_input").because
    chat.types_on_the_page("yes")
    chat.becomes("working")
    chat.agent_is(Activity.READY)
    assert world.repo.pulls == []

    world.time_passes(hours=2)
    assert "nobody has written" in chat.becomes("paused").because
    chat.gives("pull-request")
    pull = chat.pull
    assert pull.pull.head_branch == "mergewright/c1-chat"
    pull.ci_passes("unit").reviewer_approves()
    chat.becomes("merged")
    assert world.repo.git.run("show", "main:greeting.txt") == "Hello.\n"
