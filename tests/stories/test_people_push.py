"""People push to the agent's branch: their commits are kept, and the agent gets no work for now."""

from datetime import datetime
from typing import Any

import pytest

from lifecycle.model import keys
from lifecycle.model.key import Key
from tests.world.waiting import eventually
from tests.world.world import ALICE, ROB, World


def test_three_failed_repairs_are_escalated_until_a_person_pushes(
    world: World,
) -> None:
    issue = world.agent_opens_a_pull_request()
    pull = issue.pull
    for number in range(3):
        head = pull.pull.head
        pull.ci_fails("unit", log=f"it broke {number}")
        issue.agent.receives(f"it broke {number}")
        issue.agent.commits({"widgets.txt": f"{number}\n"}).ends_its_turn()
        pull.moves_from(head)
    pull.ci_fails("unit", log="it broke for good")
    assert issue.becomes("needs_input").reason == "repairs_exhausted"
    pull.has_comment("still fail after the agent tried to repair them 3 times")

    world.repo.push(pull.pull.head_branch, {"fix.txt": "by hand\n"}, by=ROB)
    pull.ci_fails("unit", log="it broke once more")
    assert issue.becomes("ci_failed").reason == "person_pushed"
    pull.has_comment("the agent gets no more work on it for now")
    assert "once more" not in str(issue.agent.received)

    pull.pull.comment("/mergewright resume", by=ALICE)
    issue.agent.receives("it broke once more")
    head = pull.pull.head
    issue.agent.commits({"widgets.txt": "fixed\n"}).ends_its_turn()
    pull.moves_from(head)
    pull.ci_passes().reviewer_approves(by=ROB)
    says = "the approval of @rob, who pushed commits to the branch, does not count"
    eventually(lambda: says in str(issue.session and issue.session.blockers), "it does not count")
    world.repo.permission(world.github.user("carol").login, "write")
    pull.reviewer_approves(by="carol")
    issue.becomes("merged")
    assert world.repo.git.run("show", "main:fix.txt") == "by hand\n"


def test_a_persons_push_during_a_turn_is_merged_at_its_end(world: World) -> None:
    issue = world.agent_opens_a_pull_request()
    pull = issue.pull
    pull.pull.comment("Please write two.", by=ALICE)
    issue.agent.receives("Please write two.")
    issue.agent.commits({"more.txt": "two\n"}, "Write two")
    theirs = world.repo.push(pull.pull.head_branch, {"theirs.txt": "mine\n"}, by=ALICE)
    pull.has_comment("the agent gets no more work on it for now")
    issue.agent.ends_its_turn()
    head = pull.moves_from(theirs)

    assert world.repo.git.contains(head, theirs)
    files = world.folder / "data" / "workspaces" / issue.id / "checkout"
    assert (files / "theirs.txt").read_text() == "mine\n"
    assert (files / "more.txt").read_text() == "two\n"
    pull.ci_fails("unit", log="it broke")
    issue.becomes("ci_failed")
    assert "it broke" not in str(issue.agent.received)
    pull.pull.comment("Please mend it.", by=ALICE)
    issue.agent.receives("it broke")


def test_a_merge_of_remote_commits_is_done_once_across_a_crash(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue = world.agent_opens_a_pull_request()
    store, theirs, unmarked = world.store, "", list[Key]()
    mark = store.outbox.mark_done

    def crashes(seq: int, result: str, now: datetime, **learned: Any) -> None:
        (key,) = (one.key for one in store.outbox.of(issue.id) if one.seq == seq)
        if key == keys.merge_remote(theirs) and not unmarked:
            unmarked.append(key)
            raise OSError("as if the bot had died here")
        mark(seq, result, now, **learned)

    monkeypatch.setattr(store.outbox, "mark_done", crashes)
    issue.pull.pull.comment("Please write two.", by=ALICE)
    issue.agent.receives("Please write two.")
    issue.agent.commits({"more.txt": "two\n"}, "Write two")
    theirs = world.repo.push(issue.pull.pull.head_branch, {"theirs.txt": "mine\n"}, by=ALICE)
    issue.pull.has_comment("the agent gets no more work on it for now")
    issue.agent.ends_its_turn()
    head = issue.pull.moves_from(theirs)
    assert unmarked
    merges = world.repo.git.run("rev-list", "--merges", f"{theirs}..{head}").split()
    assert merges == [head]


def test_a_commit_a_person_removed_from_the_branch_is_not_pushed_again(
    world: World,
) -> None:
    issue = world.agent_opens_a_pull_request()
    pull = issue.pull
    first = pull.pull.head
    pull.pull.comment("Please write two.", by=ALICE)
    issue.agent.receives("Please write two.")
    issue.agent.commits({"two.txt": "two\n"}, "Write two").ends_its_turn()
    second = pull.moves_from(first)
    eventually(lambda: issue.session and issue.session.pulls[0].head == second, "it is read")
    world.repo.reset(pull.pull.head_branch, first, by=ALICE)
    pull.has_comment("the agent gets no more work on it for now")
    files = world.folder / "data" / "workspaces" / issue.id / "checkout"
    eventually(lambda: not (files / "two.txt").exists(), "the workspace follows")

    pull.pull.comment("Please write three.", by=ALICE)
    issue.agent.receives("Please write three.")
    issue.agent.commits({"three.txt": "three\n"}, "Write three").ends_its_turn()
    third = pull.moves_from(first)
    assert world.repo.git.contains(third, first)
    assert not world.repo.git.contains(third, second)


def test_an_approval_survives_an_update_of_the_branch(world: World) -> None:
    issue = world.agent_opens_a_pull_request()
    pull = issue.pull.ci_passes()
    first = pull.pull.head
    world.repo.push("main", {"other.txt": "theirs\n"}, by=ALICE)
    world.repo.protect("main", required_checks=["unit"], required_reviews=1, strict=True)
    pull.reviewer_approves()
    head = pull.moves_from(first)
    assert world.repo.git.contains(head, first)
    pull.ci_passes()
    issue.becomes("merged")
    assert [review.commit_id for review in pull.pull.reviews] == [first]
    assert all(entry["kind"] == "prompt" for entry in issue.agent.received)


def test_cancelled_checks_are_rerun_once_before_people_are_notified(world: World) -> None:
    issue = world.agent_opens_a_pull_request(settle_seconds=1)
    pull = issue.pull
    pull.pull.check("unit", conclusion="cancelled", suite="ci")
    (again,) = eventually(
        lambda: [run for run in world.repo.checks.runs_of(pull.pull.head) if run.attempt == 2],
        "the check runs once more",
    )
    again.complete("cancelled")
    assert issue.becomes("needs_input").reason == "checks_held"
    assert [run.attempt for run in world.repo.checks.runs_of(pull.pull.head)] == [2]
    pull.ci_passes().reviewer_approves()
    issue.becomes("merged")
