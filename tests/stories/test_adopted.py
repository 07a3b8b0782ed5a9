"""A person's pull request that an agent continues."""

from tests.world.waiting import eventually
from tests.world.world import ALICE, ROB, IssueStory, PullStory, World


class AdoptedStory(IssueStory):
    """The session of an adopted pull request."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.id = "widgets-1"


def adopted(world: World) -> tuple[AdoptedStory, PullStory]:
    """Alice's pull request after Rob's command, once the agent has its first prompt."""
    world.bot_starts()
    world.repo.push("feature", {"feature.txt": "half\n"}, by=ALICE, message="Begin a feature")
    pull = world.repo.open_pull("feature", title="A feature", by=ALICE, body="Both halves.")
    pull.comment("/mergewright adopt", by=ROB)
    story = AdoptedStory(world)
    prompt = story.agent.starts()["text"]
    assert "continue a pull request" in prompt
    assert "A feature\n\nBoth halves." in prompt
    return story, PullStory(world, pull)


def test_an_adopted_pull_request_is_merged_with_the_persons_commits(world: World) -> None:
    story, pull = adopted(world)
    first = pull.pull.head
    files = world.data / "workspaces" / story.id / "checkout"
    assert (files / "feature.txt").read_text() == "half\n"
    story.agent.commits({"rest.txt": "the other half\n"}, "Finish it").ends_its_turn()

    head = pull.moves_from(first)
    assert world.repo.git.contains(head, first), "her commit is kept"
    pull.ci_fails("unit", log="the rest must be xyzzy")
    story.agent.receives("xyzzy")
    story.agent.commits({"rest.txt": "xyzzy\n"}, "Make it xyzzy").ends_its_turn()
    pull.moves_from(head)
    world.repo.permission(world.github.user("carol").login, "write")
    pull.ci_passes().reviewer_approves(by="carol")
    story.becomes("merged")
    assert world.repo.git.run("show", "main:feature.txt") == "half\n"
    workspace = world.data / "workspaces" / story.id
    eventually(lambda: not workspace.exists(), "the worktree is removed")
    assert "feature" in world.repo.heads, "the branch is hers"


def test_a_persons_commits_are_never_rewritten(world: World) -> None:
    story, pull = adopted(world)
    first = pull.pull.head
    story.agent.commits({"rest.txt": "the other half\n"}, "Finish it").ends_its_turn()
    head = pull.moves_from(first)
    squash = ["git", "reset", "-q", "--soft", "HEAD~2"]
    story.agent.says("active working").runs(squash)
    story.agent.commits({"rest.txt": "all of it\n"}, "Squash it").ends_its_turn()
    session = story.becomes("needs_input")
    assert session.reason == "push_refused"
    assert "never rewrites people's commits" in session.because
    assert pull.pull.head == head
