"""What agents do, and how sessions react."""

from pathlib import Path

from tests.world.waiting import eventually
from tests.world.world import ALICE, World


def test_a_crashed_agent_is_restarted_and_resumes(world: World) -> None:
    issue = world.agent_starts()
    issue.agent.writes({"widgets.txt": "half\n"}).exits(3)
    assert issue.agent.resumes()["run"] == 2
    issue.agent.commits({"widgets.txt": "whole\n"}).ends_its_turn()
    assert issue.pull


def test_a_session_fails_after_repeated_crashes_and_reports_the_last_output(world: World) -> None:
    issue = world.agent_starts(restarts=2)
    for _ in range(3):
        issue.agent.exits(3)
    session = issue.becomes("errored")
    assert session.reason == "provider_exit"
    assert "exited with code 3" in session.because
    eventually(
        lambda: any("has failed" in comment for comment in issue.comments_by()),
        "people are notified",
    )
    assert [entry["run"] for entry in issue.agent.received] == [1, 2, 3]


def test_an_agent_that_exited_gets_the_next_message_as_its_prompt(
    world: World,
) -> None:
    issue = world.agent_starts()
    issue.agent.commits({"widgets.txt": "one\n"}).exits(0)
    pull = issue.pull
    pull.ci_fails("unit", log="the widget must be xyzzy")
    message = issue.agent.receives("xyzzy")
    assert (message["kind"], message["run"]) == ("prompt", 2)
    first = pull.pull.head
    issue.agent.commits({"widgets.txt": "xyzzy\n"}).exits(0)
    pull.moves_from(first)


def test_people_are_notified_of_a_question_at_once(world: World) -> None:
    issue = world.agent_starts()
    issue.agent.asks("Blue or green?")
    assert "Blue or green?" in issue.becomes("needs_input").because
    eventually(
        lambda: any("Blue or green?" in comment for comment in issue.comments_by()),
        "the question is posted",
    )


def test_uncommitted_work_gets_one_reminder_then_people_are_notified(world: World) -> None:
    issue = world.agent_starts()
    issue.agent.writes({"widgets.txt": "one\n"}).ends_its_turn()
    issue.agent.receives("uncommitted changes")
    issue.agent.writes({"more.txt": "two\n"}).ends_its_turn()
    assert issue.becomes("needs_input").reason == "uncommitted_work"
    issue.agent.commits({"more.txt": "three\n"}).ends_its_turn()
    assert issue.pull
    assert sum("uncommitted changes" in entry["text"] for entry in issue.agent.received) == 1


def test_commits_on_another_branch_are_adopted_or_the_agent_is_asked_to_move_them(
    world: World,
) -> None:
    issue = world.agent_starts()
    issue.agent.runs(["git", "checkout", "-q", "-b", "fix-widgets"])
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    pull = issue.pull.ci_fails(log="it broke")
    assert world.repo.git.run("show", f"{pull.pull.head}:widgets.txt") == "one\n"
    issue.agent.receives("it broke")

    first = pull.pull.head
    issue.agent.runs(["git", "checkout", "-q", "--detach", "origin/main"])
    issue.agent.commits({"widgets.txt": "two\n"}, "Fix it").ends_its_turn()
    branch = pull.pull.head_branch
    asked = issue.agent.receives("detached HEAD")
    assert f"git checkout {branch}" in asked["text"]
    issue.agent.runs(["git", "checkout", "-q", branch])
    issue.agent.commits({"widgets.txt": "three\n"}, "Fix it on the branch").ends_its_turn()
    head = pull.moves_from(first)
    assert world.repo.git.run("show", f"{head}:widgets.txt") == "three\n"
    assert not any("uncommitted" in entry["text"] for entry in issue.agent.received)


def test_checks_that_stay_red_are_escalated_after_the_last_repair(world: World) -> None:
    issue = world.agent_opens_a_pull_request(ci_repairs=2)
    pull = issue.pull
    for number in range(2):
        head = pull.pull.head
        pull.ci_fails("unit", log=f"it broke {number}")
        issue.agent.receives(f"it broke {number}")
        issue.agent.commits({"widgets.txt": f"{number}\n"}).ends_its_turn()
        pull.moves_from(head)
    pull.ci_fails("unit", log="it broke for good")
    assert issue.becomes("needs_input").reason == "repairs_exhausted"
    pull.has_comment("still fail")
    assert "for good" not in str(issue.agent.received)


def test_people_are_notified_when_an_agent_commits_nothing_after_red_checks(world: World) -> None:
    issue = world.agent_opens_a_pull_request()
    issue.pull.ci_fails("unit", log="it broke")
    issue.agent.receives("it broke")
    issue.agent.ends_its_turn("I cannot.")
    assert "without a commit" in issue.becomes("needs_input").because


def test_the_agent_resolves_a_conflict_by_merging_the_base(world: World) -> None:
    issue = world.agent_starts()
    issue.agent.commits({"README.md": "# Our widgets\n"}).ends_its_turn()
    pull = issue.pull
    head = pull.pull.head
    world.repo.push("main", {"README.md": "# Their widgets\n"}, by=ALICE)
    issue.agent.receives("conflicts with its base branch")
    issue.agent.runs(
        ["git", "fetch", "--quiet", "origin"],
        ["sh", "-c", "git merge --quiet origin/main >/dev/null || true"],
    )
    issue.agent.commits({"README.md": "# All widgets\n"}, "Merge main").ends_its_turn()
    pull.moves_from(head)
    eventually(lambda: pull.pull.mergeable, "the conflict is resolved")


def test_processes_of_an_agent_do_not_outlive_its_session(world: World) -> None:
    issue = world.agent_starts()
    issue.agent.runs(["sh", "-c", "setsid sleep 987 >/dev/null 2>&1 & echo $! > ../pid"])
    pid = world.folder / "data" / "workspaces" / issue.id / "pid"
    eventually(pid.exists, "the program runs")
    number = int(eventually(lambda: pid.read_text().strip(), "its number"))
    issue.issue.unlabel("mergewright", by=ALICE)
    issue.becomes("terminated")
    eventually(lambda: not _alive(number), "the program is gone")


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # The process ended, maybe during the read.
        return False
