"""`mergewright backup` and `restore`."""

import shutil
from pathlib import Path

from tests.cli.conftest import CommandLine, Deployment


def test_a_backup_is_restored_into_an_empty_data_folder(
    mergewright: CommandLine, deployment: Deployment, tmp_path: Path
) -> None:
    session, file = deployment.has_session(), str(tmp_path / "backup")
    written = mergewright("backup", file)
    assert written.code == 0, written.err
    assert f"Restore it with `mergewright restore {file}`" in written.out
    refused = mergewright("restore", file)
    assert refused.code == 1
    assert "stop the bot and move this file" in refused.err
    shutil.rmtree(deployment.paths.data)
    restored = mergewright("restore", file)
    assert restored.code == 0, restored.err
    assert "Make sure that the bot that wrote the backup has stopped" in restored.out
    assert session in mergewright("ls").out


def test_a_backup_without_a_database_is_refused(mergewright: CommandLine, tmp_path: Path) -> None:
    refused = mergewright("backup", str(tmp_path / "backup"))
    assert refused.code == 1
    assert "no database for this user" in refused.err
    assert not (tmp_path / "backup").exists()


def test_a_backup_in_a_missing_folder_is_one_line(
    mergewright: CommandLine, deployment: Deployment, tmp_path: Path
) -> None:
    deployment.has_session()
    refused = mergewright("backup", str(tmp_path / "missing" / "backup"))
    assert refused.code == 1
    assert refused.err.count("\n") == 1
    assert "No such file or directory" in refused.err
