"""Descriptions of actions and history events."""

from typing import get_args

import pytest

from bot.text.history import _ACTIONS
from lifecycle.model.actions import Action


@pytest.mark.parametrize("action", get_args(Action), ids=lambda action: action.__name__)
def test_every_action_is_described(action: type) -> None:
    assert _ACTIONS[action]
