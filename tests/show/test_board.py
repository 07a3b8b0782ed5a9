"""The groups of the board, and what each of them has."""

import pytest

from bot.show.board import GROUPS, BoardFilter, by_group
from bot.store import SessionPlace
from lifecycle.model.status import Status


def test_every_status_belongs_to_one_group() -> None:
    placed = [status for group in GROUPS for status in group.statuses]
    assert sorted(placed) == sorted(Status)


@pytest.mark.parametrize("status", list(Status))
def test_what_waits_for_a_person_is_listed_first(status: Status) -> None:
    def place(number: int, *, waits: bool) -> SessionPlace:
        return SessionPlace(id=f"widgets-{number}", status=status, waits=waits, place=0.0)

    places = [place(1, waits=False), place(2, waits=True), place(3, waits=False)]
    found = by_group(places)
    assert list(found) == [group.key for group in GROUPS]
    assert places[1] in found["people"]
    (own,) = (group.key for group in GROUPS if status in group.statuses)
    assert [one for one in found[own] if not one.waits] == [places[0], places[2]]


def test_a_sort_and_a_group_leave_nothing_out() -> None:
    assert not BoardFilter(group="work", sort="created").chosen
    assert BoardFilter(search="x").chosen
