"""Reports: created once, updated, found again."""

from contextlib import closing

import pytest

from bot.demo.github.issues import Issue
from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.errors import Refused, TryLater
from lifecycle.model.names import NAME
from tests.github.contract.conftest import read
from tests.world.faulty_github import FaultyGitHub

KEY = "widgets-1/report:1"


@pytest.fixture
def issue(repo: Repository) -> Issue:
    return repo.open_issue("Retry", by="ann")


def report(github: GitHub, issue: Issue, body: str, known: int | None = None) -> int:
    return github.reports.set_comment(issue.repo.full_name, issue.number, body, KEY, known)


def test_a_report_comment_is_updated_in_place(github: GitHub, issue: Issue) -> None:
    first = report(github, issue, "It works.")
    assert report(github, issue, "It is stuck.", first) == first
    (comment,) = issue.comments
    assert comment.body == f"It is stuck.\n\n<!-- mergewright:key={KEY} -->"


def test_a_report_whose_response_was_lost_is_found(
    github: GitHub, server: FaultyGitHub, issue: Issue
) -> None:
    server.fail_next("POST", "/comments", 502, after=True)
    with pytest.raises(TryLater):
        report(github, issue, "It works.")
    report(github, issue, "It is stuck.")
    assert [comment.body.partition("\n")[0] for comment in issue.comments] == ["It is stuck."]


def test_a_report_copied_by_somebody_else_is_left_alone(github: GitHub, issue: Issue) -> None:
    theirs = f"Ha.\n\n<!-- mergewright:key={KEY} -->"
    issue.comment(theirs, by="eve")
    report(github, issue, "It works.")
    report(github, issue, "It is stuck.")
    assert [(one.user.login, one.body) for one in issue.comments] == [
        ("eve", theirs),
        ("wright", f"It is stuck.\n\n<!-- mergewright:key={KEY} -->"),
    ]


def test_a_deleted_report_is_created_again_once(
    github: GitHub, server: FaultyGitHub, issue: Issue
) -> None:
    first = report(github, issue, "It works.")
    issue.comments[0].delete("ann")
    server.fail_next("POST", "/comments", 502, after=True)
    with pytest.raises(TryLater):
        report(github, issue, "It is stuck.", first)
    second = report(github, issue, "It is stuck.", first)
    assert [comment.id for comment in issue.comments] == [second]
    assert second != first


def test_a_report_that_may_not_be_edited_is_not_duplicated(
    github: GitHub, server: FaultyGitHub, issue: Issue
) -> None:
    first = report(github, issue, "It works.")
    server.fail_next("PATCH", "/comments", 403)
    with pytest.raises((Refused, TryLater)):
        report(github, issue, "It is stuck.", first)
    assert len(issue.comments) == 1


def check(app: GitHub, pull: Pull, says: str, known: int | None = None, good: bool = False) -> int:
    return app.reports.set_check_run(
        pull.repo.full_name,
        pull.head,
        known,
        good=good,
        title=says,
        summary=f"{says}!",
        url="https://bot/",
    )


def test_a_check_run_is_created_once_and_updated(app: GitHub, pull: Pull) -> None:
    first = check(app, pull, "pr_open")
    assert check(app, pull, "mergeable", first, good=True) == first
    assert check(app, pull, "merged", good=True) == first
    (run,) = pull.repo.checks.runs_of(pull.head)
    assert (run.name, run.status, run.conclusion) == (NAME, "completed", "success")
    assert run.output["title"] == "merged"
    assert run.output["summary"] == "merged!"
    assert run.details_url == "https://bot/"


def test_the_bots_check_run_blocks_nothing_and_does_not_count(app: GitHub, pull: Pull) -> None:
    check(app, pull, "ci_failed")
    (run,) = pull.repo.checks.runs_of(pull.head)
    assert run.conclusion == "neutral"
    assert read(app, pull).pull.checks == ()


def test_another_apps_check_run_of_the_same_name_is_left_alone(app: GitHub, pull: Pull) -> None:
    theirs = pull.check(NAME, conclusion="failure", suite="ci")
    assert check(app, pull, "pr_open") != theirs.id
    assert theirs.conclusion == "failure"


def test_a_check_run_of_a_missing_repository_is_retried_later(
    app: GitHub, pull: Pull, server: FaultyGitHub
) -> None:
    server.fail_next("POST", "/check-runs", 404)
    with pytest.raises(TryLater):
        check(app, pull, "pr_open")
    assert check(app, pull, "pr_open")


def test_a_check_run_that_github_has_deleted_is_created_again(app: GitHub, pull: Pull) -> None:
    gone = 10**9
    first = check(app, pull, "pr_open", gone)
    assert first != gone
    assert check(app, pull, "merged", gone) == first


def test_only_an_app_may_create_check_runs(app: GitHub, server: FaultyGitHub, pull: Pull) -> None:
    assert app.reports.can_create_check_runs
    server.user("wright", token="of-no-app")
    with closing(GitHub(f"{server.url}api/v3", Credentials(token="of-no-app"))) as client:
        assert not client.reports.can_create_check_runs
        with pytest.raises(Refused):
            check(client, pull, "pr_open")


def test_an_issue_has_the_label_of_one_status(github: GitHub, issue: Issue) -> None:
    issue.label("bug", by="ann")
    for status in ("working", "ci_failed", "ci_failed"):
        github.write.set_status_label(issue.repo.full_name, issue.number, status)
    assert issue.labels == ["bug", "mergewright/ci_failed"]
