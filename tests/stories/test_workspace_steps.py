"""A project's own commands run in the workspaces of its sessions, in real terminals."""

from bot.app.application import App
from bot.show.terminal import StepLog, terminal
from tests.world.waiting import eventually
from tests.world.world import ALICE, World


def logs(app: App, session: str) -> list[StepLog]:
    wiring = app.wiring
    return terminal(wiring.store, wiring.locations, wiring.redact).steps(session)


def test_a_workspace_is_set_up_for_its_agent_and_torn_down_after_the_merge(world: World) -> None:
    done = world.folder / "torn-down"
    world.project = f"""
setup = ["echo widgets >made.txt", "printf '%s' $MERGEWRIGHT_BRANCH"]
teardown = ["cat made.txt >{done}"]
"""
    app = world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    issue.pull.ci_passes().reviewer_approves()
    issue.becomes("merged")
    workspace = world.data / "workspaces" / issue.id
    eventually(lambda: not workspace.exists(), "the workspace is gone")
    assert done.read_text() == "widgets\n"
    setup, teardown = logs(app, issue.id)
    assert setup.log == "mergewright/1-add-widgets"
    assert setup.says.startswith("the set-up of the workspace took ")
    assert teardown.says.startswith("the teardown of the workspace took ")


def test_people_are_notified_of_a_failed_setup_and_start_it_again(world: World) -> None:
    fixed = world.folder / "fixed"
    world.project = f"""setup = ["echo no compiler >&2", "test -e {fixed}"]"""
    app = world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    session = issue.becomes("errored")
    assert session.reason == "setup_failed"
    assert "the set-up of the workspace failed with exit code 1" in session.because
    eventually(
        lambda: any("the set-up of the workspace failed" in one for one in issue.comments_by()),
        "people are notified",
    )
    assert not any("no compiler" in one for one in issue.comments_by())
    assert logs(app, issue.id)[0].log == "no compiler"
    fixed.touch()
    issue.issue.comment("/mergewright start", by=ALICE)
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    assert issue.pull


def test_a_setup_outlives_the_bot_and_runs_once(world: World) -> None:
    began, may_end = world.folder / "began", world.folder / "may-end"
    world.project = f"""
setup = ["echo once >>{began}", "until test -e {may_end}; do sleep 0.1; done"]
"""
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    eventually(began.exists, "the set-up runs")
    world.bot_stops()
    world.bot_starts()
    may_end.touch()
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    assert issue.pull
    assert began.read_text() == "once\n"


def test_a_stop_ends_a_setup_that_hangs(world: World) -> None:
    began = world.folder / "began"
    world.project = f"""setup = ["touch {began}", "sleep 1000"]"""
    app = world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    eventually(began.exists, "the set-up runs")
    issue.issue.comment("/mergewright stop", by=ALICE)
    issue.becomes("killed")
    runtime = app.wiring.locations.host.runtime
    eventually(lambda: not runtime.look(), "nothing runs any more")
