"""Where the last session of a project ends, it is told what all of them came to."""

from lifecycle.model.facts import Ended
from lifecycle.model.status import Reason, Status
from tests.store.conftest import Room


def ends(room: Room, name: str, status: Status = Status.MERGED) -> None:
    room.clock.passes(1)
    over = Ended(status=status, reason=Reason.PR_MERGED, because="so", at=room.now)
    room.decides(name, status=status.value, ended=over)


def finished(room: Room, name: str) -> dict[str, int]:
    return dict(room.store.facts.get(name).finished)


def test_the_last_to_end_knows_how_all_of_them_ended(room: Room) -> None:
    one, two, three = (room.session(number) for number in (12, 13, 14))
    ends(room, one)
    ends(room, two, Status.KILLED)
    assert finished(room, one) == finished(room, two) == {}
    ends(room, three)
    assert finished(room, three) == {"merged": 2, "killed": 1}
    assert finished(room, one) == {}
    assert room.store.sessions.due(room.now) == [three]


def test_what_ended_before_all_were_finished_once_is_not_counted_again(room: Room) -> None:
    for number in (12, 13):
        ends(room, room.session(number))
    four, five = room.session(14), room.session(15)
    ends(room, four)
    ends(room, five, Status.DONE)
    assert finished(room, five) == {"merged": 1, "done": 1}


def test_one_that_was_restored_and_ends_while_others_are_open_forgets_what_it_knew(
    room: Room,
) -> None:
    one, two = room.session(12), room.session(13)
    ends(room, one)
    ends(room, two, Status.KILLED)
    room.decides(two, status="queued", ended=None)
    three = room.session(14)
    ends(room, two)
    assert finished(room, two) == {}
    ends(room, three)
    assert finished(room, three) == {"merged": 3}
