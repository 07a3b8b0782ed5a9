"""Whose word does not count is told so once for an issue, whatever happens in between."""

from typing import Any

import pytest

from bot.act.outsiders import Outsiders
from bot.github.errors import Refused, TryLater
from bot.store import Outsider


class Door:
    """Where outsiders are told, and what they were."""

    def __init__(self, room: Any) -> None:
        self.room, self.store = room, room.store
        self.said: list[tuple[int, str, str]] = []
        self.trouble: Exception | None = None
        self.may_act = self.may_speak = True
        self.write = self
        self.begins()

    def begins(self) -> None:
        github: Any = self
        self.outsiders = Outsiders(
            *(self.store, github, self.room.clock),
            lambda: self.may_act,
            lambda _: self.may_speak,
        )

    def comment(self, repo: str, number: int, body: str, key: str) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.said.append((number, body.partition(",")[0], key))

    def turns_away(self, login: str = "Mallory", issue: int = 12, number: int = 12) -> None:
        one = Outsider(repository="acme/widgets", issue=issue, login=login, number=number)
        self.store.outsiders.add(one, self.room.clock())
        self.outsiders.tell()


@pytest.fixture
def door(room: Any) -> Door:
    return Door(room)


def test_an_outsider_is_told_once_for_an_issue_wherever_it_is_talked_about(door: Door) -> None:
    door.turns_away()
    door.turns_away("mallory", number=34)
    door.begins()
    door.turns_away()
    assert door.said == [(12, "mallory", "outsider:12:mallory")]
    door.turns_away("eve")
    door.turns_away(issue=13, number=13)
    assert [said[1:] for said in door.said[1:]] == [
        ("eve", "outsider:12:eve"),
        ("mallory", "outsider:13:mallory"),
    ]


def test_what_could_not_be_said_is_said_later(door: Door) -> None:
    door.trouble = TryLater("an outage")
    door.turns_away()
    door.trouble = None
    assert door.outsiders.tell() == 0
    door.room.clock.passes(60)
    assert door.outsiders.tell() == 1
    assert len(door.said) == 1


def test_a_bot_that_acts_no_more_leaves_it_to_the_next(door: Door) -> None:
    door.may_act = False
    door.turns_away()
    assert len(door.store.outsiders.unnotified()) == 1


@pytest.mark.parametrize("silent", [True, False])
def test_where_nothing_may_be_said_nobody_is_told_ever(door: Door, silent: bool) -> None:
    if silent:
        door.may_speak = False
    else:
        door.trouble = Refused("the conversation is locked", 403)
    door.turns_away()
    door.may_speak, door.trouble = True, None
    assert (door.outsiders.tell(), door.said) == (0, [])
