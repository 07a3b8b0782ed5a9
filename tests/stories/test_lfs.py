"""Files of Git LFS: fetched for agents and uploaded before pushes, by the bot alone."""

import hashlib
import shutil
from pathlib import Path

import pytest

from tests.world.waiting import eventually
from tests.world.world import ALICE, World

pytestmark = pytest.mark.skipif(not shutil.which("git-lfs"), reason="git-lfs is not installed")


def pointer(content: str) -> str:
    oid = hashlib.sha256(content.encode()).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"


def stored(world: World, content: str) -> Path:
    """The file in which the server keeps some content."""
    oid = hashlib.sha256(content.encode()).hexdigest()
    return Path(world.repo.git.path, "lfs", "objects", oid[:2], oid[2:4], oid)


def test_an_agent_reads_and_adds_files_of_lfs(world: World) -> None:
    attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n"
    world.repo.push("main", {".gitattributes": attributes, "a.bin": pointer("old\n")}, by=ALICE)
    stored(world, "old\n").parent.mkdir(parents=True)
    stored(world, "old\n").write_text("old\n")
    app = world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"b.bin": "new\n"}, "Add a widget").ends_its_turn()
    head = issue.pull.pull.head
    assert world.repo.git.run("show", f"{head}:b.bin") == pointer("new\n")
    assert stored(world, "new\n").read_text() == "new\n"
    assert issue.session
    workspace = app.wiring.locations.workspace_of(issue.session)
    assert (workspace.path / "a.bin").read_text() == "old\n"
    assert not workspace.dirty()


def test_people_are_notified_of_more_files_of_lfs_than_allowed(world: World) -> None:
    world.project = "lfs-max-mb = 1"
    large = pointer("x").replace("size 1", "size 2000000")
    files = {".gitattributes": "*.bin filter=lfs\n", "a.bin": large}
    world.repo.push("main", files, by=ALICE)
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    assert "2 MB of Git LFS files, more than lfs-max-mb = 1" in issue.becomes("errored").because
    eventually(
        lambda: any("lfs-max-mb" in one for one in issue.comments_by()), "people are notified"
    )


def test_a_push_with_a_token_in_a_file_of_lfs_waits_for_a_person(world: World) -> None:
    attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n"
    world.repo.push("main", {".gitattributes": attributes}, by=ALICE)
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    content = f"key = glpat-{'x' * 20}\n"
    issue.agent.commits({"b.bin": content}, "Add a widget").ends_its_turn()
    held = issue.becomes("needs_input")
    assert "b.bin" in held.because
    assert "looks like a token or key" in held.because
    assert not stored(world, content).exists()
    issue.issue.comment(f"/mergewright allow {held.work.head[:7]}", by=ALICE)
    eventually(lambda: stored(world, content).exists(), "the upload that a person allowed")
