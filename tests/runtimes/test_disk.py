"""What a session has on disk is measured within bounds, whatever its agent made."""

import os
from pathlib import Path

import pytest

from lifecycle.model.facts import DiskExcess
from lifecycle.model.status import DiskLimit
from runtimes import disk
from runtimes.disk import LocalDisk

MB = 1024 * 1024


def excess(folder: Path, most_mb: int = 1) -> DiskExcess | None:
    return LocalDisk(()).excess([folder], most_mb, lambda _: False)


def test_the_folders_of_a_session_are_its_workspace_runs_and_home(tmp_path: Path) -> None:
    names = ("workspaces/app-1", "sessions/app-1_r1", "sessions/app-1_home", "sessions/app-10_r1")
    for name in names:
        (tmp_path / name).mkdir(parents=True)
    found = LocalDisk((tmp_path / "workspaces", tmp_path / "sessions", tmp_path / "none")).folders()
    assert {*found["app-1"]} == {tmp_path / name for name in names[:3]}
    assert found["app-10"] == [tmp_path / names[3]]


def test_files_of_all_folders_count_together_by_their_blocks(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "file").write_bytes(bytes(600 * 1024))
    both = [tmp_path / "a", tmp_path / "b"]
    over = DiskExcess(limit=DiskLimit.MEGABYTES, most=1)
    assert LocalDisk(()).excess(both, 1, lambda _: False) == over
    assert LocalDisk(()).excess(both, 2, lambda _: False) is None
    assert LocalDisk(()).excess(both[:1], 1, lambda _: False) is None


def test_a_sparse_file_a_link_and_another_name_take_up_nothing_more(tmp_path: Path) -> None:
    own, others = tmp_path / "own", tmp_path / "others"
    for folder in (own, others):
        folder.mkdir()
    (others / "big").write_bytes(bytes(4 * MB))
    (own / "link").symlink_to(others)
    with (own / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (own / "file").write_bytes(bytes(700 * 1024))
    (own / "name").hardlink_to(own / "file")
    assert excess(own) is None
    os.mkfifo(own / "fifo")  # Opening it would wait for ever.
    assert excess(own) is None
    assert excess(tmp_path / "gone") is None
    assert excess(own / "link") is None


def test_a_hostile_tree_ends_a_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "MOST_FILES", 50)
    monkeypatch.setattr(disk, "MOST_LEVELS", 10)
    deep, many = tmp_path / "deep", tmp_path / "many"
    Path(deep, *"0123456789").mkdir(parents=True)
    many.mkdir()
    for number in range(60):
        (many / f"{number}").touch()
    before = len([*Path("/proc/self/fd").iterdir()])
    assert excess(deep) == DiskExcess(limit=DiskLimit.LEVELS, most=10)
    assert excess(many) == DiskExcess(limit=DiskLimit.FILES, most=50)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


@pytest.mark.parametrize("hidden", ["top", "top/inner", "top/inner/file"])
@pytest.mark.parametrize("mode", [0o000, 0o300, 0o400])
def test_an_agent_cannot_hide_files_by_the_permissions_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: str, mode: int
) -> None:
    """A folder that cannot be read is reported as `DiskLimit.READABLE`.

    A file that cannot be read is measured all the same. Root can read everything, so if the tests
    run as root, the measurement runs as another user.
    """
    monkeypatch.chdir(tmp_path)
    user = os.geteuid() or 65534
    inner = Path("top/inner")
    inner.mkdir(parents=True)
    (inner / "file").write_bytes(bytes(2 * MB))
    tmp_path.chmod(0o755)
    for path in (Path("top"), inner, inner / "file"):
        os.chown(path, user, -1)
    Path(hidden).chmod(mode)
    limit = DiskLimit.MEGABYTES if hidden == "top/inner/file" else DiskLimit.READABLE
    euid = os.geteuid()
    os.seteuid(user)
    try:
        found = excess(Path("top"))
    finally:
        os.seteuid(euid)
        Path(hidden).chmod(0o700)
    assert found is not None
    assert found.limit is limit


def test_a_measurement_rests_most_of_the_time_and_can_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_SLICE", 10)
    for number in range(100):
        (tmp_path / f"{number}").touch()
    rests: list[float] = []

    def rest(seconds: float) -> bool:
        rests.append(seconds)
        return len(rests) == 4

    assert LocalDisk(()).excess([tmp_path], 100, rest) is None
    assert len(rests) == 4
    assert all(rests)
