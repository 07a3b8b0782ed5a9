"""Sessions that a person opens: for a prompt, and a second one for an issue."""

import httpx

from tests.world.waiting import eventually
from tests.world.world import ALICE, BOT, IssueStory, World


class SpawnedStory(IssueStory):
    """A session that was opened through the API."""

    def __init__(self, world: World, **wanted: object) -> None:
        response = httpx.post(
            f"http://127.0.0.1:{world.port}/api/v1/sessions",
            json={"project": "widgets", **wanted},
            headers={
                "authorization": f"Bearer {world.secrets.page_token}",
                "idempotency-key": "k-1",
            },
        )
        assert response.status_code == 202, response.text
        self.world = world
        self.id = response.json()["session"]


def test_a_prompt_becomes_a_merged_pull_request(world: World) -> None:
    world.bot_starts()
    spawned = SpawnedStory(world, prompt="Add widgets\n\nWe need more.", metadata={"team": "core"})
    assert spawned.id == "widgets-p1"

    prompt = spawned.agent.starts()["text"]
    assert "on one task of the repository acme/widgets" in prompt
    assert "Add widgets\n\nWe need more." in prompt
    assert "issue #" not in prompt
    spawned.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()

    pull = spawned.pull
    first = pull.pull.head
    assert pull.pull.head_branch == "mergewright/p1-add-widgets"
    assert pull.pull.body.startswith("Written by the agent `scripted` at the request of")
    spawned.becomes("review_pending")
    pull.ci_fails("unit", log="the widget must be xyzzy")
    spawned.agent.receives("xyzzy")
    spawned.agent.commits({"widgets.txt": "xyzzy\n"}, "Make it xyzzy").ends_its_turn()

    pull.moves_from(first)
    pull.ci_passes("unit").reviewer_approves()
    session = spawned.becomes("merged")
    assert session.metadata == {"team": "core"}
    assert "Closes" not in world.repo.git.run("log", "-1", "--format=%B", "main")
    (report,) = pull.comments_by()
    assert "session `widgets-p1`" in report
    workspace = world.data / "workspaces" / spawned.id
    eventually(lambda: not workspace.exists(), "the worktree is removed")


def test_a_second_session_of_an_issue_has_its_own_life(world: World) -> None:
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.starts()
    second = SpawnedStory(world, issue=issue.issue.number, another=True)
    assert second.id == "widgets-1b"
    assert "Add widgets" in second.agent.starts()["text"]

    issue.issue.comment("/mergewright pause", by=ALICE)
    second.becomes("paused")
    eventually(
        lambda: any("went to widgets-1b, the newest" in text for text in issue.comments_by(BOT)),
        "the choice is explained",
    )
    issue.issue.comment(f"/mergewright {second.id} stop", by=ALICE)
    second.becomes("killed")

    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    issue.pull.ci_passes().reviewer_approves()
    issue.becomes("merged")
    eventually(lambda: issue.issue.state == "closed", "the issue is closed")
    assert second.becomes("killed").pulls == ()
