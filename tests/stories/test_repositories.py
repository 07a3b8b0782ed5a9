"""Renamed and archived repositories, suspended Apps, issues that block others."""

from lifecycle.model.key import KeyKind
from tests.world.waiting import eventually
from tests.world.world import ALICE, BOT, World


def test_sessions_survive_a_rename_and_pause_while_the_repository_is_archived(
    world: World,
) -> None:
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.starts()
    eventually(world.store.repositories.all, "the repository is known by its number")
    world.repo.rename("gadgets", by=ALICE)
    other = world.github.repository("acme/widgets")
    other.permission("mergewright-bot", "write")
    issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
    assert issue.pull.pull.repo is world.repo
    issue.pull.ci_passes()
    issue.becomes("review_pending")
    issue.issue.comment("/mergewright status", by=ALICE)
    eventually(lambda: any("Review pending: " in body for body in issue.comments_by()), "the reply")
    assert not other.pulls
    assert set(other.heads) == {"main"}

    world.repo.archive(by=ALICE)
    session = issue.becomes("paused")
    assert session.because == "the repository is archived"
    eventually(lambda: issue.session and not issue.session.slot, "its program is ended")
    world.repo.archive(by=ALICE, archived=False)
    issue.becomes("review_pending")


def test_a_push_follows_a_rename_without_a_webhook(world: World) -> None:
    issue = world.agent_starts()
    eventually(world.store.repositories.all, "the repository is known by its number")
    world.github.lose_next(1000)
    world.repo.rename("gadgets", by=ALICE)
    other = world.github.repository("acme/widgets")
    other.permission(BOT, "write")
    issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
    eventually(lambda: len(world.repo.heads) > 1, "the push")
    assert set(other.heads) == {"main"}


def test_a_suspended_app_waits_and_resumes(world: World) -> None:
    app = world.has_an_app()
    issue = world.agent_starts()
    eventually(lambda: issue.comments_by(f"{BOT}[bot]"), "the start is reported")
    world.github.suspend(app)
    eventually(world.store.incidents.current, "an incident is shown")
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()

    def held() -> bool:
        entries = world.store.outbox.of(issue.id)
        pushes = [one for one in entries if one.key.kind is KeyKind.PUSH]
        return any("suspended" in one.error and one.next_at > world.clock() for one in pushes)

    eventually(held, "the push waits")
    world.github.suspend(app, suspended=False)
    eventually(lambda: not world.store.incidents.current(), "that is over")
    world.time_passes(minutes=6)
    issue.pull.ci_passes().reviewer_approves()
    issue.becomes("merged")


def test_a_repository_is_a_project_while_the_app_is_installed_on_it(world: World) -> None:
    app = world.has_an_app()
    world.installation = 'repositories = ["acme/gad*"]\nproject = {agent = "scripted"}'
    world.bot_starts()
    world.github.repository("acme/others")
    repo = world.repo = world.github.repository("acme/gadgets")
    repo.permission(ALICE, "write")
    story = world.issue("Add gadgets").is_labelled()
    story.id = f"gadgets-{story.issue.number}"
    world.github.install_on(app, repo)
    story.agent.starts()
    assert set(world.app.wiring.projects if world.app else ()) == {"widgets", "gadgets"}

    world.github.install_on(app, repo, installed=False)
    session = story.becomes("paused")
    assert (
        session.because
        == "gadgets is no longer in the configuration, or the App was removed from its repository"
    )
    assert not world.store.incidents.current()
    eventually(lambda: story.session and not story.session.slot, "its program is ended")
    world.bot_stops()
    world.bot_starts()
    assert story.becomes("paused")
    world.github.install_on(app, repo)
    story.agent.resumes()
    story.agent.commits({"gadgets.txt": "one\n"}).ends_its_turn()
    story.pull.ci_passes()
    story.becomes("review_pending")


def test_a_blocked_issue_starts_when_its_blocker_closes(world: World) -> None:
    world.bot_starts()
    first, issue = world.issue("Make a mould"), world.issue("Add widgets")
    issue.issue.waits_for(first.issue, by=ALICE)
    issue.is_labelled()
    why = f"the session waits for #{first.issue.number}"
    eventually(lambda: issue.session and issue.session.because == why, "it says what it waits for")
    first.issue.close(by=ALICE)
    issue.agent.starts()
