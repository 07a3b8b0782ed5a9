"""Signing and pushing commits, also by a bot that is killed in between."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest.mock import MagicMock

import pytest
from msgspec.structs import replace

from bot.act.results import ActionResult, Completed, Rejected, RetryLater, Withdrawn
from bot.store import Observation
from lifecycle.model import keys
from lifecycle.model.actions import Publish
from lifecycle.model.status import Reason
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.signing import CommitSigner
from runtimes.workspaces.worktree import Worktree
from tests.harness.site import Site, git
from tests.world.signing_key import SIGNER, is_verified


class Killed(BaseException):
    """The process ends here."""


def publishes(
    site: Site,
    signer: CommitSigner | None = SIGNER,
    *,
    checked: bool = False,
    recorded: bool = True,
) -> ActionResult:
    """Publish the commit that was observed last, and record the result as the outbox does."""
    store, now, head = site.scenario.store, site.scenario.clock(), site.session.work.head
    if not store.outbox.due(now):
        push = Publish(key=keys.push(head), head=head, sign=True, checked=checked)
        site.scenario.orders(site.id, push, run=1)
    (due,) = store.outbox.due(now)
    result = site.dispatcher(MagicMock(), signer=signer).do(due, lambda: None)
    if isinstance(result, Completed) and recorded:
        store.outbox.mark_done(due.seq, result.result, now)
    if isinstance(result, Withdrawn) and recorded:
        store.outbox.withdraw(due.seq, now, observed=result.observed)
    return result


def looks(site: Site) -> None:
    """Record the workspace's current commit, and withdraw ordered pushes of other commits."""
    store, now, session = site.scenario.store, site.scenario.clock(), site.session
    work = replace(session.work, head=site.workspace.head() or "")
    store.observations.record([Observation(session=session.id, run=1, work=work)], now)
    for due in store.outbox.due(now):
        if due.action.key != keys.push(work.head):
            store.outbox.withdraw(due.seq, now)


def on_github(site: Site) -> str:
    return git(site.github, "for-each-ref", "--format=%(objectname)", "refs/heads/mergewright")


@pytest.fixture
def head(site: Site) -> str:
    """The second of two commits of an agent, which also left a file uncommitted."""
    site.starts()
    site.commits("a")
    head = site.commits("b")
    (site.workspace.path / "draft").write_text("x")
    return head


def test_commits_are_signed_in_the_workspace_before_they_are_pushed(site: Site, head: str) -> None:
    first = publishes(site)
    assert isinstance(first, Withdrawn)
    signed = site.session.work.head
    assert signed == site.workspace.head() != head
    assert on_github(site) == ""
    assert publishes(site) == Completed(result=signed)
    assert on_github(site) == signed
    assert all(is_verified(site.github, sha) for sha in (signed, f"{signed}^"))
    assert (site.workspace.path / "draft").read_text() == "x"
    assert site.workspace.dirty()


def before(target: type, name: str, call: int = 1) -> Callable[[Site, Any], None]:
    """Have the bot be killed right before the effect of a method's `call`-th call."""

    def killed(site: Site, patch: pytest.MonkeyPatch) -> None:
        original, calls = getattr(target, name), list[object]()

        def dies(*args: Any, **options: Any) -> Any:
            if target is not Mirror or "push" in args:
                calls.append(args)
            if len(calls) == call:
                raise Killed
            return original(*args, **options)

        with patch.context() as patched:
            patched.setattr(target, name, dies)
            with suppress(Killed):
                while len(calls) < call:
                    publishes(site)
        assert len(calls) == call

    return killed


def after_the_move(site: Site, patch: pytest.MonkeyPatch) -> None:
    assert isinstance(publishes(site, recorded=False), Withdrawn)
    # The same push is tried once more before the workspace is observed.
    assert isinstance(publishes(site), RetryLater)


def after_the_push(site: Site, patch: pytest.MonkeyPatch) -> None:
    publishes(site)
    assert isinstance(publishes(site, recorded=False), Completed)


@pytest.mark.parametrize(
    "killed",
    [
        before(Worktree, "adopt"),
        before(Worktree, "adopt", 2),
        after_the_move,
        before(Mirror, "_remote"),
        after_the_push,
    ],
    ids=["signed", "attached", "moved", "pushing", "pushed"],
)
def test_a_killed_bot_loses_and_doubles_nothing(
    site: Site, head: str, killed: Callable[[Site, Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    git(site.workspace.path, "checkout", "-q", "--detach")
    pushes: list[tuple[str, str]] = []
    push = Mirror.push

    def pushed(mirror: Mirror, sha: str, branch: str, expected: str) -> None:
        pushes.append((sha, expected))
        push(mirror, sha, branch, expected)

    monkeypatch.setattr(Mirror, "push", pushed)
    killed(site, monkeypatch)
    looks(site)
    results = [publishes(site)]
    if isinstance(results[-1], Withdrawn):
        results.append(publishes(site))
    signed = site.workspace.head() or ""
    assert results[-1] == Completed(result=signed)
    assert on_github(site) == site.session.work.head == signed
    assert set(pushes) == {(signed, "")}
    assert is_verified(site.github, signed)
    assert git(site.workspace.path, "log", "--format=%s", "-2") == "b\na"
    assert git(site.workspace.path, "symbolic-ref", "--short", "HEAD") == site.session.branch
    assert git(site.workspace.path, "status", "--porcelain") == "?? draft"


def test_only_what_passed_the_checks_is_signed(site: Site, head: str) -> None:
    refused = publishes(site, checked=True)  # Ada is neither the bot nor listed.
    assert isinstance(refused, Rejected)
    assert refused.reason is Reason.COMMITS_HELD
    assert site.workspace.head() == head
    # Once a person has allowed it, its signed form is allowed too, and nothing else.
    for due in site.scenario.store.outbox.due(site.scenario.clock()):
        site.scenario.store.outbox.withdraw(due.seq, site.scenario.clock())
    assert isinstance(publishes(site), Withdrawn)
    assert isinstance(publishes(site, checked=True), Completed)
    site.commits("c")
    assert isinstance(publishes(site, checked=True), Rejected)


def test_without_a_key_nothing_is_pushed(site: Site, head: str) -> None:
    refused = publishes(site, signer=None)
    assert isinstance(refused, Rejected)
    assert "signing.key-file" in refused.why
    assert on_github(site) == ""
