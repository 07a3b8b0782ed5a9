"""Merges make real commits; refusals use GitHub's words."""

from collections.abc import Callable
from typing import Any

import pytest

from bot.demo.github.hosting import Protection
from bot.demo.github.issues import Issue
from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from tests.demo.outside import Client

Ask = Callable[..., Client]


@pytest.fixture
def issue(repo: Repository) -> Issue:
    return repo.open_issue("Say more", by="rob")


@pytest.fixture
def pull(repo: Repository, issue: Issue) -> Pull:
    repo.push("feat", {"README.md": "one\ntwo\n3\n"}, by="wright", message="Change three")
    body = f"Closes #{issue.number}"
    return repo.open_pull("feat", title="Say more", body=body, by="wright")


def merge(ask: Client, pull: Pull, **given: Any) -> tuple[int, str]:
    """The response to a merge: its status, and its message or commit."""
    answer = ask("PUT", f"repos/{pull.repo.full_name}/pulls/{pull.number}/merge", json=given)
    body = answer.json()
    return answer.status_code, body["sha"] if answer.is_success else body["message"]


@pytest.mark.parametrize(
    ("method", "parents", "subject"),
    [
        ("merge", 2, "Merge pull request #2 from acme/feat"),
        ("squash", 1, "Say more (#2)"),
        ("rebase", 1, "Change three"),
    ],
)
def test_a_merge_makes_a_real_commit_and_closes_the_issue(
    repo: Repository, ask: Ask, pull: Pull, issue: Issue, method: str, parents: int, subject: str
) -> None:
    repo.push("main", {"other": "1\n"}, by="rob")
    tip = repo.heads["main"]
    status, sha = merge(ask(), pull, sha=pull.head, merge_method=method)
    assert status == 200, sha
    made = repo.git.commit(sha)
    assert (repo.heads["main"], made.parents[0], len(made.parents)) == (sha, tip, parents)
    assert made.message.splitlines()[0] == subject
    assert repo.git.run("show", f"{sha}:README.md") == "one\ntwo\n3\n"
    assert repo.git.run("show", f"{sha}:other") == "1\n"
    assert (pull.state, pull.merged, pull.merge_commit) == ("closed", True, sha)
    assert pull.merged_by is not None
    assert pull.merged_by.login == "wright"
    assert (issue.state, issue.state_reason) == ("closed", "completed")


def test_a_merge_into_another_branch_closes_no_issue(repo: Repository, issue: Issue) -> None:
    repo.push("next", {"a": "1\n"}, by="rob")
    repo.push("feat", {"b": "1\n"}, by="rob")
    pull = repo.open_pull("feat", "next", title="T", body=f"Closes #{issue.number}", by="rob")
    pull.merge("rob")
    assert (pull.merged, issue.state) == (True, "open")


def test_a_real_conflict_is_not_mergeable(repo: Repository, ask: Ask, pull: Pull) -> None:
    repo.push("main", {"README.md": "one\ntwo\nIII\n"}, by="rob")
    assert (pull.mergeable, pull.merge_state) == (False, "DIRTY")
    before = repo.heads["main"]
    assert merge(ask(), pull) == (405, "Pull Request is not mergeable")
    assert (repo.heads["main"], pull.state) == (before, "open")


def test_merging_a_head_that_moved_is_a_conflict(repo: Repository, ask: Ask, pull: Pull) -> None:
    judged = pull.head
    repo.push("feat", {"more": "1\n"}, by="wright")
    refusal = "Head branch was modified. Review and try the merge again."
    assert merge(ask(), pull, sha=judged) == (409, refusal)


def test_drafts_and_closed_and_merged_pull_requests_cannot_be_merged(ask: Ask, pull: Pull) -> None:
    pull.mark_draft("wright")
    assert pull.merge_state == "DRAFT"
    assert merge(ask(), pull) == (405, "Pull Request is still a draft")
    pull.mark_ready("wright")
    pull.close("rob")
    assert merge(ask(), pull) == (405, "Pull Request is not mergeable")
    pull.reopen("rob")
    assert merge(ask(), pull)[0] == 200
    assert merge(ask(), pull) == (405, "Pull Request is not mergeable")


def test_an_unknown_or_disabled_merge_method_is_refused(
    repo: Repository, ask: Ask, pull: Pull
) -> None:
    assert merge(ask(), pull, merge_method="octopus") == (422, "Validation Failed")
    repo.merge_methods = {"squash"}
    refusal = "Merge commits are not allowed on this repository."
    assert merge(ask(), pull, merge_method="merge") == (405, refusal)


def test_merging_requires_write_access(repo: Repository, ask: Ask, pull: Pull) -> None:
    assert merge(ask("mallorys"), pull)[0] == 403
    assert merge(ask(""), pull)[0] == 401
    repo.private = True
    assert merge(ask("mallorys"), pull)[0] == 404
    assert pull.state == "open"


def test_a_protected_base_requires_its_checks_and_reviews(
    repo: Repository, ask: Ask, pull: Pull
) -> None:
    repo.protect("main", required_checks=["unit"], required_reviews=1)
    assert (pull.merge_state, pull.review_decision) == ("BLOCKED", "REVIEW_REQUIRED")
    assert merge(ask(), pull)[1].startswith('Required status check "unit" is expected.')
    pull.check("unit", conclusion="failure")
    assert merge(ask(), pull)[1].startswith('Required status check "unit" is failing.')
    pull.check("unit", conclusion="success")
    assert "1 approving review is required" in merge(ask(), pull)[1]
    pull.review("mallory", "APPROVED")
    assert pull.review_decision == "REVIEW_REQUIRED"
    pull.review("rob", "CHANGES_REQUESTED")
    assert pull.review_decision == "CHANGES_REQUESTED"
    pull.review("rob", "APPROVED")
    assert (pull.merge_state, pull.review_decision) == ("CLEAN", "APPROVED")
    assert merge(ask(), pull)[0] == 200


def test_the_merge_state_tells_required_from_optional_failures(
    repo: Repository, pull: Pull
) -> None:
    assert (pull.merge_state, pull.review_decision) == ("CLEAN", None)
    pull.status("style", "failure")
    assert pull.merge_state == "UNSTABLE"
    pull.check("unit", conclusion="failure", required=True)
    assert pull.merge_state == "BLOCKED"


def test_a_strict_base_requires_an_up_to_date_head(repo: Repository, ask: Ask, pull: Pull) -> None:
    repo.protect("main", strict=True)
    tip = repo.push("main", {"other": "1\n"}, by="rob")
    assert pull.merge_state == "BEHIND"
    assert merge(ask(), pull)[0] == 405
    here = f"repos/{pull.repo.full_name}/pulls/{pull.number}/update-branch"
    wrong = ask()("PUT", here, json={"expected_head_sha": tip})
    assert (wrong.status_code, "expected head sha" in wrong.json()["message"]) == (422, True)
    before = pull.head
    assert ask()("PUT", here, json={"expected_head_sha": before}).status_code == 202
    assert repo.git.commit(pull.head).parents == (before, tip)
    assert (pull.merge_state, repo.heads["feat"]) == ("CLEAN", pull.head)
    assert ask()("PUT", here).json()["message"] == "There are no new commits on the base branch."


def test_an_update_that_conflicts_is_refused(repo: Repository, ask: Ask, pull: Pull) -> None:
    repo.push("main", {"README.md": "one\ntwo\nIII\n"}, by="rob")
    answer = ask()("PUT", f"repos/{pull.repo.full_name}/pulls/{pull.number}/update-branch")
    refusal = (answer.status_code, answer.json()["message"])
    assert refusal == (422, "merge conflict between base and head")


def test_commits_that_reach_the_base_directly_count_as_merged(repo: Repository, pull: Pull) -> None:
    repo.git.set_ref("refs/heads/main", pull.head)
    repo.refs_moved("rob")
    assert (pull.merged, pull.merge_commit) == (True, pull.head)


def test_the_queue_merges_on_what_it_merged_before(repo: Repository, pull: Pull) -> None:
    repo.push("other", {"other.py": "1\n"}, by="wright")
    other = repo.open_pull("other", title="Other", by="wright")
    repo.protect("main", queue=True)
    pull.enqueue("rob")
    other.enqueue("rob")
    assert {pull.queue_branch, other.queue_branch} < set(repo.heads)
    pull.queue_merges()
    other.queue_merges()
    files = ("README.md", "other.py")
    assert [repo.git.run("show", f"main:{file}")[-2:] for file in files] == ["3\n", "1\n"]
    assert sorted(repo.heads) == ["feat", "main", "other"]


def test_a_new_required_check_keeps_the_other_rules(repo: Repository, pull: Pull) -> None:
    repo.protect("main", ("lint",), 2, signatures=True, pushers=("ann",), bypass="always")
    pull.check("unit", required=True)
    repo.protections["main"].required_checks.remove("unit")
    assert repo.protections["main"] == Protection(
        required_checks=["lint"],
        required_reviews=2,
        signatures=True,
        pushers=("ann",),
        bypass="always",
    )
