"""The bot's clock does not jump with the machine's."""

from datetime import UTC, datetime, timedelta

import pytest

from bot.system.clock import SteadyClock, from_machine, machine_time

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


class Machine:
    """A machine's clock that a test sets."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def clock(machine: Machine) -> SteadyClock:
    return SteadyClock(machine)


def near(one: datetime, other: datetime) -> bool:
    return abs(one - other) < 3 * SECOND


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_a_jump_of_the_machine_is_reported_once_and_changes_no_time(
    machine: Machine, clock: SteadyClock, jump: timedelta
) -> None:
    before = clock()
    assert clock.look() == timedelta()
    machine.ahead = jump
    assert abs(clock.look() - jump) < SECOND
    assert clock.look() == timedelta()
    assert near(clock(), before)
    assert clock() >= before
    assert abs(clock.ahead - jump) < SECOND
    assert near(machine_time(clock), machine())
    machine.ahead = timedelta()
    assert abs(clock.look() + jump) < SECOND
    assert clock.ahead == timedelta()


def test_a_drift_is_no_jump(machine: Machine, clock: SteadyClock) -> None:
    machine.ahead = 2 * SECOND
    assert clock.look() == timedelta()
    assert clock.ahead == timedelta()


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_times_of_files_are_converted_by_when_they_were_written(
    machine: Machine, clock: SteadyClock, jump: timedelta
) -> None:
    earlier, before = machine() - timedelta(minutes=20), machine()
    machine.ahead = jump
    clock.look()
    after = machine()
    clock.look()
    assert clock.of_machine(earlier) == earlier
    assert clock.of_machine(before) == before
    assert near(clock.of_machine(after), before)
    assert near(clock.of_machine(machine() + SECOND), before)


def test_another_clock_is_not_converted() -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    assert machine_time(lambda: at) == at
    assert from_machine(lambda: at, at) == at
    assert from_machine(SteadyClock(), None) is None


@pytest.mark.parametrize(
    ("behind", "continues"), [(HOUR, True), (-HOUR, False), (timedelta(days=2), False)]
)
def test_the_time_continues_from_what_was_recorded_before_a_restart(
    machine: Machine, clock: SteadyClock, behind: timedelta, continues: bool
) -> None:
    recorded = machine() + behind
    clock.continue_from(recorded)
    assert near(clock(), recorded if continues else machine())
    assert near(machine_time(clock), machine())
    assert near(clock.of_machine(machine()), clock())
