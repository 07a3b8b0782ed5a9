"""Lanes: never twice at once, no kick lost, and nothing that goes wrong ends one."""

import threading

from bot.app.workers import Lane
from tests.world.waiting import eventually


def test_a_kick_during_the_work_has_it_done_once_more() -> None:
    begun, go_on, runs = threading.Event(), threading.Event(), []

    def work() -> None:
        runs.append(threading.active_count())
        begun.set()
        assert go_on.wait(5)

    lane = Lane("test", work)
    lane.start()
    lane.kick()
    assert begun.wait(5)
    for _ in range(3):
        lane.kick()
    assert len(runs) == 1
    go_on.set()
    eventually(lambda: len(runs) == 2, "it ran once more")
    assert lane.close(5)
    assert len(runs) == 2


def test_a_kick_before_the_start_waits_for_it() -> None:
    ran = threading.Event()
    lane = Lane("test", ran.set)
    lane.kick()
    assert not ran.is_set()
    lane.start()
    assert ran.wait(5)
    assert lane.close(5)


def test_a_lane_outlives_what_goes_wrong_in_it() -> None:
    runs: list[int] = []

    def work() -> None:
        runs.append(1)
        raise ValueError("broken")

    lane = Lane("test", work)
    lane.start()
    lane.kick()
    eventually(lambda: len(runs) == 1, "it ran")
    lane.kick()
    eventually(lambda: len(runs) == 2, "it ran again")
    assert lane.close(5)


def test_a_lane_that_hangs_is_left_behind() -> None:
    go_on, begun = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(20)

    lane = Lane("test", work)
    lane.start()
    lane.kick()
    assert begun.wait(5)
    assert not lane.close(0)
    go_on.set()
    assert lane.close(5)


def test_many_threads_that_kick_and_one_that_closes_harm_nobody() -> None:
    lane = Lane("test", lambda: None)
    lane.start()

    def kick() -> None:
        for _ in range(500):
            lane.kick()

    kickers = [threading.Thread(target=kick) for _ in range(8)]
    for kicker in kickers:
        kicker.start()
    assert lane.close(5)
    for kicker in kickers:
        kicker.join()
    lane.kick()
