"""Restoring a session that a person stopped and whose workspace was lost."""

from lifecycle.model.key import parse
from tests.world.waiting import eventually
from tests.world.world import ALICE, IssueStory, World


def stops(world: World, issue: IssueStory) -> None:
    issue.issue.comment("/mergewright stop", by=ALICE)
    issue.becomes("killed")
    eventually(
        lambda: parse("stop#1") in world.store.facts.get(issue.id).done, "its program is ended"
    )


def loses_its_worktree(world: World, issue: IssueStory) -> None:
    # A rename is atomic; removing file by file would race with git.
    (world.folder / "data" / "workspaces" / issue.id).rename(world.folder / "deleted")


def is_asked_for_again(world: World, issue: IssueStory) -> None:
    world.waits_for_the_next_second()
    issue.issue.unlabel("mergewright", by=ALICE)
    issue.is_labelled()


def test_a_killed_session_without_a_workspace_is_restored_from_its_branch(
    world: World,
) -> None:
    issue = world.agent_opens_a_pull_request()
    pull = issue.pull
    first = pull.pull.head
    stops(world, issue)
    loses_its_worktree(world, issue)
    is_asked_for_again(world, issue)
    assert issue.agent.resumes()["run"] == 2
    issue.agent.commits({"more.txt": "two\n"}, "Add another").ends_its_turn()
    second = pull.moves_from(first)
    assert world.repo.git.contains(second, first)
    assert len(world.repo.pulls) == 1


def test_a_restore_without_branch_or_preserved_work_is_refused_with_a_reason(
    world: World,
) -> None:
    issue = world.agent_starts()
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget")
    eventually(lambda: _committed(issue), "its commit is seen")
    stops(world, issue)
    loses_its_worktree(world, issue)
    is_asked_for_again(world, issue)
    session = issue.becomes("errored")
    assert session.reason == "branch_gone"
    assert "is not on GitHub" in session.because
    eventually(
        lambda: any("preserved no work" in posted for posted in issue.comments_by()),
        "people are notified",
    )
    assert len(issue.agent.received) == 1


def _committed(issue: IssueStory) -> bool:
    session = issue.session
    return session is not None and session.work.head != session.work.base
