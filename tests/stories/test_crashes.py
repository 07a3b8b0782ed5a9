"""The bot is killed at every crash point; the outcome is the same and no effect is doubled."""

import os
import subprocess
import sys
from pathlib import Path

from bot.store import Store
from bot.system.crash_points import CrashPoint
from lifecycle.model.key import parse
from tests.world.waiting import eventually
from tests.world.world import ALICE, BOT, MALLORY, SECRET, TOKEN, PullStory, World

#: The bot starts dozens of times, which takes long on a busy machine.
PATIENCE = 300.0


def test_a_bot_killed_at_every_boundary_does_everything_once(world: World) -> None:
    # Polling finds the comments whose webhooks came while the bot was down.
    world.settings(resync_seconds=2, events="polling")
    crossed = world.folder / "crossed"
    log = (world.folder / "bot.log").open("wb")
    secrets = {"MERGEWRIGHT_GITHUB_TOKEN": TOKEN, "MERGEWRIGHT_WEBHOOK_SECRET": SECRET}
    bot = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.world.crashing_bot"),
            *(str(world.folder / "mergewright.toml"), str(crossed)),
        ],
        env={**os.environ, **secrets},
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
    )
    try:
        world.repo.permission(MALLORY, "triage")
        unlabelled = world.issue("Without a session")
        unlabelled.issue.comment("/mergewright help", by=ALICE)
        unlabelled.issue.comment("/mergewright help", by=MALLORY)
        eventually(lambda: len(unlabelled.comments_by()) == 2, "both are answered", PATIENCE)
        issue = world.issue("Add widgets").is_labelled()
        agent = issue.agent
        agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
        eventually(lambda: world.repo.pulls, "a pull request", PATIENCE)
        pull = PullStory(world, world.repo.pulls[0])
        first = pull.pull.head
        pull.ci_fails("unit", log="the widget must be xyzzy")
        agent.receives("xyzzy", PATIENCE)
        agent.commits({"widgets.txt": "xyzzy\n"}, "Make it xyzzy").ends_its_turn()
        second = pull.moves_from(first, PATIENCE)
        pull.ci_passes("unit").reviewer_asks_for("plugh, please")
        agent.receives("plugh, please", PATIENCE)
        agent.commits({"widgets.txt": "plugh\n"}, "Say plugh").ends_its_turn()
        pull.moves_from(second, PATIENCE)
        world.repo.closes_issues = False  # The bot does.
        pull.ci_passes("unit").has_comment("and then pushed", PATIENCE).reviewer_approves()
        eventually(lambda: pull.pull.merged, "the merge", PATIENCE)
        workspace = world.folder / "data" / "workspaces" / issue.id
        eventually(lambda: not workspace.exists(), "the worktree is gone", PATIENCE)
        eventually(lambda: issue.issue.state == "closed", "the issue is closed", PATIENCE)
        branch = pull.pull.head_branch
        eventually(lambda: branch not in world.repo.heads, "the branch is gone", PATIENCE)
        database = world.folder / "data" / "mergewright.db"
        eventually(lambda: _nothing_left(database, issue.id), "the outbox is empty", PATIENCE)

        def all_crossed() -> bool:
            # Webhooks that arrived during an action were skipped.
            missing = set(CrashPoint) - {
                line.split()[0] for line in crossed.read_text().splitlines()
            }
            if missing:
                issue.issue.comment("Thank you.", by=ALICE)
            return not missing

        eventually(all_crossed, "every boundary was crossed", PATIENCE)
    finally:
        assert bot.stdin is not None
        bot.stdin.close()
        bot.wait(PATIENCE)
        log.close()

    boundaries = crossed.read_text().splitlines()
    assert {line.split()[0] for line in boundaries} == set(CrashPoint)
    #: A report is edited once a minute at most, while its content changes.
    acts = {"start", "push", "open_pull", "reply", "merge", "delete_branch", "close_issue"}
    acts |= {"release", "report", "reaction", "reply_without_session", "outsider"}
    messages = {"fix_ci", "address_review"}
    for step in (CrashPoint.TAKEN, CrashPoint.DONE, CrashPoint.MARKED):
        keys = [line.split()[2] for line in boundaries if line.startswith(f"{step} ")]
        killed_at = {parse(key.replace("*", "")).kind for key in keys}
        # A message that a crash left unrecorded is recorded by the observer that sees it arrive,
        # and closing an issue is withdrawn by the one that sees it closed.
        observed = {*messages, "close_issue"}
        recorded_elsewhere = observed if step is CrashPoint.MARKED else set()
        assert killed_at | recorded_elsewhere == acts | messages, (step, keys)

    assert len(world.repo.pulls) == 1
    heads = [move.after for move in world.repo.moves if move.branch == branch and move.after]
    assert len(heads) == len(set(heads)) == 3
    merges = [m for m in world.repo.moves if m.branch == "main" and m.user == BOT]
    assert len(merges) == 1
    assert len(issue.comments_by()) == 1
    assert len(unlabelled.comments_by()) == 2
    assert len(pull.comments_by()) == 2
    assert [entry["kind"] for entry in agent.received] == ["prompt", "message", "message"]


def _nothing_left(database: Path, session: str) -> bool:
    store = Store.reading(database)
    facts = store.facts.get(session)
    found = store.sessions.get(session)
    store.close()
    return found is not None and found.status == "merged" and not facts.pending
