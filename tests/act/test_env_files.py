"""Files of the operator's, such as `.env`, in the workspaces of sessions."""

from pathlib import Path

from bot.act.results import Completed, Rejected
from tests.harness.site import Site, git


def test_the_operators_files_are_in_the_workspace_and_not_in_what_is_preserved(
    site: Site,
) -> None:
    site.has_env_files({".env": "PASSWORD=hunter2-of-ada\n"})
    site.starts()
    assert (site.workspace.path / ".env").read_text() == "PASSWORD=hunter2-of-ada\n"
    (site.workspace.path / "b").write_text("not committed")
    kept = site.agents.release(site.session, 1)
    assert isinstance(kept, Completed)
    commit = kept.result.removeprefix("kept ")
    mirror = site.locations.mirror("widgets").path
    assert set(git(mirror, "ls-tree", "-r", "--name-only", commit).split()) >= {"b"}
    assert ".env" not in git(mirror, "ls-tree", "-r", "--name-only", commit).split()


def test_no_run_starts_whose_files_the_repository_would_commit(site: Site, tmp_path: Path) -> None:
    (tmp_path / "committed").write_text("PASSWORD=\n")
    blob = git(site.github, "hash-object", "-w", str(tmp_path / "committed"))
    git(site.github, "update-index", "--add", "--cacheinfo", f"100644,{blob},.env")
    head = git(site.github, "commit-tree", git(site.github, "write-tree"), "-m", "Add settings")
    git(site.github, "update-ref", "refs/heads/main", head)
    site.has_env_files({".env": "PASSWORD=hunter2-of-ada\n"})
    refusal = site.tries_to_start()
    assert isinstance(refusal, Rejected)
    assert refusal.why.startswith("the repository contains .env, but the setting `env-files`")
