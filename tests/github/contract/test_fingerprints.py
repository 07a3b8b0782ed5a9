"""Fingerprints of many issues and pull requests."""

from collections.abc import Callable

import pytest

from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.github.client import GitHub
from bot.github.errors import Limited, TryLater
from bot.github.fingerprints import Fingerprint
from tests.github.contract.conftest import BRANCH
from tests.world.faulty_github import FaultyGitHub


def test_a_fingerprint_changes_with_its_subject(
    github: GitHub, repo: Repository, pull: Pull
) -> None:
    def fingerprint() -> Fingerprint | None:
        return github.read.fingerprints(repo.full_name, [], [pull.number])[pull.number]

    def unprotect() -> None:
        repo.protections.clear()
        repo.git.refuse_pushes([])

    repo.protect("main", required_reviews=1)
    pull.check("unit", conclusion="failure")
    pull.check("lint", status="in_progress")
    seen = [fingerprint()]
    assert seen == [fingerprint()]
    changes: list[Callable[[], object]] = [
        lambda: pull.check("lint", conclusion="failure"),
        lambda: pull.check("unit", conclusion="success"),
        lambda: pull.status("deploy", "pending"),
        lambda: pull.mark_draft("wright"),
        lambda: pull.review("ann", "APPROVED", threads=[("retry.py", 2, "Why?")]),
        lambda: pull.threads[0].resolve("ann"),
        lambda: repo.push(BRANCH, {"retry.py": "1\n2\n3\n"}, by="wright"),
        unprotect,
        lambda: repo.push("main", {"retry.py": "one\nzwei\nthree\n"}, by="ann"),
        lambda: pull.close("ann"),
    ]
    for change in changes:
        change()
        seen.append(fingerprint())
        assert seen[-1] not in seen[:-1]


def test_a_new_base_commit_changes_the_fingerprint_only_where_it_matters(
    github: GitHub, repo: Repository, pull: Pull
) -> None:
    def changes() -> bool:
        before = github.read.fingerprints(repo.full_name, [], [pull.number])
        repo.push("main", {f"{len(repo.moves)}.py": "1\n"}, by="ann")
        return github.read.fingerprints(repo.full_name, [], [pull.number]) != before

    assert changes()
    pull.check("unit", conclusion="success")
    assert not changes()
    pull.check("unit", conclusion="failure")
    assert changes()


def test_an_unreadable_subject_does_not_fail_the_others(
    github: GitHub, repo: Repository, pull: Pull
) -> None:
    issue = repo.open_issue("Retry", by="ann")
    seen = github.read.fingerprints(repo.full_name, [issue.number, 4711], [pull.number, 4712])
    assert {number for number, fingerprint in seen.items() if fingerprint} == {
        issue.number,
        pull.number,
    }
    assert seen.keys() == {issue.number, 4711, pull.number, 4712}


def test_fifty_fingerprints_cost_one_point(
    github: GitHub, server: FaultyGitHub, repo: Repository, pull: Pull
) -> None:
    pull.check("unit")
    github.read.me()
    github.read.fingerprints(repo.full_name, [], range(pull.number, pull.number + 50))
    budget = github.read.budget(repo.full_name)
    assert budget is not None
    assert budget.cost == 1
    github.read.pull(repo.full_name, pull.number)
    after = github.read.budget(repo.full_name)
    assert after is not None
    assert after.remaining == budget.remaining - after.cost


@pytest.mark.parametrize("left", [0, 1], ids=["others use it up", "we use it up"])
def test_a_rate_limit_between_two_batches_is_waited_for(
    github: GitHub, server: FaultyGitHub, repo: Repository, left: int
) -> None:
    issue = repo.open_issue("Retry", by="ann").number
    server.traffic.leave("wright", "graphql", left, seconds=60)
    before = len(server.requests)
    for _ in range(left):
        assert github.read.fingerprints(repo.full_name, [issue], [])[issue]
    for _ in range(3):
        with pytest.raises(Limited):
            github.read.fingerprints(repo.full_name, [issue], [])
    server.traffic.lift()
    assert len(server.requests) == before + 1
    assert github.read.repository(repo.full_name).default_branch == "main"


def test_a_fingerprint_query_that_times_out_fails(
    github: GitHub, server: FaultyGitHub, repo: Repository, pull: Pull
) -> None:
    server.fail_next("POST", "graphql", 502)
    with pytest.raises(TryLater):
        github.read.fingerprints(repo.full_name, [], [pull.number])
    assert github.read.fingerprints(repo.full_name, [], [pull.number])[pull.number]
