"""Merging: access is checked again, and agents' commit messages have no effect."""

import subprocess
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from msgspec.structs import replace

from bot.act.results import ActionResult, Completed, Rejected, RetryLater
from bot.github.write_access import WriteAccess
from bot.store import Observation
from config.settings import ProjectSettings
from lifecycle.model import keys
from lifecycle.model.actions import DeleteBranch, Enqueue, MergePull
from lifecycle.model.facts import Pull, Verdict
from lifecycle.model.policy import MergeMethod
from tests.harness.site import Site, git

EVERY = tuple(MergeMethod)
MERGE, SQUASH, REBASE = EVERY


class Merger:
    """A session with a pull request of one commit, and a GitHub that merges on request."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.gone = ""  #: People who lost write access since the last read.
        self.base = "main"  #: The base branch, as GitHub has it now.
        site.starts()

    def lands(
        self,
        method: MergeMethod,
        allowed: tuple[MergeMethod, ...] = EVERY,
        asked: bool = False,
        by: str = "",
        queue: bool = False,
    ) -> tuple[MergeMethod, str]:
        """The merge method and message."""
        result = self.tries_to_land(method, allowed, asked, by, queue)
        assert isinstance(result, Completed), result
        return self.calls[3], self.calls[5]

    def tries_to_land(
        self,
        method: MergeMethod,
        allowed: tuple[MergeMethod, ...] = EVERY,
        asked: bool = False,
        by: str = "",
        queue: bool = False,
    ) -> ActionResult:
        scenario, self.calls = self.site.scenario, list[Any]()
        head = self.site.commits("a")
        self.site.locations.mirror("widgets").take(self.site.workspace)
        pull = Pull(
            number=34,
            head=head,
            branch=self.site.session.branch,
            base_branch="main",
            verdicts=(
                Verdict(author="rob", approved=True, sha=head, allowed=True),
                Verdict(author="mallory", approved=True, sha=head),
            ),
        )
        scenario.store.observations.record(
            [Observation(session=self.site.id, pulls=(pull,))], scenario.clock()
        )

        def merge(*words: Any) -> str:
            self.calls.extend(words)
            return head

        github: Any = SimpleNamespace(
            read=SimpleNamespace(may_write=lambda name, login: login != self.gone),
            merges=SimpleNamespace(
                merge=merge,
                enqueue=merge,
                target=lambda name, number: SimpleNamespace(base_branch=self.base, methods=allowed),
            ),
        )
        gone, self.gone = self.gone, ""
        people = WriteAccess(github, scenario.clock)
        people.may_write("acme/widgets", gone)
        self.gone = gone
        act = self.site.dispatcher(github, people)
        wanted: MergePull | Enqueue = MergePull(
            key=keys.merge(head),
            number=34,
            sha=head,
            base="main",
            method=method,
            asked=asked,
            by=by,
        )
        if queue:
            wanted = Enqueue(key=keys.merge(head), number=34, sha=head, base="main", by=by)
        scenario.orders(self.site.id, wanted, run=self.site.session.run)
        (due,) = scenario.store.outbox.due(scenario.clock())
        return act.do(due, lambda: None)

    def commits(self, message: str) -> None:
        """An empty first commit of the agent."""
        git(self.site.workspace.path, "commit", "--quiet", "--allow-empty", "-m", message)


@pytest.fixture
def merger(site: Site) -> Merger:
    return Merger(site)


@pytest.mark.parametrize("by", ["ada", "cli:root", ""])
def test_requester_and_approver_are_checked_uncached_before_a_merge(
    merger: Merger, by: str
) -> None:
    assert merger.lands(SQUASH, by=by)[0] is SQUASH


@pytest.mark.parametrize(("gone", "queue"), [("ada", False), ("rob", False), ("rob", True)])
def test_nothing_is_merged_for_somebody_who_lost_write_access(
    merger: Merger, gone: str, queue: bool
) -> None:
    merger.gone = gone
    result = merger.tries_to_land(SQUASH, by="ada", queue=queue)
    assert isinstance(result, RetryLater)
    assert f"@{gone} approved or requested this merge and lost write access" in result.why
    (refresh,) = merger.site.scenario.store.refreshes.due(merger.site.scenario.clock(), ("pull:",))
    assert refresh.subject == "pull:34"


@pytest.mark.parametrize("queue", [False, True])
def test_nothing_is_merged_into_another_base_branch_than_the_judged_one(
    merger: Merger, queue: bool
) -> None:
    merger.base = "release"
    result = merger.tries_to_land(SQUASH, by="ada", queue=queue)
    assert isinstance(result, RetryLater)
    assert result.why == "the base branch was changed to release meanwhile"
    assert merger.calls == []
    (refresh,) = merger.site.scenario.store.refreshes.due(merger.site.scenario.clock(), ("pull:",))
    assert refresh.subject == "pull:34"


@pytest.mark.parametrize("message", ["Mend\n\nFixes #9", "Mend, closes acme/other#12"])
@pytest.mark.parametrize("method", [MERGE, REBASE])
def test_commits_that_would_close_other_issues_are_squashed(
    merger: Merger, method: MergeMethod, message: str
) -> None:
    merger.commits(message)
    assert merger.lands(method)[0] is SQUASH


def test_a_commit_below_hundreds_of_others_cannot_close_an_issue(merger: Merger) -> None:
    merger.commits("Mend\n\nFixes #9")
    branch = f"refs/heads/{merger.site.session.branch}"
    commit = f"commit {branch}\ncommitter A <a@localhost> 1 +0000\ndata 1\nx\n"
    stream = f"{commit}from {branch}^0\n" + commit * 300
    place = ("git", "-C", merger.site.workspace.path)
    subprocess.run([*place, "fast-import", "--quiet"], input=stream, text=True, check=True)
    assert merger.lands(MERGE)[0] is SQUASH


@pytest.mark.parametrize("message", ["Mend\n\nFixes #12", "Fix [parser] for 9 of 10"])
def test_commits_that_close_nothing_else_are_merged_by_the_requested_method(
    merger: Merger, message: str
) -> None:
    merger.commits(message)
    assert merger.lands(REBASE)[0] is REBASE


def test_a_method_that_the_repository_forbids_is_replaced_by_an_allowed_one(merger: Merger) -> None:
    assert merger.lands(REBASE, (MERGE,))[0] is MERGE


def test_a_method_that_a_person_named_is_not_replaced(merger: Merger) -> None:
    result = merger.tries_to_land(REBASE, (MERGE,), asked=True)
    assert isinstance(result, Rejected)
    remedy = "write `/mergewright merge merge` and then `/mergewright retry`"
    assert result.why == f"acme/widgets forbids rebase: {remedy}"


@pytest.mark.parametrize(("allowed", "asked"), [((MERGE, REBASE), False), (EVERY, True)])
def test_a_merge_that_would_close_other_issues_is_rejected_where_it_cannot_be_squashed(
    merger: Merger, allowed: tuple[MergeMethod, ...], asked: bool
) -> None:
    merger.commits("Mend\n\nFixes #9")
    sha = (merger.site.workspace.head() or "")[:7]
    result = merger.tries_to_land(REBASE, allowed, asked)
    assert isinstance(result, Rejected)
    assert ("`/mergewright merge squash`" in result.why) == asked
    said = f"with a rebase, the messages of {sha} would close other issues: reword these messages"
    assert said in result.why


def test_commits_merged_by_an_update_of_the_branch_are_not_listed_as_the_agents(
    merger: Merger,
) -> None:
    site = merger.site
    git(site.github, "symbolic-ref", "HEAD", "refs/heads/main")
    tree = git(site.github, "mktree")
    theirs = git(site.github, "commit-tree", tree, "-p", "main", "-m", "Theirs, fixes #9")
    git(site.github, "update-ref", "refs/heads/main", theirs)
    site.locations.mirror("widgets").refresh()
    git(site.workspace.path, "fetch", "--quiet", "origin")
    git(site.workspace.path, "merge", "--quiet", "--no-edit", "origin/main")
    method, message = merger.lands(REBASE)
    assert method is REBASE
    assert "Theirs" not in message


def test_a_squash_keeps_sign_off_and_credit(merger: Merger) -> None:
    signed = "Signed-off-by: Ann <ann@example.org>"
    merger.commits(f"Add it\n\n{signed}")
    author = ("-c", "user.name=Bo", "-c", "user.email=bo@example.org")
    git(merger.site.workspace.path, *author, "commit", "--quiet", "--allow-empty", "-m", "Fix it")
    _, message = merger.lands(SQUASH)
    text, _, credit = message.partition("\n\nCloses #12\n\n")
    assert text.startswith("* Add it\n* Fix it\n")
    assert {signed, "Co-authored-by: Bo <bo@example.org>"} <= set(credit.splitlines())


def test_a_merge_commit_credits_nobody_again(merger: Merger) -> None:
    merger.commits("Add it\n\nSigned-off-by: Ann <ann@example.org>")
    _, message = merger.lands(MERGE)
    assert message.endswith("Closes #12")


@pytest.mark.parametrize(
    ("push_to", "home", "onto"),
    [("repository", "acme/widgets", "main"), ("fork", "bot/widgets", "")],
)
def test_open_pull_requests_based_on_a_deleted_branch_get_the_base_of_the_merged_one(
    site: Site, push_to: Any, home: str, onto: str
) -> None:
    """A pull request to the repository cannot have a branch of the bot's fork as its base."""
    projects = cast("dict[str, ProjectSettings]", site.locations.projects)
    projects["widgets"] = replace(projects["widgets"], push_to=push_to, fork="bot/widgets")
    github: Any = SimpleNamespace(write=MagicMock())
    github.write.delete_branch.return_value = ""
    branch = site.session.branch
    deletion = DeleteBranch(key=keys.delete_branch(branch), branch=branch, sha="a", base="main")
    site.scenario.orders(site.id, deletion)
    (due,) = site.scenario.store.outbox.due(site.scenario.clock())
    assert site.dispatcher(github).do(due, lambda: None) == Completed()
    github.write.delete_branch.assert_called_once_with(home, branch, "a", onto)
