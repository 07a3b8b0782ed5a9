"""Reading the checks of commits."""

from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.github.client import GitHub
from bot.github.snapshots import CheckReport
from lifecycle.model.status import CheckState, Merge
from tests.github.contract.conftest import read
from tests.world.faulty_github import FaultyGitHub


def test_check_runs_statuses_and_required_checks_are_read(github: GitHub, pull: Pull) -> None:
    pull.check("unit", conclusion="failure", log="Expected 2.", required=True)
    pull.check("lint", status="in_progress")
    pull.check("unit", conclusion="success", app="other-ci")
    pull.status("deploy", "pending", "https://deploy.example")
    pull.repo.protect("main", required_checks=["unit", "never-reported"])
    found = read(github, pull).pull
    assert {(each.id, each.state, each.required) for each in found.checks} == {
        ("github-actions / CI / pull_request / unit", CheckState.FAILED, True),
        ("github-actions / CI / pull_request / lint", CheckState.PENDING, False),
        ("other-ci / unit", CheckState.PASSED, True),
        ("status / deploy", CheckState.PENDING, False),
        ("required / never-reported", CheckState.PENDING, True),
    }
    assert found.checks_complete
    assert found.merge is Merge.PROTECTED


def test_the_people_who_pushed_since_a_head_are_read(github: GitHub, pull: Pull) -> None:
    name, branch, first = pull.repo.full_name, pull.head_branch, pull.head
    assert github.read.pushers(name, branch, first) == ()
    for login in ("ann", "eve", "ann", "wright"):
        pull.repo.push(branch, {"retry.py": f"by {login}, after {pull.head}\n"}, by=login)
    pull.repo.push("other", {"a.py": "1\n"}, by="renovate[bot]")
    assert github.read.pushers(name, branch, first) == ("wright", "ann", "eve")
    assert github.read.pushers(name, branch, pull.head) == ()


def test_a_suite_without_runs_is_ignored(github: GitHub, pull: Pull) -> None:
    pull.repo.checks.suite(pull.world.app("other-ci"), pull.head)
    found = read(github, pull).pull
    assert (found.checks, found.checks_complete) == ((), True)


def test_a_rerun_check_counts_once(github: GitHub, pull: Pull) -> None:
    pull.check("unit", conclusion="failure")
    pull.check("unit", conclusion="success")
    (found,) = read(github, pull).pull.checks
    assert found.state is CheckState.PASSED


def test_a_failed_check_has_its_log_or_its_output(github: GitHub, pull: Pull) -> None:
    log = "\n".join([*(f"line {n}" for n in range(99)), "\x1b[31mexpected 2\x1b[0m"])
    job = pull.check("unit", conclusion="failure", log=log)
    other = pull.check("lint", conclusion="failure", log="retry.py:2: no", app="other-ci")
    silent = pull.check("types", conclusion="failure")
    lines = github.read.report(pull.repo.full_name, job.id).log.split("\n")
    assert lines == [*(f"line {number}" for number in range(50, 99)), "expected 2"]
    assert github.read.report(pull.repo.full_name, other.id).log == "retry.py:2: no"
    assert github.read.report(pull.repo.full_name, silent.id) == CheckReport()


def test_annotations_of_a_failed_check_are_read(github: GitHub, pull: Pull) -> None:
    run = pull.check("lint", conclusion="failure", log="2 problems", app="other-ci")
    note = {"path": "retry.py", "end_line": 3, "title": None}
    run.output["annotations"] = [
        {**note, "start_line": 1, "annotation_level": "notice", "message": "of no interest"},
        {**note, "start_line": 2, "annotation_level": "warning", "message": "long\nline"},
        {**note, "start_line": 3, "annotation_level": "failure", "message": "no", "title": "E1"},
    ]
    report = github.read.report(pull.repo.full_name, run.id)
    assert report.log == "2 problems"
    assert report.notes.split("\n") == [
        "retry.py:3: failure: E1: no",
        "retry.py:2: warning: long line",
    ]


def test_a_failed_commit_status_has_its_url_and_description(github: GitHub, pull: Pull) -> None:
    pull.status("deploy", "failure", "https://ci.example/1").description = "no \x1b[1mspace\x1b[0m"
    (check,) = read(github, pull).pull.checks
    assert (check.url, check.log) == ("https://ci.example/1", "no space")


def test_checks_of_the_base_branch_are_read_where_they_matter(
    github: GitHub, server: FaultyGitHub, pull: Pull
) -> None:
    def asked() -> int:
        return len(server.requests)

    pull.check("unit", conclusion="success", suite="CI")
    read(github, pull)
    before = asked()
    read(github, pull)
    assert asked() - before == 1
    checks, app = pull.repo.checks, server.world.app("github-actions")
    checks.run(app, pull.repo.heads["main"], "unit", "CI").complete("failure")
    pull.check("unit", conclusion="failure", suite="CI")
    pull.check("lint", conclusion="failure", suite="CI")
    before = asked()
    found = {check.name: check.red_on_base for check in read(github, pull).pull.checks}
    assert found == {"unit": True, "lint": False}
    assert asked() - before == 2


def test_the_checks_of_a_base_commit_are_read_again_until_all_are_over(
    github: GitHub, server: FaultyGitHub, pull: Pull
) -> None:
    def red() -> tuple[bool, int]:
        before = server.count("POST", "graphql")
        (check,) = read(github, pull).pull.checks
        return check.red_on_base, server.count("POST", "graphql") - before

    github.read.me()
    checks, app = pull.repo.checks, server.world.app("github-actions")
    unit = checks.run(app, pull.repo.heads["main"], "unit", "CI")
    pull.check("unit", conclusion="failure", suite="CI")
    assert [red(), red()] == [(False, 2), (False, 2)]
    unit.complete("failure")
    assert [red(), red()] == [(True, 2), (True, 1)]
    pull.repo.push("main", {"b.py": "1\n"}, by="ann")
    assert red() == (True, 2)


def test_checks_are_expected_that_ran_for_pull_requests_merged_before(
    github: GitHub, server: FaultyGitHub, repo: Repository, pull: Pull
) -> None:
    app = server.world.app("github-actions")
    deploy = repo.checks.run(app, repo.heads["main"], "deploy", "CD")
    deploy.suite.event = "push"
    deploy.complete("success")
    repo.push("earlier", {"b.py": "1\n"}, by="ann")
    earlier = repo.open_pull("earlier", title="Earlier", by="ann")
    earlier.check("unit", suite="CI")
    earlier.check("branch", suite="Branches").suite.event = "push"
    assert read(github, pull).pull.checks_expected == ()
    earlier.merge("ann")
    assert read(github, pull).pull.checks_expected == ("unit",)
    pull.check("lint", suite="CI")
    assert read(github, pull).pull.checks_expected == ()
