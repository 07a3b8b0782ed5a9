"""Publishing and merging: protected paths, the merge queue, forks, policies."""

from lifecycle.model.status import Blocker
from tests.world.waiting import eventually
from tests.world.world import ALICE, World


def test_a_change_of_a_protected_path_is_pushed_only_once_a_person_allows_it(world: World) -> None:
    world.bot_starts()
    issue = world.issue("Own the widgets").is_labelled()
    issue.agent.commits({"CODEOWNERS": "* @mallory\n"}, "Own everything").ends_its_turn()
    held = issue.becomes("needs_input")
    assert held.reason == "protected_paths"
    assert held.branch not in world.repo.heads
    commit = held.work.head
    eventually(
        lambda: any(
            f"`/mergewright allow {commit[:7]}`" in posted for posted in issue.comments_by()
        ),
        "the command is named",
    )
    issue.issue.comment(f"/mergewright allow {commit[:7]}", by=ALICE)
    assert issue.pull.pull.head == commit
    issue.pull.ci_passes().reviewer_approves()
    issue.becomes("merged")
    assert world.repo.git.run("show", "main:CODEOWNERS") == "* @mallory\n"


def test_a_token_and_a_forged_author_are_held_until_a_person_allows_the_commit(
    world: World,
) -> None:
    world.bot_starts()
    issue = world.issue("Deploy the widgets").is_labelled()
    token = "glpat-" + "x" * 20
    forged = ["git", "commit", "-q", "-m", "Deploy", "--author", "Alice <alice@example.com>"]
    agent = issue.agent.writes({"deploy.sh": f"TOKEN={token}\n"})
    agent.runs(["git", "add", "--all"], forged).ends_its_turn()
    held = issue.becomes("needs_input")
    assert held.reason == "commits_held"
    assert held.branch not in world.repo.heads
    commit = held.work.head
    for words in (
        "neither the bot nor in `policy.commit-authors`: alice@example.com",
        "deploy.sh of",
        "looks like a token or key",
    ):
        assert words in held.because
    assert token not in "".join(issue.comments_by())
    issue.issue.comment(f"/mergewright allow {commit[:7]}", by=ALICE)
    assert issue.pull.pull.head == commit


def test_the_merge_queue_merges_and_a_removal_from_it_goes_to_the_agent(
    world: World,
) -> None:
    world.repo.protect("main", required_checks=["unit"], required_reviews=1, queue=True)
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    pull = issue.pull.ci_passes().reviewer_approves()
    eventually(lambda: pull.pull.queued, "it is queued")
    assert (
        Blocker("queued", "the pull request is in GitHub's merge queue")
        in issue.becomes("approved").blockers
    )

    head = pull.pull.head
    pull.pull.check_in_queue("unit", "failure", "it broke beside the others")
    pull.pull.queue_puts_out("failed_checks")
    issue.agent.receives("it broke beside the others")
    issue.agent.commits({"widgets.txt": "two\n"}, "Fix it").ends_its_turn()
    pull.moves_from(head)
    pull.ci_passes().reviewer_approves()
    eventually(lambda: pull.pull.queued, "it is queued again")
    issue.issue.comment("/mergewright cancel", by=ALICE)
    eventually(lambda: not pull.pull.queued, "it is taken out")
    issue.becomes("mergeable")
    issue.issue.comment("/mergewright merge", by=ALICE)
    eventually(lambda: pull.pull.queued, "it is queued at a person's word")
    pull.pull.queue_merges()
    issue.becomes("merged")
    assert world.repo.git.run("show", "main:widgets.txt") == "two\n"


def test_a_background_merge_uses_a_method_the_repository_allows(world: World) -> None:
    world.repo.async_merges = True
    world.repo.merge_methods = {"rebase"}
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    issue.pull.ci_passes().reviewer_approves()
    issue.becomes("merged")
    assert world.repo.git.commit(world.repo.heads["main"]).message.strip() == "Add a widget"


def test_a_repository_narrows_the_servers_policy_and_a_broken_file_changes_nothing(
    world: World,
) -> None:
    def says(text: str | None) -> str:
        return world.repo.push("main", {".github/mergewright.toml": text}, by=ALICE)

    says('[policy]\nauto-merge = "on-command"\n')
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    issue.pull.ci_passes().reviewer_approves()
    issue.pull.has_comment("to merge it.")
    head = says('[policy]\nauto-merge = "on-a-whim"\n')
    eventually(
        lambda: [s for s in world.repo.checks.statuses_of(head) if "line 2" in str(s.description)],
        "the fault is a check run",
    )
    assert issue.becomes("mergeable")
    says(None)
    issue.becomes("merged")


def test_the_branch_is_pushed_to_a_fork_when_configured(world: World) -> None:
    fork = world.bot_has_a_fork()
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    pull = issue.pull.ci_fails(log="it broke")
    assert pull.pull.from_fork
    branch, head = pull.pull.head_branch, pull.pull.head
    assert branch not in world.repo.heads
    issue.agent.receives("it broke")
    issue.agent.commits({"widgets.txt": "two\n"}, "Fix it").ends_its_turn()
    pull.moves_from(head)
    pull.ci_passes().reviewer_approves()
    issue.becomes("merged")
    eventually(lambda: branch not in fork.heads, "its branch is deleted there")
    assert world.repo.git.run("show", "main:widgets.txt") == "two\n"


def test_a_project_has_its_own_setup_commands_and_merge_message(world: World) -> None:
    world.project = """
bootstrap = ["count=1", "echo $count >ready.txt"]
merge-title = "{issue}: {title}"
merge-message = "{body}\\n\\nSee #{number}."
"""
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.writes_summary("Add one\n\nThere is a widget.")
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    issue.pull.ci_passes().reviewer_approves()
    issue.becomes("merged")
    assert world.repo.git.run("show", "main:ready.txt") == "1\n"
    merged = world.repo.git.commit(world.repo.heads["main"]).message
    assert merged.startswith("1: Add one\n\nThere is a widget.")
    assert "\n\nSee #2.\n\n" in merged


def test_a_failed_setup_command_is_shown_and_no_agent_starts(world: World) -> None:
    world.project = """bootstrap = ["echo no compiler >&2", "(exit 3)", "echo never"]"""
    app = world.bot_starts({"restarts": 0})
    issue = world.issue("Add widgets").is_labelled()
    assert "exited with code 3" in issue.becomes("errored").because
    shown = app.wiring.locations.host.runs.output(issue.id, 1)
    assert "no compiler" in shown
    assert "A command of the setting bootstrap failed with exit code 3." in shown
    assert "never" not in shown
    assert issue.agent.received == []
