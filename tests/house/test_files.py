"""What every committed file must be, and must not hold."""

import re

import pytest

from tests.house.source import ROOT, texts, tracked

MOST_LINES = 400

#: Longer files, each with its reason.
LONGER: dict[str, str] = {}

#: Spelled in pieces, so that this file passes its own test.
NEVER = {
    "a registry's address": r"py" r"pi\.org|python" r"hosted\.org|registry\.npm" r"js",
    "a path of somebody's machine": r"(?<![\w.~}-])/(?:work|ro" r"ot|ho" r"me/(?!dev/)\w+)/",
    "a folder beside the repository": r"\.\./sha" r"red",
    "a note to do something later": r"\bTO" r"DO\b|\bFIX" r"ME\b",
}

#: Folders at the root, fixed; what convention puts beside them.
ROOMS = {"bot", "config", "lifecycle", "runtimes", "scripts", "tests"}
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
    "requirements.txt",
}


def test_files_stay_small() -> None:
    long = {
        name
        for name, text in texts().items()
        if name.endswith((".py", ".js", ".css", ".html", ".sh")) and text.count("\n") > MOST_LINES
    }
    assert long == LONGER.keys()


@pytest.mark.parametrize("what", NEVER)
def test_no_file_names(what: str) -> None:
    found = [
        f"{name}: {hit[0]}"
        for name, text in texts().items()
        for hit in re.finditer(NEVER[what], text)
    ]
    assert found == []


def test_nothing_lies_at_the_root_but_rooms_and_convention() -> None:
    roots = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert roots - CONVENTION == ROOMS


def test_every_python_file_says_what_it_is_for() -> None:
    silent = [
        name
        for name, text in texts().items()
        if name.endswith(".py") and text.strip() and not text.startswith('"""')
    ]
    assert silent == []


def test_scripts_can_be_run_and_say_what_they_do() -> None:
    scripts = [path for path in tracked() if path.parent == ROOT / "scripts" and not path.suffix]
    scripts.append(ROOT / ".ci/run")
    for script in scripts:
        first, second = script.read_text(encoding="utf-8").splitlines()[:2]
        assert first.startswith("#!/"), script
        assert second.startswith("# "), script
        assert script.stat().st_mode & 0o111, script
