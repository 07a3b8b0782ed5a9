"""Every package of an agent is registered, and every action is dispatched."""

import ast
import re
import typing

from lifecycle.model.actions import Action
from runtimes.agents import AGENTS
from tests.house.source import ROOT


def test_every_agents_package_is_in_the_registry() -> None:
    members = {path.stem for path in (ROOT / "runtimes/agents").iterdir()}
    assert members - {"__init__", "__pycache__", "base", "shared"} == set(AGENTS)


def test_every_action_is_dispatched() -> None:
    tree = ast.parse((ROOT / "bot/act/dispatch.py").read_text(encoding="utf-8"))
    arms = {
        re.sub(r".*\.", "", ast.unparse(node.cls))
        for node in ast.walk(tree)
        if isinstance(node, ast.MatchClass)
    }
    assert {action.__name__ for action in typing.get_args(Action)} <= arms
