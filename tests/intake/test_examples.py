"""The check of GitHub's published examples reports parser errors."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from scripts.webhook_examples import main


def package(folder: Path, *payloads: Any) -> Path:
    """Write a package archive with these examples of the event `issues`; return its path."""
    path = folder / "package.tgz"
    index = json.dumps([{"name": "issues", "examples": payloads}]).encode()
    with tarfile.open(path, "w:gz") as archive:
        for name, content in (("ghes-35/index.json", index), ("package.json", b"{}")):
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


GOOD = {
    "action": "labeled",
    "issue": {"number": 1},
    "repository": {"id": 1, "full_name": "acme/widgets"},
}


def test_examples_that_are_read_pass(tmp_path: Path) -> None:
    assert main(package(tmp_path, GOOD)) == 0


def test_an_example_that_is_refused_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(package(tmp_path, GOOD, {"action": "odd"})) == 1
    assert "ghes-35 issues odd: ValidationError" in capsys.readouterr().out


def test_a_package_without_examples_proves_nothing(tmp_path: Path) -> None:
    assert main(package(tmp_path)) == 1
