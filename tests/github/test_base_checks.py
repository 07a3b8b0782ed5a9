"""Checks that fail on the base branch too, and checks that are expected for a pull request."""

from collections.abc import Sequence

import pytest

from bot.github.checks import BaseChecks, base_checks, needs_base_checks
from bot.github.pulls import pull_snapshot
from bot.github.shapes import CheckContext, CheckedCommit, FirstChecks, HeadCheck, NodeList
from tests.github.conftest import NOW
from tests.github.pages import checks, page, run, status
from tests.github.test_pulls import ME, own, read


def checked(*contexts: CheckContext | None) -> CheckedCommit:
    return CheckedCommit(status_check_rollup=FirstChecks(contexts=NodeList(nodes=contexts)))


def on_main(*commits: Sequence[CheckContext | None]) -> BaseChecks:
    return base_checks((checked(*commit) for commit in commits), (), ME)


def reds(base: BaseChecks) -> list[str]:
    failed = (run(1, "unit", "FAILURE"), run(2, "lint", "FAILURE"), run(3, "types"))
    pull = pull_snapshot((page(commits=checks(*failed)),), ME, NOW, base).pull
    return [check.name for check in pull.checks if check.red_on_base]


def test_a_check_that_fails_on_the_base_branch_too_is_marked() -> None:
    pushed = run(9, "unit", "FAILURE", event="push"), run(8, "types", "FAILURE")
    assert reds(on_main(pushed)) == ["unit"]
    assert reds(on_main((run(9, "unit", "FAILURE", workflow="Nightly"),))) == []
    assert reds(BaseChecks()) == []


def test_the_newest_completed_run_on_the_base_branch_counts() -> None:
    running, red, green = run(9, "unit", None), run(8, "unit", "FAILURE"), run(7, "unit")
    assert reds(on_main((running,), (red,), (green,))) == ["unit"]
    assert reds(on_main((running,), (green,), (red,))) == []


@pytest.mark.parametrize(
    ("commits", "settled"),
    [
        ([], True),
        ([()], True),
        ([(run(1, "unit"),), ()], True),
        ([(run(1, "unit"), run(2, "lint", None))], False),
        ([(run(1, "unit"),), (run(2, "lint", None),)], False),
        ([(), (run(1, "unit"),)], False),
    ],
)
def test_the_checks_of_the_base_branch_are_settled_once_all_are_over(
    commits: list[Sequence[CheckContext | None]], settled: bool
) -> None:
    assert on_main(*commits).settled is settled


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ([], ()),
        ([None, run(1, "unit", event="pull_request")], ("unit",)),
        (
            [
                run(1, "unit", event="pull_request"),
                run(2, "lint", "FAILURE", event="pull_request_target"),
            ],
            ("lint", "unit"),
        ),
        ([run(1, "unit", event="push"), run(2, "pages", event="dynamic")], ()),
        ([run(1, "nightly", event="schedule"), run(2, "unit", event="deployment")], ()),
        ([run(n, "unit", c, event="pull_request") for n, c in ((1, "SKIPPED"), (2, None))], ()),
        (
            [run(1, "theirs", check_suite=None), status("ci/external", "SUCCESS")],
            ("ci/external", "theirs"),
        ),
        ([own(1, "ours")], ()),
    ],
)
def test_checks_are_expected_that_ran_for_the_last_merged_pull_requests(
    head: Sequence[CheckContext | None], expected: tuple[str, ...]
) -> None:
    pushed = checked(run(9, "deploy", event="push"))
    base = base_checks((pushed,), (checked(), checked(*head)), ME)
    assert pull_snapshot((page(),), ME, NOW, base).pull.checks_expected == expected


def test_the_base_branch_matters_if_a_check_failed_or_none_ran() -> None:
    def matters(*runs: HeadCheck) -> bool:
        return needs_base_checks(read(commits=checks(*runs)).pull.checks)

    assert matters()
    assert matters(run(1, "unit", "FAILURE"), run(2, "b"))
    assert not matters(run(1, "unit"), run(2, "b", None))
    assert not matters(run(1, "unit"), run(2, "b", "SKIPPED"))
    # Skipped checks alone are `none`, which is never ready where the base had some.
    assert matters(run(1, "unit", "SKIPPED"))
