"""How work comes onto GitHub and into its base: what holds it, and what brings it on."""

from tests.world.waiting import eventually
from tests.world.world import ALICE, World


def test_a_protected_path_is_held_before_the_push_until_a_person_allows_it(world: World) -> None:
    world.bot_starts()
    issue = world.issue("Own the widgets").is_labelled()
    issue.agent.commits({"CODEOWNERS": "* @mallory\n"}, "Own everything").ends_its_turn()
    held = issue.becomes("needs_input")
    assert held.reason == "protected_paths"
    assert held.branch not in world.repo.heads
    commit = held.work.head
    eventually(
        lambda: any(f"`/mergewright allow {commit[:7]}`" in said for said in issue.said()),
        "the command is named",
    )
    issue.issue.comment(f"/mergewright allow {commit[:7]}", by=ALICE)
    assert issue.pull.pull.head == commit
    issue.pull.ci_passes().reviewer_approves()
    issue.becomes("merged")
    assert world.repo.git.run("show", "main:CODEOWNERS") == "* @mallory\n"
