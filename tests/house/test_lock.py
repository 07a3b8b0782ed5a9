"""The lock files match the declared dependencies, have hashes and contain no URLs."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.source import ROOT, texts, tracked

PRODUCTION, DEVELOPMENT = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("requirements.txt", "requirements-dev.txt")
)
LOCKS = pytest.mark.parametrize("lock", [PRODUCTION, DEVELOPMENT], ids=["production", "all"])
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
#: What Litestar needs to make up examples in OpenAPI documents, which ours does not do.
UNUSED = {"polyfactory", "faker"}


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", lock, re.MULTILINE))


def not_locked(declared: list[str], lock: str) -> list[str]:
    return [
        str(one)
        for one in map(Requirement, declared)
        if not one.specifier.contains(pins(lock).get(canonicalize_name(one.name), "0"))
    ]


def test_every_dependency_is_locked_at_a_matching_version() -> None:
    assert not_locked(sum(EXTRAS.values(), PROJECT["dependencies"]), DEVELOPMENT) == []
    assert not_locked(PROJECT["dependencies"] + EXTRAS["build"], PRODUCTION) == []


def test_production_has_the_tested_versions_and_no_tools_of_development() -> None:
    assert pins(PRODUCTION).items() <= pins(DEVELOPMENT).items()
    tools = {canonicalize_name(Requirement(one).name) for one in EXTRAS["dev"] + EXTRAS["demo"]}
    assert pins(PRODUCTION).keys().isdisjoint(tools | UNUSED)


def test_production_lacks_only_what_nothing_imports() -> None:
    runtime = set(re.findall(r"^([\w.-]+)==", DEVELOPMENT, re.MULTILINE)) & UNUSED
    assert runtime == UNUSED, "they are no dependencies any more: correct scripts/lock"
    imported = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(UNUSED)})", re.M)
    assert [name for name, text in texts().items() if imported.search(text)] == []


@LOCKS
def test_every_pin_has_hashes(lock: str) -> None:
    entries = re.split(r"\n(?=\S)", lock.strip())
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert len(entries) == len(pins(lock))


@LOCKS
def test_the_lock_contains_no_address(lock: str) -> None:
    assert re.findall(r"^-.*|\w+://\S*|\S+ @ \S+", lock, re.MULTILINE) == []


def test_there_are_no_other_lock_files() -> None:
    assert not any(path.name in ("uv.lock", "poetry.lock") for path in tracked())
