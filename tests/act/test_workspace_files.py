"""Submodules and files of Git LFS in the workspaces of sessions."""

import hashlib
import shutil
from typing import Any

import pytest
from msgspec.structs import replace

from bot.act.results import Rejected
from tests.harness.site import Site, git


@pytest.fixture
def uses_lfs(site: Site) -> Site:
    """A repository with a file of LFS, on a server without LFS."""
    attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n"
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 2000000\n"
    for name, text in {".gitattributes": attributes, "a.bin": pointer}.items():
        (site.github.parent / "new").write_text(text)
        blob = git(
            site.github, "hash-object", "-w", "--no-filters", str(site.github.parent / "new")
        )
        git(site.github, "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    head = git(site.github, "commit-tree", git(site.github, "write-tree"), "-m", "Add a file")
    git(site.github, "update-ref", "refs/heads/main", head)
    return site


def has(site: Site, **settings: Any) -> None:
    projects: Any = site.locations.projects
    projects["widgets"] = replace(projects["widgets"], **settings)


def test_no_run_starts_without_git_lfs(uses_lfs: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setattr(shutil, "which", lambda _: None)
        refusal = uses_lfs.tries_to_start()
    assert isinstance(refusal, Rejected)
    assert refusal.why == (
        "acme/widgets has files of Git LFS, and git-lfs is not installed on Mergewright's server:"
        " ask its administrator to install it, or set lfs-max-mb = 0 to have only the pointers of"
        " these files in checkouts"
    )
    has(uses_lfs, lfs_max_mb=0)
    uses_lfs.workspace.remove()
    assert not isinstance(uses_lfs.tries_to_start(), Rejected)


@pytest.mark.skipif(not shutil.which("git-lfs"), reason="git-lfs is not installed")
def test_no_run_starts_with_more_files_of_lfs_than_allowed(uses_lfs: Site) -> None:
    has(uses_lfs, lfs_max_mb=1)
    refusal = uses_lfs.tries_to_start()
    assert isinstance(refusal, Rejected)
    assert refusal.why.startswith(
        "the checkout has 2 MB of Git LFS files, more than lfs-max-mb = 1"
    )


def test_the_log_says_which_submodules_are_left_out(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    text = '[submodule "lib"]\n\tpath = lib\n\turl = ../lib.git\n'
    (site.github.parent / "new").write_text(text)
    blob = git(site.github, "hash-object", "-w", str(site.github.parent / "new"))
    git(site.github, "update-index", "--add", "--cacheinfo", f"100644,{blob},.gitmodules")
    pinned = hashlib.sha1(b"any", usedforsecurity=False).hexdigest()
    git(site.github, "update-index", "--add", "--cacheinfo", f"160000,{pinned},lib")
    head = git(site.github, "commit-tree", git(site.github, "write-tree"), "-m", "Add lib")
    git(site.github, "update-ref", "refs/heads/main", head)
    has(site, submodules=("acme/other",))
    site.starts()
    assert f"{site.id}: no submodule at 'lib': ../lib.git is not allowed" in caplog.text
