"""Registries are literal tables; each is held against its folder."""

import ast
import re
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bot.commands import COMMANDS
from bot.events import EVENTS
from lifecycle.actions import Action
from lifecycle.rules import RULES
from lifecycle.status import Status
from runtimes import RUNTIMES
from runtimes.agents import AGENTS
from tests.house.source import ROOT


class Table(NamedTuple):
    """A registry, the folder of its members, and the files there that are none."""

    members: Mapping[str, Any]
    folder: Path
    others: set[str]


TABLES = {
    "AGENTS": Table(
        AGENTS,
        ROOT / "runtimes/agents",
        {"adopting", "base", "conversation", "databases", "ending", "files", "forms", "hooks"}
        | {"limits", "lines", "messages", "opencode_dialog", "opencode_say", "providers"}
        | {"questions", "starting", "tally", "whole"}
        | {f"{name}_files" for name in AGENTS if name != "shell"}
        | {f"{name}_reader" for name in AGENTS if name != "shell"}
        | {f"{name}_messages" for name in AGENTS if name != "shell"},
    ),
    "RUNTIMES": Table(RUNTIMES, ROOT / "runtimes", {"base", "machine", "supervise", "supervised"}),
    "EVENTS": Table(EVENTS, ROOT / "bot/events", {"base"}),
    "COMMANDS": Table(COMMANDS, ROOT / "bot/commands", {"base"}),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_file_of_a_registrys_folder_is_in_its_table(name: str) -> None:
    table = TABLES[name]
    files = {path.stem for path in table.folder.glob("*.py")} - {"__init__"}
    assert files - table.others == set(table.members)
    assert table.others <= files


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_in_the_order_of_the_alphabet(name: str) -> None:
    assert list(TABLES[name].members) == sorted(TABLES[name].members)


def test_every_action_is_carried_out_by_an_arm_of_act() -> None:
    tree = ast.parse((ROOT / "bot/act.py").read_text(encoding="utf-8"))
    arms = {
        re.sub(r".*\.", "", ast.unparse(node.cls))
        for node in ast.walk(tree)
        if isinstance(node, ast.MatchClass)
    }
    assert {action.__name__ for action in typing.get_args(Action)} <= arms


def test_every_status_is_read_by_some_rule() -> None:
    assert {rule.status for rule in RULES} == set(Status)
