"""Sessions whose workspaces are clones, with little history and few files."""

from tests.world.waiting import eventually
from tests.world.world import ALICE, World


def test_a_conflict_is_resolved_in_a_shallow_and_sparse_clone(world: World) -> None:
    world.project = 'workspace = "clone"\nfetch-depth = 1\nsparse = ["src"]'
    world.repo.push("main", {"docs/guide.md": "long\n", "src/app.py": "1\n"}, by=ALICE)
    app = world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"README.md": "# Our widgets\n", "src/app.py": "2\n"}).ends_its_turn()
    pull = issue.pull
    session = issue.session
    assert session
    workspace = app.wiring.locations.workspace_of(session)
    assert workspace.origin == workspace.place / "origin.git"
    assert sorted(path.name for path in workspace.path.iterdir()) == [".git", "README.md", "src"]
    head = pull.pull.head
    world.repo.push("main", {"README.md": "# Their widgets\n", "docs/more.md": "1\n"}, by=ALICE)
    issue.agent.receives("conflicts with its base branch")
    issue.agent.runs(
        ["git", "fetch", "--quiet", "origin"],
        ["sh", "-c", "git merge --quiet origin/main >/dev/null || true"],
    )
    issue.agent.commits({"README.md": "# All widgets\n"}, "Merge main").ends_its_turn()
    pull.moves_from(head)
    eventually(lambda: pull.pull.mergeable, "the conflict is resolved")
    assert not workspace.dirty()
