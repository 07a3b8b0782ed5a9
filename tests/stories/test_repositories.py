"""What becomes of sessions when something happens around their issue: to others, to all."""

from tests.world.waiting import eventually
from tests.world.world import ALICE, World


def test_a_renamed_repository_keeps_its_sessions_and_an_archived_one_has_them_rest(
    world: World,
) -> None:
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.starts()
    eventually(world.store.places, "the repository is known by its number")
    world.repo.rename("gadgets", by=ALICE)
    other = world.github.repository("acme/widgets")
    other.permission("mergewright-bot", "write")
    issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
    assert issue.pull.pull.repo is world.repo
    issue.pull.ci_passes()
    issue.becomes("review_pending")
    issue.issue.comment("/mergewright status", by=ALICE)
    issue.pull.is_answered("`review_pending`")
    assert not other.pulls
    assert set(other.heads) == {"main"}

    world.repo.archive(by=ALICE)
    session = issue.becomes("paused")
    assert session.because == "the repository is archived"
    eventually(lambda: issue.session and not issue.session.slot, "its program is ended")
    world.repo.archive(by=ALICE, archived=False)
    issue.becomes("review_pending")


def test_an_issue_that_waits_for_another_is_begun_when_that_is_closed(world: World) -> None:
    world.bot_starts()
    first, issue = world.issue("Make a mould"), world.issue("Add widgets")
    issue.issue.waits_for(first.issue, by=ALICE)
    issue.is_labelled()
    why = f"waits for #{first.issue.number}"
    eventually(lambda: issue.session and issue.session.because == why, "it says what it waits for")
    first.issue.close(by=ALICE)
    issue.agent.starts()
