"""A server is lost with its disk, and its backup is restored on another one."""

import shutil

from bot.archive.backup import back_up, restore
from bot.system.locations import Paths
from tests.world.waiting import eventually
from tests.world.world import ALICE, World


def test_a_session_goes_from_a_backup_to_its_merge_on_another_server(world: World) -> None:
    issue = world.agent_opens_a_pull_request()
    pull = issue.pull
    first = pull.pull.head
    back_up(world.store, Paths(world.data), world.folder / "backup")
    issue.agent.commits({"lost.txt": "lost\n"}, "Work after the backup").ends_its_turn()
    second = pull.moves_from(first)
    world.bot_stops()
    world.every_agent_is_killed()
    shutil.rmtree(world.data)

    world.data = world.folder / "another"
    restore(world.folder / "backup", Paths(world.data))
    world.bot_starts()
    issue.agent.resumes()
    issue.agent.ends_its_turn()
    pull.ci_fails("unit", log="the widget must be xyzzy")
    # Whose the commit is that was pushed after the backup is unknown.
    pull.has_comment("resume")
    issue.issue.comment("/mergewright resume", by=ALICE)
    issue.agent.receives("xyzzy")
    issue.agent.commits({"widgets.txt": "xyzzy\n"}, "Make it xyzzy").ends_its_turn()
    pull.moves_from(second)
    assert world.repo.git.run("show", f"{pull.pull.head}:lost.txt") == "lost\n"
    pull.ci_passes("unit").reviewer_approves()
    eventually(lambda: pull.pull.merged, "the merge")
    issue.becomes("merged")
