"""Writes configuration files and returns their problems."""

from collections.abc import Callable
from pathlib import Path

import pytest

from config.load import ConfigError, load_settings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "mergewright.toml"


@pytest.fixture
def complaints(file: Path) -> Callable[[str], list[str]]:
    """Every problem of a text, without the file's name in front."""

    def of(text: str) -> list[str]:
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError) as caught:
            load_settings(file)
        lines = str(caught.value).splitlines()
        assert all(line.startswith(f"{file}: ") for line in lines)
        return [line.removeprefix(f"{file}: ") for line in lines]

    return of
