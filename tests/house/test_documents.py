"""Documents match the code."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from bot.cli.program import app
from config.settings import ServerSettings
from scripts import blocks
from tests.house.source import ROOT, texts

FENCED = re.compile(r"^ *```(?:sh|console|bash)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)")
CODE = re.compile(r"`((?:bot|config|lifecycle|runtimes|tests)/[\w./-]*\w)`")
DEFINED = r"^ *(?:async )?(?:def|class) {0}\b|^{0}\b|^    {0}: |self\.{0} = "
DOCUMENTS = [
    name
    for name in texts()
    if name.endswith(".md") and ("/" not in name or name.startswith("docs/"))
]


def lines() -> list[tuple[str, str]]:
    """Every command line in a fenced block, with its document."""
    return [
        (name, line.removeprefix("$ ").partition(" #")[0].strip())
        for name in DOCUMENTS
        for block in FENCED.findall(texts()[name])
        for line in block.splitlines()
        if line.strip()
    ]


@pytest.mark.parametrize(
    ("document", "line"), [pair for pair in lines() if "mergewright " in pair[1]]
)
def test_a_documented_command_exists(document: str, line: str) -> None:
    if re.match(r"(\S+=\S+ )*mergewright ", line):
        words = line.split("mergewright ", 1)[1].split()
        command: Any = typer.main.get_command(app)
        while hasattr(command, "commands"):
            word = words.pop(0)
            assert word in command.commands, f"{document}: {line}"
            command = command.commands[word]
        options = {option for parameter in command.params for option in parameter.opts}
        given = {word.partition("=")[0] for word in words if word.startswith("-")}
        assert given <= options | {"--help"}, f"{document}: {line}"


def test_documented_scripts_exist() -> None:
    named = {
        (document, word)
        for document, line in lines()
        for word in re.findall(r"(?:^|\s)(?:\./)?((?:scripts|\.ci)/[\w-]+)", line)
    }
    assert named
    assert [pair for pair in named if not (ROOT / pair[1]).is_file()] == []


def test_the_readme_begins_with_what_a_newcomer_types() -> None:
    typed = [line for document, line in lines() if document == "README.md"]
    assert typed[0].startswith("git clone ")
    assert typed[1] == "./scripts/demo"


def test_the_program_is_not_installed_into_its_data_folder() -> None:
    """The installation would create the data folder with access for other users.

    `mergewright doctor` fails if other users have access to the data folder.
    """
    install = (ROOT / "scripts/install").read_text()
    (target,) = re.findall(r'^target=\$\{1:-"\$HOME/(.*)"\}$', install, re.MULTILINE)
    assert not f"~/{target}".startswith(ServerSettings().data)


def test_links_between_documents_resolve() -> None:
    dead = [
        f"{name}: {target}"
        for name in DOCUMENTS
        for target in LINK.findall(texts()[name])
        if not (ROOT / Path(name).parent / target).exists()
    ]
    assert dead == []


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "docs/code.md"])
def test_documents_name_files_and_functions_that_exist(name: str) -> None:
    text = texts()[name]
    named = CODE.findall(text)
    assert [path for path in named if not any(ROOT.glob(path.replace("NAME", "*")))] == []
    missing = [
        f"{path}: {word}"
        for word, path in re.findall(rf"`(?:\w+\.)?(\w+)` in {CODE.pattern}", text)
        if path.endswith(".py") and not re.search(DEFINED.format(word), texts()[path], re.MULTILINE)
    ]
    assert named
    assert missing == []


def test_generated_blocks_are_up_to_date() -> None:
    assert blocks.stale() == []


def test_a_default_of_several_lines_is_documented_in_full() -> None:
    assert '`policy.protected-paths` | `[".github/**", "CODEOWNERS", ' in blocks.settings()


def test_only_optional_arguments_are_in_brackets() -> None:
    assert "`mergewright setup OWNER/NAME --url URL [--agent AGENT]" in blocks.commands()


def test_every_generated_block_is_used_somewhere() -> None:
    used = {
        match["name"]
        for name in blocks.DOCUMENTS
        for match in re.finditer(r"<!-- generated:(?P<name>[\w-]+) -->", texts()[name])
    }
    assert used == blocks.BLOCKS.keys()


def test_every_documented_environment_variable_is_read() -> None:
    from config.load import VARIABLES

    # What agents are given: `begin_run` of `runtimes.agents.shared.adapter`, and `shell`.
    given = {"MERGEWRIGHT_PROMPT", "MERGEWRIGHT_SUMMARY", "MERGEWRIGHT_PROGRESS"}
    given |= {"MERGEWRIGHT_MODEL_URL", "MERGEWRIGHT_MODEL_KEY", "MERGEWRIGHT_PORT"}
    given |= {"MERGEWRIGHT_SYSTEM_PROMPT", "MERGEWRIGHT_WORKSPACE"}
    known = {*VARIABLES.values(), "MERGEWRIGHT_CONFIG", "MERGEWRIGHT_SERVER", *given}
    named = {
        word.removesuffix("_FILE")
        for name in DOCUMENTS
        for word in re.findall(r"MERGEWRIGHT_[A-Z_]*[A-Z]", texts()[name])
    }
    assert named <= known
