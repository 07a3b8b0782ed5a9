"""Merges: direct, asynchronous, and through the merge queue."""

from datetime import UTC, datetime

import pytest

from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.github.client import GitHub
from bot.github.errors import Conflicted, TryLater
from bot.github.merging import MergeTarget, PullMerger
from lifecycle.model.facts import Check, Dequeued
from lifecycle.model.policy import MergeMethod
from lifecycle.model.status import CheckState, Merge, PullState
from tests.github.contract.conftest import BRANCH, read
from tests.world.faulty_github import FaultyGitHub


def request(pull: Pull, sha: str = "") -> tuple[str, int, str, MergeMethod, str, str]:
    name, head = pull.repo.full_name, sha or pull.head
    return name, pull.number, head, MergeMethod.SQUASH, "Retry (#1)", "Closes #12"


def target(github: GitHub, pull: Pull) -> MergeTarget:
    return github.merges.target(pull.repo.full_name, pull.number)


def enqueue(github: GitHub, pull: Pull, sha: str) -> str:
    return github.merges.enqueue(pull.repo.full_name, target(github, pull), sha)


@pytest.fixture
def background(pull: Pull) -> Pull:
    """A pull request in a repository where GitHub accepts a merge at once and performs it later."""
    pull.repo.async_merges = True
    return pull


@pytest.fixture
def queued(github: GitHub, pull: Pull) -> Pull:
    """A pull request in the merge queue."""
    pull.repo.protect("main", queue=True)
    assert enqueue(github, pull, pull.head) == "queued"
    return pull


@pytest.mark.parametrize("method", MergeMethod)
def test_a_pull_request_is_merged_once_by_each_method(
    github: GitHub, server: FaultyGitHub, pull: Pull, method: MergeMethod
) -> None:
    asked = (pull.repo.full_name, pull.number, pull.head, method, "Retry (#1)", "Closes #12")
    server.fail_next("PUT", "/merge", 502, after=True)
    with pytest.raises(TryLater):
        github.merges.merge(*asked)
    assert github.merges.merge(*asked) == pull.merge_commit
    reading = read(github, pull)
    assert (reading.pull.state, reading.pull.merged_by) == (PullState.MERGED, "wright")
    merges = [move for move in server.pushes if move.repository == pull.repo.full_name]
    assert len([move for move in merges if move.branch == "main" and move.before]) == 1


@pytest.mark.parametrize("in_background", [False, True])
def test_only_the_judged_commit_is_merged(github: GitHub, pull: Pull, in_background: bool) -> None:
    pull.repo.async_merges = in_background
    asked = request(pull)
    pull.repo.push(BRANCH, {"retry.py": "evil\n"}, by="eve")
    if in_background:
        with pytest.raises(TryLater, match="enqueued"):
            github.merges.merge(*asked)
    with pytest.raises(Conflicted, match="Head branch was modified"):
        github.merges.merge(*asked)
    pull.merge("ann")
    with pytest.raises(Conflicted):
        github.merges.merge(*asked)


@pytest.mark.parametrize("in_background", [False, True])
def test_a_merge_blocked_by_a_rule_is_a_conflict(
    github: GitHub, pull: Pull, in_background: bool
) -> None:
    pull.repo.async_merges = in_background
    pull.repo.protect("main", required_reviews=1)
    if in_background:
        with pytest.raises(TryLater, match="enqueued"):
            github.merges.merge(*request(pull))
    with pytest.raises(Conflicted, match="approving review"):
        github.merges.merge(*request(pull))


def test_an_accepted_merge_says_when_to_ask_for_its_result(
    github: GitHub, background: Pull
) -> None:
    with pytest.raises(TryLater) as accepted:
        github.merges.merge(*request(background))
    assert accepted.value.at is not None
    assert not background.merged
    assert github.merges.merge(*request(background)) == background.merge_commit


def test_a_merge_requested_again_after_a_restart_is_the_same_merge(
    github: GitHub, background: Pull
) -> None:
    with pytest.raises(TryLater):
        github.merges.merge(*request(background))
    first = background.accepted
    assert first is not None
    github.merges = PullMerger(github.merges._api)
    with pytest.raises(TryLater) as still:
        github.merges.merge(*request(background))
    assert still.value.at is not None
    assert background.accepted is first
    assert github.merges.merge(*request(background)) == background.merge_commit


def test_a_long_merge_is_polled_less_and_less_often(
    github: GitHub, server: FaultyGitHub, background: Pull, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(github.merges._api, "clock", lambda: now)
    pending = b'{"status": "pending", "details": {"message": "enqueued", "uuid": "u"}}'
    server.fail_next("GET", "merge-async", 200, body=pending, times=19)
    waits: list[float] = []
    for _ in range(20):
        with pytest.raises(TryLater) as still:
            github.merges.merge(*request(background))
        assert still.value.at is not None
        waits.append((still.value.at - now).total_seconds())
        now = still.value.at
    assert (waits[0], waits[-1]) == (1, 60)
    assert waits == sorted(waits)


def test_an_enqueued_pull_request_stays_in_the_queue(
    github: GitHub, server: FaultyGitHub, queued: Pull
) -> None:
    tried = queued.queued
    assert enqueue(github, queued, queued.head) == "queued"
    assert queued.queued == tried
    found = read(github, queued).pull
    assert (found.queue, found.merge, found.dequeued) == (True, Merge.QUEUED, None)
    queued.queue_merges()
    assert read(github, queued).pull.state is PullState.MERGED


def test_only_the_judged_commit_is_enqueued(github: GitHub, pull: Pull) -> None:
    pull.repo.protect("main", queue=True)
    judged = pull.head
    pull.repo.push(BRANCH, {"retry.py": "evil\n"}, by="eve")
    with pytest.raises(Conflicted, match="Head branch was modified"):
        enqueue(github, pull, judged)
    assert not pull.queued


def test_a_change_of_the_base_branch_is_read(github: GitHub, pull: Pull) -> None:
    pull.repo.push("release", {"notes.txt": "1\n"}, by="ann")
    pull.review(by="ann", state="APPROVED")
    assert [verdict.for_base for verdict in read(github, pull).pull.verdicts] == [True]
    assert target(github, pull).base_branch == "main"
    pull.change_base("release", by="ann")
    found = read(github, pull).pull
    assert (found.base_branch, [one.for_base for one in found.verdicts]) == ("release", [False])
    assert target(github, pull).base_branch == "release"


def test_a_server_without_asynchronous_merges_is_asked_for_one_once(
    github: GitHub, server: FaultyGitHub, repo: Repository
) -> None:
    for number in (1, 2):
        repo.push(f"b{number}", {f"{number}.txt": "1\n"}, by="wright")
        pull = repo.open_pull(f"b{number}", title="Retry", by="wright")
        github.merges.merge(*request(pull))
    tried = [seen for seen in server.requests if f"{repo.full_name}/pulls/" in seen.path]
    assert [seen.path.rpartition("/")[2] for seen in tried if seen.method == "PUT"] == [
        *("merge-async", "merge"),
        "merge",
    ]


def test_the_allowed_methods_are_read_with_the_base_branch(github: GitHub, pull: Pull) -> None:
    pull.repo.merge_methods = {"squash", "rebase"}
    found = target(github, pull)
    assert found.methods == (MergeMethod.SQUASH, MergeMethod.REBASE)
    assert (found.base_branch, found.pull_request.head_ref_oid) == ("main", pull.head)


def test_dequeuing_is_idempotent(github: GitHub, queued: Pull) -> None:
    for _ in range(2):
        github.merges.dequeue(queued.repo.full_name, queued.number)
        assert not queued.queued
    found = read(github, queued).pull
    assert found.merge is Merge.CLEAN
    assert found.dequeued is not None
    assert found.dequeued.reason == "manual"


def test_a_pull_request_refused_by_the_queue_is_a_conflict(github: GitHub, pull: Pull) -> None:
    pull.repo.protect("main", required_reviews=1, queue=True)
    with pytest.raises(Conflicted, match="approving review"):
        enqueue(github, pull, pull.head)


def test_a_dequeued_pull_request_names_the_failed_checks(github: GitHub, queued: Pull) -> None:
    queued.check_in_queue("lint")
    run = queued.check_in_queue("unit", "failure", "it broke")
    queued.queue_puts_out("failed_checks")
    found = read(github, queued).pull
    assert found.merge is Merge.CLEAN
    assert found.checks == ()
    assert found.dequeued == Dequeued(
        at=queued.timeline[-1].created_at.replace(microsecond=0),
        reason="failed_checks",
        checks=(
            Check(
                id="merge queue / github-actions / CI / pull_request / unit",
                name="unit",
                state=CheckState.FAILED,
                required=True,
                url=f"{queued.repo.url}/runs/{run.id}",
                run_id=run.id,
            ),
        ),
    )
