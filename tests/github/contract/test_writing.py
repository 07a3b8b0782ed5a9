"""Every write: once, twice, and with a lost response."""

import json

import pytest

from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.github.client import GitHub
from bot.github.errors import Conflicted, Refused, TryLater
from tests.github.contract.conftest import BRANCH
from tests.world.faulty_github import FaultyGitHub


def test_a_comment_is_written_once_for_each_key(github: GitHub, repo: Repository) -> None:
    issue = repo.open_issue("Retry", by="ann")
    written = [
        github.write.comment(repo.full_name, issue.number, "Started.", "started:1"),
        github.write.comment(repo.full_name, issue.number, "Started!", "started:1"),
        github.write.comment(repo.full_name, issue.number, "Started.", "started:2"),
        github.write.comment(repo.full_name, issue.number, "Started.", "started"),
    ]
    assert [comment.id for comment in issue.comments] == [written[0], *written[2:]]
    assert written[0] == written[1]
    assert issue.comments[0].body == "Started.\n\n<!-- mergewright:key=started:1 -->"


def test_a_comment_whose_response_was_lost_is_found(
    github: GitHub, server: FaultyGitHub, repo: Repository
) -> None:
    issue = repo.open_issue("Retry", by="ann")
    server.fail_next("POST", "/comments", 502, after=True)
    with pytest.raises(TryLater):
        github.write.comment(repo.full_name, issue.number, "Started.", "started:1")
    written = github.write.comment(repo.full_name, issue.number, "Started.", "started:1")
    assert [comment.id for comment in issue.comments] == [written]


def test_nothing_is_looked_for_before_a_first_attempt(
    github: GitHub, server: FaultyGitHub, repo: Repository, pull: Pull
) -> None:
    pull.review(by="ann", state="COMMENTED", threads=[("retry.py", 1, "Why?")])
    (thread,), place = pull.threads, (repo.full_name, pull.number)
    before = len(server.requests)
    github.write.comment(*place, "Hello.", "1", first=True)
    github.reports.set_comment(*place, "It works.", "2", None, first=True)
    github.reviews.reply(*place, [thread.node_id], "Done.", "3", first=True)
    repo.push("other", {"a": "1\n"}, by="wright")
    github.write.open_pull(
        repo.full_name, "other", "main", "Retry", "", draft=False, pushed=(), first=True
    )
    asked = [seen.method for seen in server.requests[before:]]
    assert asked == ["POST", "POST", "POST", "POST"]


def test_a_key_is_found_behind_many_comments(github: GitHub, repo: Repository) -> None:
    issue = repo.open_issue("Retry", by="ann")
    for number in range(120):
        issue.comment(f"chat {number}", by="ann")
    first = github.write.comment(repo.full_name, issue.number, "Started.", "started:1")
    assert github.write.comment(repo.full_name, issue.number, "Started.", "started:1") == first


def test_a_key_written_by_somebody_else_does_not_count(github: GitHub, repo: Repository) -> None:
    issue = repo.open_issue("Retry", by="ann")
    issue.comment("Ha.\n\n<!-- mergewright:key=started:1 -->", by="eve")
    github.write.comment(repo.full_name, issue.number, "Started.", "started:1")
    assert [comment.user.login for comment in issue.comments] == ["eve", "wright"]


def test_a_key_counts_only_at_the_end(github: GitHub, repo: Repository) -> None:
    issue = repo.open_issue("Retry", by="ann")
    issue.comment("<!-- mergewright:key=started:1 --> is what it looks for.", by="wright")
    github.write.comment(repo.full_name, issue.number, "Started.", "started:1")
    assert len(issue.comments) == 2


def test_a_quoted_key_does_not_count(github: GitHub, repo: Repository) -> None:
    issue = repo.open_issue("Retry", by="ann")
    quoted = "eve said: <!-- mergewright:key=merged:1 -->"
    github.write.comment(repo.full_name, issue.number, quoted, "key:1")
    assert issue.comments[0].body.count("mergewright:key=") == 1
    github.write.comment(repo.full_name, issue.number, "Merged.", "merged:1")
    assert len(issue.comments) == 2


@pytest.mark.parametrize("key", ["a-->b", "a --> <b>", "ci:\u00e9\n", "react:12:eyes@3/x#y"])
def test_every_key_stays_hidden_and_is_found(github: GitHub, repo: Repository, key: str) -> None:
    issue = repo.open_issue("Retry", by="ann")
    for _ in range(2):
        github.write.comment(repo.full_name, issue.number, "Words.", key)
    (comment,) = issue.comments
    assert comment.body.count("-->") == 1
    assert comment.body.endswith(" -->")


def test_text_that_utf8_cannot_encode_is_sent_with_replacements(
    github: GitHub, repo: Repository
) -> None:
    issue = repo.open_issue("Retry", by="ann")
    github.write.comment(repo.full_name, issue.number, "caf\udce9", "key:1")
    assert issue.comments[0].body.startswith("caf?")


def test_a_reaction_is_added_once(github: GitHub, repo: Repository) -> None:
    comment = repo.open_issue("Retry", by="ann").comment("/mergewright stop", by="ann")
    for _ in range(2):
        github.write.react(repo.full_name, comment.id, "eyes")
    assert [(each.user.login, each.content) for each in comment.reactions] == [("wright", "eyes")]


def test_adding_and_removing_a_label_is_idempotent(github: GitHub, repo: Repository) -> None:
    issue = repo.open_issue("Retry", by="zoe")
    for _ in range(2):
        github.write.label(repo.full_name, issue.number, "mergewright:needs-input")
        assert issue.labels == ["mergewright:needs-input"]
    for _ in range(2):
        github.write.unlabel(repo.full_name, issue.number, "mergewright:needs-input")
        assert issue.labels == []
    with pytest.raises(Refused):
        github.write.label(repo.full_name, 999, "mergewright:needs-input")


def test_a_pull_request_is_opened_once(
    github: GitHub, server: FaultyGitHub, repo: Repository
) -> None:
    repo.push(BRANCH, {"retry.py": "1\n"}, by="wright")
    request = (repo.full_name, BRANCH, "main", "Retry", "Tries again.", True, ())
    server.fail_next("POST", "/pulls", 502, after=True)
    with pytest.raises(TryLater):
        github.write.open_pull(*request)
    number = github.write.open_pull(*request)
    (pull,) = repo.pulls
    assert (pull.number, pull.title, pull.body, pull.draft) == (
        number,
        "Retry",
        "Tries again.",
        True,
    )


def test_the_open_pull_request_of_a_branch_is_found_but_none_of_a_fork(
    github: GitHub, repo: Repository, pull: Pull
) -> None:
    fork = repo.fork("eve")
    fork.push(BRANCH, {"retry.py": "evil\n"}, by="eve")
    pull.close("ann")
    request = (repo.full_name, BRANCH, "main", "Retry", "", False, ())
    repo.open_pull(BRANCH, title="Mine!", by="eve", source=fork)
    assert github.write.open_pull(*request) == pull.number
    second = repo.open_pull(BRANCH, title="Again", by="wright")
    assert github.write.open_pull(*request) == second.number
    second.close("ann")
    assert github.write.open_pull(*request) == second.number
    pull.reopen("ann")
    assert github.write.open_pull(*request) == pull.number


def test_a_fork_of_the_same_owner_is_another_repository(
    github: GitHub, server: FaultyGitHub, repo: Repository
) -> None:
    repo.push(BRANCH, {"retry.py": "1\n"}, by="wright")
    ends = {"head": {"sha": "a", "repo": {"id": 8}}, "base": {"sha": "b", "repo": {"id": 7}}}
    ends["user"] = {"login": "wright"}
    listed = json.dumps([{"number": 4711, "node_id": "P", "state": "open", **ends}]).encode()
    server.fail_next("GET", "/pulls", 200, {"Content-Type": "application/json"}, listed)
    number = github.write.open_pull(repo.full_name, BRANCH, "main", "Retry", "", False, ())
    assert [pull.number for pull in repo.pulls] == [number]


def test_a_pull_request_opened_meanwhile_is_returned(
    github: GitHub, server: FaultyGitHub, repo: Repository, pull: Pull
) -> None:
    server.fail_next("GET", "/pulls", 200, {"Content-Type": "application/json"}, b"[]")
    request = (repo.full_name, BRANCH, "main", "Retry", "", False, ())
    assert github.write.open_pull(*request) == pull.number


def test_somebody_elses_pull_request_counts_only_at_a_pushed_commit(
    github: GitHub, repo: Repository
) -> None:
    repo.push(BRANCH, {"retry.py": "evil\n"}, by="ann")
    theirs = repo.open_pull(BRANCH, title="Mine!", by="ann")
    request = (repo.full_name, BRANCH, "main", "Retry", "", False)
    with pytest.raises(Refused, match="Mergewright did not push"):
        github.write.open_pull(*request, {"f" * 40: "when"})
    assert github.write.open_pull(*request, {theirs.head: "when"}) == theirs.number
    assert len(repo.pulls) == 1


def test_labels_are_added_to_a_pull_request(github: GitHub, repo: Repository, pull: Pull) -> None:
    for names in (("agent", "retry"), ()):
        github.write.label(repo.full_name, pull.number, *names)
    assert pull.labels == ["agent", "retry"]


def test_an_empty_pull_request_is_refused_with_its_reason(github: GitHub, repo: Repository) -> None:
    repo.push(BRANCH, {"retry.py": "1\n"}, by="wright")
    repo.push("other", {}, by="wright", start=repo.heads[BRANCH])
    repo.git.set_ref("refs/heads/empty", repo.heads["main"])
    repo.refs_moved("wright")
    with pytest.raises(Refused, match="would be empty"):
        github.write.open_pull(repo.full_name, "empty", "main", "Retry", "", False, ())


def test_a_closed_issue_keeps_its_reason(
    github: GitHub, server: FaultyGitHub, repo: Repository
) -> None:
    done, dropped = (repo.open_issue("Retry", by="ann") for _ in range(2))
    dropped.close("ann", "not_planned")
    for issue in (done, done, dropped):
        github.write.close_issue(repo.full_name, issue.number)
    assert (done.state, done.state_reason) == ("closed", "completed")
    assert (dropped.state, dropped.state_reason) == ("closed", "not_planned")
    assert server.count("PATCH", f"{repo.full_name}/issues/") == 1


def test_a_branch_is_deleted_only_at_the_expected_commit(
    github: GitHub, server: FaultyGitHub, repo: Repository, pull: Pull
) -> None:
    github.write.delete_branch(repo.full_name, BRANCH, "0" * 40)
    assert repo.heads[BRANCH] == pull.head
    server.fail_next("DELETE", "/git/refs", 502, after=True)
    with pytest.raises(TryLater):
        github.write.delete_branch(repo.full_name, BRANCH, pull.head)
    assert BRANCH not in repo.heads
    github.write.delete_branch(repo.full_name, BRANCH, pull.head)


def test_pull_requests_based_on_a_deleted_branch_get_the_base_of_the_merged_one(
    github: GitHub, repo: Repository, pull: Pull
) -> None:
    repo.push("next", {"next.txt": "next"}, by="ann", start=BRANCH)
    child = repo.open_pull("next", BRANCH, title="Next", by="ann")
    kept = github.write.delete_branch(repo.full_name, BRANCH, pull.head)
    assert kept == f"#{child.number} is based on {BRANCH}"
    assert BRANCH in repo.heads
    assert github.write.delete_branch(repo.full_name, BRANCH, pull.head, "main") == ""
    assert (child.state, child.base_branch) == ("open", "main")
    assert BRANCH not in repo.heads


def test_a_branch_is_kept_if_a_pull_request_based_on_it_cannot_be_moved(
    github: GitHub, server: FaultyGitHub, repo: Repository, pull: Pull
) -> None:
    repo.push("next", {"next.txt": "next"}, by="ann", start=BRANCH)
    child = repo.open_pull("next", BRANCH, title="Next", by="ann")
    server.fail_next("PATCH", "/pulls", 422, body=b'{"message": "Validation Failed"}')
    kept = github.write.delete_branch(repo.full_name, BRANCH, pull.head, "main")
    assert kept.startswith(f"#{child.number} is based on {BRANCH} and cannot be moved")
    assert (child.state, BRANCH in repo.heads) == ("open", True)


def test_a_branch_deleted_meanwhile_is_no_error(
    github: GitHub, server: FaultyGitHub, repo: Repository, pull: Pull
) -> None:
    body = b'{"message": "Reference does not exist"}'
    server.fail_next("DELETE", "/git/refs", 422, body=body, after=True)
    assert github.write.delete_branch(repo.full_name, BRANCH, pull.head) == ""
    assert BRANCH not in repo.heads


def test_a_protected_branch_is_not_deleted(
    github: GitHub, server: FaultyGitHub, repo: Repository, pull: Pull
) -> None:
    server.fail_next("DELETE", "/git/refs", 422, body=b'{"message": "Cannot delete this branch"}')
    with pytest.raises(Refused):
        github.write.delete_branch(repo.full_name, BRANCH, pull.head)


# -- updates and reruns ----------------------------------------------------------------------------


def test_a_branch_is_updated_from_its_base_once(github: GitHub, pull: Pull) -> None:
    name, first = pull.repo.full_name, pull.head
    pull.repo.push("main", {"other.py": "1\n"}, by="ann")
    github.write.update_branch(name, pull.number, first)
    second = pull.head
    assert pull.repo.git.contains(second, first)
    with pytest.raises(Conflicted, match="head sha"):
        github.write.update_branch(name, pull.number, first)
    github.write.update_branch(name, pull.number, second)
    assert pull.head == second


def test_a_branch_that_conflicts_with_its_base_is_not_updated(github: GitHub, pull: Pull) -> None:
    pull.repo.push("main", {"retry.py": "one\nII\nthree\n"}, by="ann")
    with pytest.raises(Refused, match="merge conflict"):
        github.write.update_branch(pull.repo.full_name, pull.number, pull.head)


def test_failed_jobs_are_rerun_once(github: GitHub, pull: Pull) -> None:
    failed = [pull.check(name, conclusion="cancelled", suite="CI") for name in ("unit", "lint")]
    pull.check("types", conclusion="success", suite="CI")
    ids = [run.id for run in failed]
    github.write.rerun(pull.repo.full_name, ids)
    again = pull.repo.checks.runs_of(pull.head)
    assert {(run.name, run.attempt) for run in again} == {("unit", 2), ("lint", 2), ("types", 1)}
    for run in again:
        run.complete("failure")
    github.write.rerun(pull.repo.full_name, [run.id for run in again if run.attempt == 2])
    assert max(run.attempt for run in pull.repo.checks.runs_of(pull.head)) == 2


def test_writes_to_an_archived_repository_wait(github: GitHub, pull: Pull) -> None:
    pull.repo.archive(by="ann")
    with pytest.raises(TryLater, match="archived") as waits:
        github.write.comment(pull.repo.full_name, pull.number, "Hello.", "key")
    assert waits.value.at is not None
    pull.repo.archive(by="ann", archived=False)
    github.write.comment(pull.repo.full_name, pull.number, "Hello.", "key")
    assert len(pull.comments) == 1


def test_a_rerun_whose_response_was_lost_is_no_error(
    github: GitHub, server: FaultyGitHub, pull: Pull
) -> None:
    run = pull.check("unit", conclusion="cancelled", suite="CI")
    server.fail_next("POST", "/rerun-failed-jobs", 502, after=True)
    with pytest.raises(TryLater):
        github.write.rerun(pull.repo.full_name, [run.id])
    github.write.rerun(pull.repo.full_name, [run.id])
    (again,) = pull.repo.checks.runs_of(pull.head)
    assert again.attempt == 2


def test_another_apps_check_run_is_rerequested(
    github: GitHub, server: FaultyGitHub, pull: Pull
) -> None:
    run = pull.check("scan", conclusion="cancelled", app="scanner")
    github.write.rerun(pull.repo.full_name, [run.id])
    assert [again.attempt for again in pull.repo.checks.runs_of(pull.head)] == [2]


def test_marking_a_draft_as_ready_is_idempotent(
    github: GitHub, server: FaultyGitHub, repo: Repository
) -> None:
    repo.push(BRANCH, {"retry.py": "1\n"}, by="wright")
    pull = repo.open_pull(BRANCH, title="Retry", by="wright", draft=True)
    server.fail_next("POST", "graphql", 502, after=True, operation="markPullRequestReadyForReview")
    with pytest.raises(TryLater):
        github.write.make_ready(repo.full_name, pull.number)
    github.write.make_ready(repo.full_name, pull.number)
    assert not pull.draft


def test_reviews_are_requested_and_a_refused_reviewer_is_named(
    github: GitHub, pull: Pull, repo: Repository
) -> None:
    for _ in range(2):
        github.write.request_review(repo.full_name, pull.number, ("ann",))
    assert [user.login for user in pull.requested] == ["ann"]
    with pytest.raises(Refused, match="collaborator"):
        github.write.request_review(repo.full_name, pull.number, ("wright",))
