"""Tests of the free memory of the machine."""

from pathlib import Path

import pytest

from runtimes.local_host import free_mb


def test_this_machine_reports_its_free_memory() -> None:
    assert (free_mb() or 0) > 0


@pytest.mark.parametrize(
    ("printed", "free"),
    [
        ("MemTotal:       24684000 kB\nMemAvailable:   2048000 kB\n", 2000),
        ("MemTotal: 24684000 kB\n", None),
        ("MemAvailable:\n", None),
        ("MemAvailable: lots\n", None),
    ],
)
def test_malformed_meminfo_gives_no_value(tmp_path: Path, printed: str, free: int | None) -> None:
    file = tmp_path / "meminfo"
    file.write_text(printed)
    assert free_mb(file) == free


def test_a_missing_meminfo_gives_no_value(tmp_path: Path) -> None:
    assert free_mb(tmp_path / "meminfo") is None
