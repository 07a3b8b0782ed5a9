"""Tests of the pull request's title and text, from a file of the agent, and of its update."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from bot.act.publishing import Publishing
from bot.act.results import Completed, RetryLater
from bot.github.errors import Conflicted
from bot.github.rest import RepositoryIdentity
from bot.store import Observation
from bot.system.redaction import Redaction
from lifecycle.model import keys
from lifecycle.model.actions import Publish, UpdateBranch
from lifecycle.model.facts import Pull
from tests.harness.site import Site, git


@pytest.fixture
def file(site: Site) -> Path:
    """The summary file of a session with one commit."""
    site.starts()
    site.commits("a")
    files = site.files
    return files.summary


def opens(site: Site) -> tuple[str, str]:
    """Title and text of the pull request that is opened."""
    title, body = opened(site)[3:5]
    return title, body


def opened(site: Site, meanwhile: Callable[[], object] = lambda: None) -> list[Any]:
    """Return what the bot sends to GitHub to open a pull request; the last item is the labels.

    `meanwhile` happens after its commits were taken into the mirror.
    """
    asked: list[Any] = []

    def open_pull(*words: Any, first: bool) -> int:
        asked.extend(words)
        return 34

    github: Any = SimpleNamespace(
        read=SimpleNamespace(default_branch=lambda name: "main"),
        write=SimpleNamespace(open_pull=open_pull, label=lambda *words: asked.append(words)),
    )
    site.locations.mirror("widgets").take(site.workspace)
    meanwhile()
    publishing = Publishing(
        site.scenario.store.facts,
        github,
        site.locations,
        Redaction(),
        site.scenario.store.agents.add_paths,
    )
    head = site.workspace.head() or ""
    publishing.open_pull(site.session, head, draft=False, check=lambda: None)
    return asked


def test_a_pull_request_has_the_projects_base_title_and_labels(site: Site, file: Path) -> None:
    projects: Any = site.locations.projects
    projects["widgets"] = replace(
        projects["widgets"],
        base_branch="develop",
        pull_title="fix(#{number}): {title}",
        pull_labels=("bot", "ready"),
    )
    repository, head, base, title, *_, labels = opened(site)
    assert (repository, head, base) == ("acme/widgets", site.session.branch, "develop")
    assert title == "fix(#12): a"
    assert labels == ("acme/widgets", 34, "bot", "ready")


def test_a_mirror_that_is_gone_is_made_again_from_github(site: Site, file: Path) -> None:
    branch = f"HEAD:refs/heads/{site.session.branch}"
    git(site.workspace.path, "push", "-q", str(site.github), branch)
    mirror = site.locations.mirror("widgets").path
    assert opened(site, lambda: shutil.rmtree(mirror))[3] == "a"
    assert mirror.is_dir()


def test_a_pull_request_names_issue_and_requester_without_a_mention(site: Site, file: Path) -> None:
    paragraphs = opens(site)[1].split("\n\n")
    assert paragraphs[0] == "Closes #12"
    assert (
        paragraphs[1].replace("\u200b", "")
        == "Written by the agent `shell` at the request of @ada."
    )
    assert "@ada" not in paragraphs[1]


def test_the_summary_files_first_line_is_the_title_and_the_rest_the_text(
    site: Site, file: Path
) -> None:
    file.write_text("# Retry in the client  \n\nIt gave up.\nIt does not.\n")
    title, body = opens(site)
    assert title == "Retry in the client"
    assert body.endswith("\n\nIt gave up.\nIt does not.")


def test_a_summary_with_a_title_alone_is_followed_by_the_commits(site: Site, file: Path) -> None:
    file.write_text("Retry")
    title, body = opens(site)
    assert title == "Retry"
    assert body.endswith("\n\n- a")


def test_without_a_summary_the_commits_are_listed(site: Site, file: Path) -> None:
    title, body = opens(site)
    assert title == "a"
    assert body.endswith("\n\n- a")


def test_hidden_text_and_github_keywords_are_removed_from_the_summary(
    site: Site, file: Path
) -> None:
    file.write_text(
        "Re\x1b[31mtry\u202e\n\nFixes #1 <!-- hidden -->\u200b\n/mergewright merge\n@ada\n"
    )
    title, body = opens(site)
    assert title == "Retry"
    assert "hidden" not in body
    for effective in ("Fixes #1", "\n/mergewright", "@ada"):
        assert effective not in body


def test_a_huge_summary_is_cut(site: Site, file: Path) -> None:
    file.write_text("Retry\n" + "x" * 5_000_000)
    title, body = opens(site)
    assert title == "Retry"
    assert "xxx" in body
    assert len(body) < 65_536


def linked(file: Path, elsewhere: Path) -> None:
    (elsewhere / file.name).write_text("stolen")
    file.symlink_to(elsewhere / file.name)


def in_a_linked_folder(file: Path, elsewhere: Path) -> None:
    (elsewhere / file.name).write_text("stolen")
    file.parent.rmdir()
    file.parent.symlink_to(elsewhere)


def a_pipe(file: Path, elsewhere: Path) -> None:
    os.mkfifo(file)


def a_folder(file: Path, elsewhere: Path) -> None:
    file.mkdir()


@pytest.mark.parametrize("put", [linked, in_a_linked_folder, a_pipe, a_folder])
def test_a_linked_summary_is_not_read(site: Site, file: Path, tmp_path: Path, put: Any) -> None:
    (tmp_path / "elsewhere").mkdir()
    put(file, tmp_path / "elsewhere")
    assert opens(site)[0] == "a"


def test_the_summary_is_never_part_of_a_commit(site: Site, file: Path) -> None:
    file.write_text("Retry")
    assert site.workspace.path not in file.parents
    assert git(site.workspace.path, "status", "--porcelain") == ""


def test_the_name_of_a_repository_is_read_where_a_push_may_create_its_branch(site: Site) -> None:
    scenario, asked, taken = site.scenario, list[str](), site.github.with_name("gadgets.git")

    def identity(name: str) -> RepositoryIdentity:
        asked.append(name)
        return RepositoryIdentity(id=1, name="acme/gadgets" if taken.exists() else name)

    github: Any = SimpleNamespace(read=SimpleNamespace(identity=identity), aliases={})
    site.locations.called = lambda name: github.aliases[name].name if github.aliases else name
    act = site.dispatcher(github)

    def pushes(name: str) -> None:
        head = site.commits(name)
        scenario.orders(site.id, Publish(key=keys.push(head), head=head), run=1)
        (due,) = scenario.store.outbox.due(scenario.clock())
        assert act.do(due, lambda: None) == Completed(result=head)
        scenario.store.outbox.mark_done(due.seq, head, scenario.clock())

    site.starts()
    pushes("a")
    pushes("b")
    assert asked == ["acme/widgets"]
    assert scenario.store.agents.paths(site.id) == ["a", "b"]
    # It is renamed, and another repository takes its name, which has no such branch.
    site.github.rename(taken)
    git(taken.parent, "clone", "--quiet", "--bare", "--branch", "main", str(taken), "widgets.git")
    git(site.github, "update-ref", "-d", f"refs/heads/{site.session.branch}")
    pushes("c")
    assert asked == ["acme/widgets"] * 2
    assert site.session.branch not in git(site.github, "branch", "--list")
    assert git(taken, "rev-parse", site.session.branch) == site.session.work.head


def test_an_update_whose_response_was_lost_is_done_once_its_result_is_read(site: Site) -> None:
    update = UpdateBranch(key=keys.update_branch("b1", "a1"), number=34, head="a1")
    scenario = site.scenario
    scenario.orders(site.id, update, run=1)
    (due,) = scenario.store.outbox.due(scenario.clock())

    def update_branch(*words: Any) -> None:
        raise Conflicted("expected head sha didn't match current head ref", 422)

    github: Any = SimpleNamespace(write=SimpleNamespace(update_branch=update_branch))
    act = site.dispatcher(github)
    assert isinstance(act.do(due, lambda: None), RetryLater)
    (refresh,) = scenario.store.refreshes.due(scenario.clock(), ("pull:",))
    assert refresh.subject == "pull:34"
    assert act.was_done(due) is None
    updated = Pull(number=34, head="a2", branch=site.session.branch, carried=frozenset({"a1"}))
    scenario.store.observations.record(
        [Observation(session=site.id, pulls=(updated,))], scenario.clock()
    )
    assert act.was_done(due) == Completed()
