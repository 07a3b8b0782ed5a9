"""Git over HTTP with the demo's stand-in for GitHub: permissions, and the effects of pushes."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.demo.github.git import Git
from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from tests.demo.outside import Checkout, HookServer
from tests.world.faulty_github import FaultyGitHub
from tests.world.waiting import eventually

CheckoutFor = Callable[[str], Checkout]


def test_a_push_moves_the_head_of_its_pull_request(
    github: FaultyGitHub, repo: Repository, checkout: CheckoutFor, hook_server: HookServer
) -> None:
    moved: list[tuple[int, str]] = []
    github.on_head(lambda pull: moved.append((pull.number, pull.head)))
    work = checkout("wrights").clone()
    first = work.commit("feat", one="1\n")
    work.git("push", "--quiet", "origin", "feat")
    pull = repo.open_pull("feat", title="Feature", by="wright")
    eventually(lambda: moved, "the first head")
    repo.webhook(hook_server.url, "secret")
    second = work.commit("feat", two="2\n")
    work.git("push", "--quiet", "origin", "feat")
    assert (pull.head, repo.heads["feat"]) == (second, second)
    eventually(lambda: len(moved) == 2, "both heads")
    assert moved == [(pull.number, first), (pull.number, second)]
    eventually(lambda: hook_server.events() == ["ping", "push", "pull_request"], "the events")
    assert b'"action":"synchronize"' in hook_server.received[2].body
    assert f'"before":"{first}","after":"{second}"'.encode() in hook_server.received[2].body
    pushed = [(m.user, m.after) for m in github.pushes if m.repository == repo.full_name]
    assert pushed == [("wright", first), ("wright", second)]


@pytest.mark.parametrize(
    ("token", "says"),
    [
        ("mallorys", "denied to mallory"),
        ("", "could not read Username"),
        ("forged", "could not read Username|Authentication failed"),
    ],
)
def test_a_push_without_permission_is_refused(
    repo: Repository, checkout: CheckoutFor, token: str, says: str
) -> None:
    work = checkout(token)
    work.token, given = "", work.token
    work.clone().commit("feat", one="1\n")
    work.token = given
    output = work.git("push", "origin", "feat", fails=True)
    assert any(text in output for text in says.split("|")), output
    assert "feat" not in repo.heads


def test_an_unknown_token_cannot_read_even_public_repositories(
    repo: Repository, checkout: CheckoutFor
) -> None:
    output = checkout("forged").git("ls-remote", repo.clone_url, fails=True)
    assert "could not read Username" in output or "Authentication failed" in output


def test_a_push_to_a_protected_branch_is_refused(repo: Repository, checkout: CheckoutFor) -> None:
    before = repo.heads["main"]
    repo.protect("main", required_checks=["unit"])
    work = checkout("wrights").clone()
    work.commit("main", one="1\n")
    assert "GH006" in work.git("push", "origin", "main", fails=True)
    assert repo.heads["main"] == before


def test_a_private_repository_is_invisible_to_outsiders(
    repo: Repository, checkout: CheckoutFor
) -> None:
    repo.private = True
    assert "not found" in checkout("mallorys").git("ls-remote", repo.clone_url, fails=True)
    assert "refs/heads/main" in checkout("robs").git("ls-remote", repo.clone_url)


def test_the_head_of_a_pull_request_outlives_its_branch(
    repo: Repository, checkout: CheckoutFor
) -> None:
    head = repo.push("feat", {"one": "1\n"}, by="rob")
    pull = repo.open_pull("feat", title="Feature", by="rob")
    repo.delete_branch("feat", "rob")
    assert pull.state == "closed"
    assert checkout("wrights").git("ls-remote", repo.clone_url, pull.ref).startswith(head)


def test_pushes_to_pull_request_refs_are_refused(repo: Repository, checkout: CheckoutFor) -> None:
    work = checkout("wrights").clone()
    output = work.git("push", "origin", "HEAD:refs/pull/7/head", fails=True)
    assert "hidden ref" in output


def test_a_commit_can_be_fetched_by_its_id_and_partially(
    repo: Repository, checkout: CheckoutFor
) -> None:
    gone = repo.push("feat", {"one": "1\n"}, by="rob")
    repo.delete_branch("feat", "rob")
    work = checkout("wrights").clone()
    # Only protocol version 0 needs the server's permission to fetch a commit.
    work.git("-c", "protocol.version=0", "fetch", "--filter=blob:none", "origin", gone)
    missing = work.git("rev-list", "--objects", "--missing=print", gone, "^origin/main")
    assert "\n?" in missing


def commented(repo: Repository) -> Pull:
    """A pull request with a thread on the third line of the README."""
    repo.push("feat", {"README.md": "one\ntwo\n3\n"}, by="wright")
    pull = repo.open_pull("feat", title="Feature", by="wright")
    pull.review("rob", "CHANGES_REQUESTED", threads=[("README.md", 3, "Why?")])
    return pull


def test_a_thread_on_a_file_that_had_no_final_newline_shows_its_line(repo: Repository) -> None:
    repo.push("main", {"note": "a"}, by="rob")
    repo.push("feat", {"note": "b\n"}, by="wright")
    pull = repo.open_pull("feat", title="Feature", by="wright")
    pull.review("rob", "CHANGES_REQUESTED", threads=[("note", 1, "Why?")])
    assert pull.threads[0].diff_hunk.endswith("+b")


def test_a_thread_is_outdated_only_once_its_file_changes(repo: Repository) -> None:
    (thread,) = commented(repo).threads
    assert thread.diff_hunk.endswith("+3")
    repo.push("feat", {"other": "1\n"}, by="wright")
    assert (thread.outdated, thread.line) == (False, 3)
    repo.push("feat", {"README.md": "one\ntwo\nIII\n"}, by="wright")
    assert (thread.outdated, thread.line, thread.original_line) == (True, None, 3)


def test_an_approval_stays_on_its_commit(repo: Repository) -> None:
    pull = commented(repo)
    review = pull.review("rob", "APPROVED")
    approved = pull.head
    repo.push("feat", {"other": "1\n"}, by="wright")
    assert (review.commit_id, review.state) == (approved, "APPROVED") != (pull.head, "APPROVED")


def test_a_forks_branch_can_be_the_head_of_a_pull_request(repo: Repository) -> None:
    fork = repo.fork("mallory")
    fork.push("feat", {"one": "1\n"}, by="mallory")
    pull = repo.open_pull("feat", title="Mine", by="mallory", source=fork)
    assert "feat" not in repo.heads
    pushed = fork.push("feat", {"two": "2\n"}, by="mallory")
    assert (pull.head, pull.from_fork, pull.mergeable) == (pushed, True, True)
    pull.merge("rob")
    assert repo.git.contains(repo.heads["main"], pushed)


def test_the_base_of_a_pull_request_does_not_follow_its_branch(repo: Repository) -> None:
    pull = commented(repo)
    before = repo.heads["main"]
    tip = repo.push("main", {"other": "1\n"}, by="rob")
    assert (pull.base, pull.base_tip) == (before, tip)
    repo.push("feat", {"more": "1\n"}, by="wright")
    assert pull.base == tip


def test_a_commit_on_the_default_branch_closes_the_issues_it_names(repo: Repository) -> None:
    issue = repo.open_issue("Broken", by="rob")
    repo.push("feat", {"a": "1\n"}, by="rob", message=f"Fix it\n\nFixes #{issue.number}")
    assert issue.state == "open"
    repo.push("main", {"b": "1\n"}, by="rob", message=f"Fix it\n\nFixes #{issue.number}")
    assert (issue.state, issue.state_reason) == ("closed", "completed")


def test_an_interrupt_in_the_terminal_does_not_reach_the_git_of_the_stand_in(
    tmp_path: Path,
) -> None:
    """It goes to the whole process group of the demo, which finishes its requests first."""
    git = Git(tmp_path / "repository.git")
    git.init("main")
    group = git.run("-c", "alias.group=!cut -d ' ' -f 5 /proc/self/stat", "group")
    assert int(group) != os.getpgrp()
