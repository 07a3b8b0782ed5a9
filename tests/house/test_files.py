"""Rules for every committed file."""

import ast
import re
from collections import Counter

import pytest

from tests.house.source import ROOT, modules, texts, tracked

MOST_LINES = 400

#: Longer files, each with its reason.
LONGER: dict[str, str] = {}

#: Written in pieces so that this file passes its own test.
NEVER = {
    "a registry's address": r"py" r"pi\.org|python" r"hosted\.org|registry\.npm" r"js",
    "a path of somebody's machine": r"(?<![\w.~}-])/(?:work|ro" r"ot|ho" r"me/(?!dev/)\w+)/",
    "a folder beside the repository": r"\.\./sha" r"red",
    "a note to do something later": r"\bTO" r"DO\b|\bFIX" r"ME\b",
}

#: The packages at the root, and conventional files beside them.
PACKAGES = {"bot", "config", "lifecycle", "runtimes", "scripts", "tests"}
CONVENTION = {
    ".ci",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "docs",
    "pyproject.toml",
    "requirements-dev.txt",
    "requirements.txt",
}


def test_no_file_exceeds_the_line_limit() -> None:
    long = {
        name
        for name, text in texts().items()
        if name.endswith((".py", ".js", ".css", ".html", ".sh")) and text.count("\n") > MOST_LINES
    }
    assert long == LONGER.keys()


@pytest.mark.parametrize("what", NEVER)
def test_no_file_contains_forbidden_text(what: str) -> None:
    found = [
        f"{name}: {hit[0]}"
        for name, text in texts().items()
        for hit in re.finditer(NEVER[what], text)
    ]
    assert found == []


def test_the_root_holds_only_packages_and_conventional_files() -> None:
    roots = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert roots - CONVENTION == PACKAGES


def test_every_python_file_has_a_docstring() -> None:
    silent = [
        name
        for name, text in texts().items()
        if name.endswith(".py") and text.strip() and not text.startswith('"""')
    ]
    assert silent == []


def test_scripts_are_executable_and_documented() -> None:
    scripts = [path for path in tracked() if path.parent == ROOT / "scripts" and not path.suffix]
    scripts.append(ROOT / ".ci/run")
    for script in scripts:
        first, second = script.read_text(encoding="utf-8").splitlines()[:2]
        assert first.startswith("#!/"), script
        assert second.startswith("# "), script
        assert script.stat().st_mode & 0o111, script


def test_public_class_names_are_unique() -> None:
    """One word, one meaning. `bot.demo` is exempt, because it shares no code with the bot."""
    names = [
        node.name
        for module in modules("bot", "config", "lifecycle", "runtimes")
        if not module.name.startswith("bot.demo")
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert [name for name, count in Counter(names).items() if count > 1] == []
