"""The lock file is complete, matches the declared dependencies and contains no address."""

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.source import ROOT, tracked

LOCK = (ROOT / "requirements.txt").read_text(encoding="utf-8")
PINS = dict(re.findall(r"^([\w.-]+)==([\w.]+)", LOCK, re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_dependency_is_locked_at_a_matching_version() -> None:
    extras = PROJECT["optional-dependencies"].values()
    declared = map(Requirement, sum(extras, PROJECT["dependencies"]))
    wrong = [
        str(one)
        for one in declared
        if not one.specifier.contains(PINS.get(canonicalize_name(one.name), "0"))
    ]
    assert wrong == []


def test_every_pin_has_hashes() -> None:
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert len(entries) == len(PINS)


def test_the_lock_contains_no_address() -> None:
    assert re.findall(r"^-.*|\w+://\S*|\S+ @ \S+", LOCK, re.MULTILINE) == []


def test_there_is_one_lock_file() -> None:
    assert not any(path.name in ("uv.lock", "poetry.lock") for path in tracked())
