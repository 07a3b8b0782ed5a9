"""What the machine has left is read where it says so, and not guessed where it does not."""

from pathlib import Path

import pytest

from runtimes.machine import free_mb


def test_this_machine_says_what_it_has_left() -> None:
    assert (free_mb() or 0) > 0


@pytest.mark.parametrize(
    ("said", "free"),
    [
        ("MemTotal:       24684000 kB\nMemAvailable:   2048000 kB\n", 2000),
        ("MemTotal: 24684000 kB\n", None),
        ("MemAvailable:\n", None),
        ("MemAvailable: lots\n", None),
    ],
)
def test_only_a_number_is_believed(tmp_path: Path, said: str, free: int | None) -> None:
    file = tmp_path / "meminfo"
    file.write_text(said)
    assert free_mb(file) == free


def test_a_machine_that_does_not_say_is_unknown(tmp_path: Path) -> None:
    assert free_mb(tmp_path / "meminfo") is None
