"""Descriptions of actions and history events."""

from typing import get_args

import pytest
from msgspec.structs import replace

from bot.text.history import _ACTIONS, describe_action
from lifecycle.model.actions import Action, Prompt, Start
from lifecycle.model.key import parse


@pytest.mark.parametrize("action", get_args(Action), ids=lambda action: action.__name__)
def test_every_action_is_described(action: type) -> None:
    assert _ACTIONS[action]


def test_a_start_names_the_permission_mode_of_its_session() -> None:
    start = Start(key=parse("start:first#1"), run=1, prompt=Prompt(name="start"))
    assert describe_action(start) == "Start the agent"
    limited = replace(start, permission_mode="confirm")
    assert describe_action(limited) == "Start the agent with permission mode confirm"
