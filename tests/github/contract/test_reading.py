"""Reads of issues, pull requests, repositories and permissions."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.github.client import GitHub
from bot.github.comment_markers import with_marker
from bot.github.errors import GitHubFailure, Refused
from lifecycle.model.policy import MergeMethod
from lifecycle.model.status import Merge, PullState, Review
from tests.github.contract.conftest import BRANCH, read
from tests.world.faulty_github import FaultyGitHub


def test_the_bot_knows_its_login(github: GitHub) -> None:
    assert github.read.me() == "wright"


def test_the_settings_of_a_repository_are_read(github: GitHub, repo: Repository) -> None:
    repo.merge_methods = {"squash"}
    settings = github.read.repository(repo.full_name)
    assert settings.default_branch == "main"
    assert settings.clone_url == repo.clone_url
    assert settings.merge_methods == (MergeMethod.SQUASH,)
    assert not settings.archived
    assert not settings.private


@pytest.mark.parametrize(
    ("level", "may"),
    [
        ("admin", True),
        ("maintain", True),
        ("write", True),
        ("triage", False),
        ("read", False),
        ("none", False),
    ],
)
def test_write_permission_is_read(github: GitHub, repo: Repository, level: str, may: bool) -> None:
    repo.permission("eve", level)
    assert github.read.may_write(repo.full_name, "eve") is may


@pytest.mark.parametrize("login", ["nobody-of-this-name", "", "../../../user", "a b?c#d"])
def test_unknown_accounts_may_not_write(github: GitHub, repo: Repository, login: str) -> None:
    assert not github.read.may_write(repo.full_name, login)


@pytest.mark.parametrize("status", [500, 401, 403])
def test_an_outage_is_no_permission(
    github: GitHub, server: FaultyGitHub, repo: Repository, status: int
) -> None:
    server.fail_next("GET", "permission", status)
    with pytest.raises(GitHubFailure):
        github.read.may_write(repo.full_name, "ann")


def test_an_assignment_is_a_label_with_the_assignees_login(
    github: GitHub, repo: Repository
) -> None:
    issue = repo.open_issue("Retry", "Please.", by="eve")
    issue.assign("wright", by="ann")
    reading = github.read.issue(repo.full_name, issue.number)
    assert reading is not None
    assert reading.labels == ("@wright",)
    assert [(put.label, put.actor, put.added) for put in reading.labelings] == [
        ("@wright", "ann", True)
    ]
    assert github.read.labelled_issues(repo.full_name, ["@wright"]) == {issue.number}
    issue.unassign("wright", by="ann")
    reading = github.read.issue(repo.full_name, issue.number)
    assert reading is not None
    assert reading.labels == ()
    assert [put.added for put in reading.labelings] == [True, False]
    assert github.read.labelled_issues(repo.full_name, ["@wright"]) == set()


def test_open_blocking_issues_are_listed(
    github: GitHub, server: FaultyGitHub, repo: Repository
) -> None:
    issue, first, other = (repo.open_issue(name, by="eve") for name in ("a", "b", "c"))
    far = server.repository(f"{repo.full_name}-far").open_issue("d", by="eve")
    for one in (first, other, far):
        issue.waits_for(one, by="ann")
    other.close(by="ann")
    waits = github.read.blocked_by(repo.full_name, issue.number)
    assert waits == (f"#{first.number}", f"{repo.full_name}-far#{far.number}")
    server.fail_next("GET", "dependencies", 404)
    assert github.read.blocked_by(repo.full_name, issue.number) == ()


def test_an_issue_names_who_labelled_and_who_edited_it(github: GitHub, repo: Repository) -> None:
    issue = repo.open_issue("Retry", "Please.", by="eve")
    issue.label("agent", by="eve")
    issue.unlabel("agent", by="ann")
    issue.label("agent", by="ann")
    issue.edit(by="eve", body="Please?")  # The later edit does not hide it.
    issue.edit(by="ann", title="Retry more", body="Please!")
    reading = github.read.issue(repo.full_name, issue.number)
    assert reading is not None
    assert not reading.is_pull
    assert (reading.issue.title, reading.issue.body) == ("Retry more", "Please!")
    assert (reading.issue.author, reading.issue.open, reading.issue.state_reason) == (
        "eve",
        True,
        "",
    )
    assert reading.issue.url == issue.url
    assert reading.labels == ("agent",)
    assert [(each.actor, each.added) for each in reading.labelings] == [
        ("eve", True),
        ("ann", False),
        ("ann", True),
    ]
    assert {edit.actor for edit in reading.edits} == {"eve", "ann"}


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("completed", "completed"),
        ("not_planned", "not_planned"),
        # GitHub reports duplicates only on request, which older servers do not support.
        ("duplicate", "not_planned"),
    ],
)
def test_a_closed_issue_has_its_reason(
    github: GitHub, repo: Repository, reason: str, word: str
) -> None:
    issue = repo.open_issue("Retry", by="ann")
    issue.close("ann", reason)
    reading = github.read.issue(repo.full_name, issue.number)
    assert reading is not None
    assert (reading.issue.open, reading.issue.state_reason) == (False, word)
    issue.reopen("ann")
    reading = github.read.issue(repo.full_name, issue.number)
    assert reading is not None
    assert (reading.issue.open, reading.issue.state_reason) == (True, "")


def test_the_last_reopening_names_its_actor(github: GitHub, repo: Repository, pull: Pull) -> None:
    for thing in (repo.open_issue("Retry", by="zoe"), pull):
        fresh = github.read.issue(repo.full_name, thing.number)
        assert fresh is not None
        assert fresh.reopened is None
        for login in ("zoe", "ann"):
            thing.close(by=login)
            thing.reopen(by=login)
        reading = github.read.issue(repo.full_name, thing.number)
        assert reading is not None
        assert reading.reopened is not None
        assert reading.reopened.actor == "ann"


def test_a_pull_request_is_not_taken_for_an_issue(github: GitHub, pull: Pull) -> None:
    pull.label("agent", by="ann")
    reading = github.read.issue(pull.repo.full_name, pull.number)
    assert reading is not None
    assert reading.is_pull
    assert reading.labels == ("agent",)


def test_missing_subjects_read_as_none(github: GitHub, repo: Repository) -> None:
    issue = repo.open_issue("Retry", by="ann")
    assert github.read.issue(repo.full_name, 4711) is None
    assert github.read.pull(repo.full_name, 4711) is None
    assert github.read.pull(repo.full_name, issue.number) is None


def test_an_unreadable_repository_is_refused(github: GitHub) -> None:
    with pytest.raises(Refused):
        github.read.issue("acme/secret", 1)
    with pytest.raises(Refused):
        github.read.pulls_of("acme/secret", BRANCH)


def test_labelled_and_assigned_issues_are_listed_in_one_query_per_page(
    github: GitHub, server: FaultyGitHub, repo: Repository, pull: Pull
) -> None:
    def listed(*words: str) -> tuple[set[int], int]:
        before = len(server.requests)
        found = github.read.labelled_issues(repo.full_name, words)
        return found, len(server.requests) - before

    pull.label("agent", by="ann")
    named, mine, *many = (repo.open_issue(f"Retry {n}", by="ann") for n in range(103))
    named.label('the "Agent": ü', by="ann")
    mine.assign("wright", by="ann")
    for issue in many:
        issue.label("agent", by="ann")
    repo.open_issue("Not labelled", by="ann")
    closed = repo.open_issue("Closed", by="ann")
    closed.label("agent", by="ann")
    closed.close("ann")
    assert listed('the "agent": ü') == (set(), 1), "GitHub takes other letters for another label"
    assert github.read.labels(repo.full_name, "AGENT") == ["agent", 'the "Agent": ü']
    assert github.read.labels(repo.full_name, 'the "agent": ü') == ['the "Agent": ü']
    assert github.read.labels(repo.full_name, "bug") == []
    assert listed("other", 'the "Agent": ü', "@wright") == ({named.number, mine.number}, 1)
    assert listed("agent", "@wright") == ({mine.number, *(one.number for one in many)}, 2)
    assert listed("other") == (set(), 1)


def test_pull_requests_of_a_branch_exclude_those_of_forks(
    github: GitHub, repo: Repository, pull: Pull
) -> None:
    fork = repo.fork("eve")
    fork.push(BRANCH, {"retry.py": "evil\n"}, by="eve")
    repo.open_pull(BRANCH, title="Mine!", by="eve", source=fork)
    pull.close("ann")
    second = repo.open_pull(BRANCH, title="Again", by="wright")
    assert github.read.pulls_of(repo.full_name, BRANCH) == [pull.number, second.number]
    assert github.read.pulls_of(repo.full_name, "another") == []
    assert github.read.pulls_of(repo.full_name.upper(), BRANCH) == [pull.number, second.number]


def test_a_new_pull_request_is_read(github: GitHub, pull: Pull) -> None:
    reading = read(github, pull)
    found = reading.pull
    assert (found.number, found.title, found.url) == (pull.number, "Retry", pull.url)
    assert (found.state, found.draft, found.head) == (PullState.OPEN, False, pull.head)
    assert (found.base, found.base_branch) == (pull.base_tip, "main")
    assert (found.merge, found.review) == (Merge.CLEAN, Review.NONE)
    assert (found.checks, found.checks_complete, found.checks_expected) == ((), True, ())
    assert (found.verdicts, found.threads, found.comments) == ((), (), ())
    assert reading.head_repository == pull.repo.full_name
    assert (reading.pull.branch, reading.author, reading.pull.merged_by) == (BRANCH, "wright", "")
    assert reading.body == "Tries again."


def test_the_base_commit_is_the_tip_of_the_base_branch(
    github: GitHub, repo: Repository, pull: Pull
) -> None:
    repo.push("main", {"other.py": "1\n"}, by="ann")
    assert read(github, pull).pull.base == repo.heads["main"]


def test_all_pages_of_all_lists_are_read(github: GitHub, pull: Pull) -> None:
    for number in range(120):
        pull.check(f"check {number:03}")
        pull.comment(f"comment {number:03}", by="ann")
    threads = [("retry.py", 2, f"thread {number:03}") for number in range(110)]
    pull.review("ann", "COMMENTED", "See below.", threads)
    for number in range(105):
        pull.review("ann", "COMMENTED", f"review {number:03}")
    found = read(github, pull).pull
    assert found.checks_complete
    assert [each.name for each in found.checks] == [f"check {number:03}" for number in range(120)]
    bodies = sorted(each.body for each in found.comments)
    assert bodies == sorted(
        ["See below."]
        + [f"comment {number:03}" for number in range(120)]
        + [f"review {number:03}" for number in range(105)]
    )
    assert len({each.id for each in found.comments}) == len(found.comments)
    assert [each.remarks[0].body for each in found.threads] == [text for _, _, text in threads]


def test_a_long_open_thread_makes_the_snapshot_incomplete(github: GitHub, pull: Pull) -> None:
    pull.review("ann", "COMMENTED", "", [("retry.py", 2, "Why 2?")])
    (thread,) = pull.threads
    for _ in range(99):
        thread.reply("ann", "Why?")
    assert read(github, pull).pull.checks_complete
    thread.reply("ann", "Tell me!")
    found = read(github, pull).pull
    assert not found.checks_complete
    assert (len(found.threads[0].remarks), found.threads[0].remarks[-1].body) == (100, "Tell me!")
    thread.resolve("ann")
    assert read(github, pull).pull.checks_complete


def test_reviews_threads_and_comments_name_their_authors(github: GitHub, pull: Pull) -> None:
    head = pull.head
    pull.comment(with_marker("By ourselves.", "report"), by="wright")
    pull.comment("By the token's owner.", by="wright")
    pull.comment("By a machine.", by="renovate[bot]")
    pull.review("ann", "CHANGES_REQUESTED", "Not yet.", [("retry.py", 2, "Why 2?")])
    pull.threads[0].reply("wright", with_marker("Because.", "reply"))
    pull.threads[0].start_line = 1
    pull.repo.push(BRANCH, {"other.py": "1\n"}, by="wright")
    found = read(github, pull).pull
    assert found.head != head
    assert found.review is Review.CHANGES_REQUESTED
    (verdict,) = found.verdicts
    assert (verdict.author, verdict.approved, verdict.sha) == ("ann", False, head)
    assert verdict.remark
    assert verdict.remark.body == "Not yet."
    assert [(each.author, each.own, each.bot) for each in found.comments] == [
        ("wright", True, False),
        ("wright", False, False),
        ("renovate[bot]", False, True),
    ]
    (thread,) = found.threads
    assert (thread.path, thread.start, thread.line) == ("retry.py", 1, 2)
    assert not thread.resolved
    assert "-two" in thread.diff
    assert [each.own for each in thread.remarks] == [False, True]
    pull.threads[0].resolve("ann")
    pull.review("ann", "APPROVED")
    found = read(github, pull).pull
    assert found.threads[0].resolved
    assert found.review is Review.APPROVED
    assert [each.sha for each in found.verdicts] == [pull.head]


@pytest.mark.parametrize("who", ["ann", "eve"])
def test_only_reviews_of_writers_decide(github: GitHub, pull: Pull, who: str) -> None:
    pull.review(who, "APPROVED")
    found = read(github, pull).pull
    assert found.review is (Review.APPROVED if who == "ann" else Review.NONE)
    assert len(found.verdicts) == 1


def test_requested_and_required_reviews_are_pending(github: GitHub, pull: Pull) -> None:
    pull.request_review("ann", by="wright")
    assert read(github, pull).pull.review is Review.PENDING
    pull.unrequest_review("ann", by="wright")
    pull.repo.protect("main", required_reviews=1)
    found = read(github, pull).pull
    assert found.review is Review.PENDING
    assert not found.checks_expected


def test_a_comment_edited_by_somebody_else_names_the_editor(github: GitHub, pull: Pull) -> None:
    comment = pull.comment("Please test.", by="ann")
    comment.edit("Please delete everything.", by="eve")
    pull.comment("Thank you.", by="ann").edit("Thanks.", by="ann")
    assert read(github, pull).edited_by == {f"comment:{comment.id}": "eve"}


def test_conflicts_drafts_and_outdated_branches_are_read(
    github: GitHub, repo: Repository, pull: Pull
) -> None:
    pull.mark_draft("wright")
    found = read(github, pull).pull
    assert (found.draft, found.merge) == (True, Merge.CLEAN)
    pull.mark_ready("wright")
    repo.protect("main", strict=True, required_checks=["unit"])
    pull.check("unit")
    repo.protections.pop("main")
    repo.git.refuse_pushes([])
    repo.push("main", {"other.py": "1\n"}, by="ann")
    repo.protect("main", strict=True, required_checks=["unit"])
    assert read(github, pull).pull.merge is Merge.BEHIND
    repo.protections.pop("main")
    repo.git.refuse_pushes([])
    repo.push("main", {"retry.py": "one\nzwei\nthree\n"}, by="ann")
    assert read(github, pull).pull.merge is Merge.CONFLICT


def test_a_pull_request_of_a_fork_names_the_fork(github: GitHub, repo: Repository) -> None:
    fork = repo.fork("eve")
    fork.push(BRANCH, {"retry.py": "evil\n"}, by="eve")
    pull = repo.open_pull(BRANCH, title="Mine!", by="eve", source=fork)
    assert read(github, pull).head_repository == fork.full_name


def test_many_threads_share_one_client(github: GitHub, pull: Pull) -> None:
    pull.check("unit")
    with ThreadPoolExecutor(8) as pool:
        readings = list(pool.map(lambda _: read(github, pull).pull.checks, range(24)))
    assert len(set(readings)) == 1


def test_required_signatures_are_read(github: GitHub, repo: Repository) -> None:
    assert not github.read.requires_signatures(repo.full_name, "main")
    repo.protect("main", required_checks=["unit"])
    assert not github.read.requires_signatures(repo.full_name, "main")
    repo.protect("main", signatures=True)
    assert github.read.requires_signatures(repo.full_name, "main")
    assert not github.read.requires_signatures(repo.full_name, "no-such-branch")


def test_the_labels_of_a_pull_request_are_read(github: GitHub, pull: Pull) -> None:
    pull.label("mergewright:freeze", by="ann")
    assert read(github, pull).labels == ("mergewright:freeze",)


def test_a_rule_that_keeps_the_bot_from_merging_is_read_with_the_pull_request(
    github: GitHub, pull: Pull
) -> None:
    def barred() -> str:
        return read(github, pull).pull.barred

    assert barred() == ""
    pull.repo.protect("main", required_reviews=1)
    assert barred() == ""
    pull.repo.protect("main", pushers=("ann",))
    assert barred() == "", "only administrators see it"
    pull.repo.permission("wright", "admin")
    assert barred() == "branch protection"
    pull.repo.protect("main", pushers=("ann", "wright"))
    assert barred() == ""
    pull.repo.protect("main", bypass="never")
    assert barred() == "ruleset `releases`"
