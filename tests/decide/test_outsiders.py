"""People without write access are notified once for an issue."""

from typing import Any

import pytest

from bot.decide.opening import notify_outsiders
from bot.store import Outsider
from lifecycle.model.actions import Comment


class Outsiders:
    """The recorded outsiders, and the comments in the outbox."""

    def __init__(self, scenario: Any) -> None:
        self.scenario, self.store = scenario, scenario.store
        self.silenced = False

    def records(self, login: str = "Mallory", issue: int = 12, number: int = 12) -> int:
        one = Outsider(repository="acme/widgets", issue=issue, login=login, number=number)
        self.store.outsiders.add(one, self.scenario.clock())
        return notify_outsiders(self.store.outsiders, lambda _: self.silenced, self.scenario.clock)

    def comments(self) -> list[tuple[int, str]]:
        actions = [due.action for due in self.store.outbox.due(self.scenario.clock())]
        found = [one for one in actions if isinstance(one, Comment) and one.topic == "outsider"]
        return [(one.number, one.values["login"]) for one in found]


@pytest.fixture
def outsiders(scenario: Any) -> Outsiders:
    return Outsiders(scenario)


def test_a_person_is_notified_once_for_an_issue_and_its_pull_requests(
    outsiders: Outsiders,
) -> None:
    assert outsiders.records() == 1
    assert outsiders.records("mallory", number=34) == 0
    assert outsiders.comments() == [(12, "mallory")]
    outsiders.records("eve")
    outsiders.records(issue=13, number=13)
    assert outsiders.comments() == [(12, "mallory"), (12, "eve"), (13, "mallory")]


def test_in_a_silenced_repository_nobody_is_ever_notified(outsiders: Outsiders) -> None:
    outsiders.silenced = True
    assert outsiders.records() == 1
    outsiders.silenced = False
    assert outsiders.records() == 0
    assert outsiders.comments() == []
