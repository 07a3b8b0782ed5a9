"""Registries are literal tables; each is held against its folder."""

import ast
import re
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bot.intake.events import EVENTS
from lifecycle.judge.rules import RULES
from lifecycle.model.actions import Action
from lifecycle.model.status import Status
from runtimes.agents import AGENTS
from tests.house.source import ROOT


class Table(NamedTuple):
    """A registry, the folder of its members, and what is beside them there."""

    members: Mapping[str, Any]
    folder: Path
    others: set[str]


TABLES = {
    "AGENTS": Table(AGENTS, ROOT / "runtimes/agents", {"base", "shared"}),
    "EVENTS": Table(EVENTS, ROOT / "bot/intake/events", {"base"}),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_member_of_a_registrys_folder_is_in_its_table(name: str) -> None:
    table = TABLES[name]
    members = {path.stem for path in table.folder.iterdir() if not path.stem.startswith("__")}
    assert members - table.others == set(table.members)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_in_the_order_of_the_alphabet(name: str) -> None:
    assert list(TABLES[name].members) == sorted(TABLES[name].members)


def test_every_action_is_carried_out_by_an_arm_of_act() -> None:
    tree = ast.parse((ROOT / "bot/act/dispatch.py").read_text(encoding="utf-8"))
    arms = {
        re.sub(r".*\.", "", ast.unparse(node.cls))
        for node in ast.walk(tree)
        if isinstance(node, ast.MatchClass)
    }
    assert {action.__name__ for action in typing.get_args(Action)} <= arms


def test_every_status_is_read_by_some_rule() -> None:
    assert {rule.status for rule in RULES} == set(Status)
