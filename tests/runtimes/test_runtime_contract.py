"""The contract of every runtime: `runtimes.base.Runtime`."""

import signal

import pytest

from lifecycle.model.status import Probe
from runtimes.base import Gone, Seen
from tests.runtimes.stages import Stage
from tests.world.waiting import eventually


def program(stage: Stage, name: str) -> Probe | None:
    """The observation of the program of this name."""
    seen = stage.runtime.look().get(name)
    return seen.program if seen else None


def ended(stage: Stage, name: str) -> Seen:
    """The observation once the program has ended."""
    eventually(lambda: stage.runtime.look()[name].exit, f"the end of {name}")
    return stage.runtime.look()[name]


def test_a_look_is_empty_before_anything_is_started(stage: Stage) -> None:
    assert stage.runtime.look() == {}
    assert stage.runtime.screens(["app-1_r1"]) == {}


def test_a_started_program_is_alive_under_its_name(stage: Stage) -> None:
    app = stage.start("app-1_r1")
    seen = stage.runtime.look()[app]
    assert (seen.runtime, seen.program, seen.exit) == (Probe.ALIVE, Probe.ALIVE, None)


def test_a_look_reports_exit_code_and_time(stage: Stage) -> None:
    app = stage.start("app-1_r1")
    stage.exits(app, 7)
    seen = ended(stage, "app-1_r1")
    assert seen.program is Probe.DEAD
    assert seen.exit is not None
    assert (seen.exit.code, seen.exit.signal) == (7, None)
    assert seen.exit.at.tzinfo is not None
    assert stage.runtime.look()[app].exit == seen.exit


def test_a_look_reports_the_signal_that_killed_a_program(stage: Stage) -> None:
    app = stage.start("app-1_r1")
    stage.is_killed(app, signal.SIGKILL)
    end = ended(stage, "app-1_r1").exit
    assert end is not None
    assert (end.code, end.signal) == (None, signal.SIGKILL)


def test_typing_reaches_a_program_each_time_it_is_asked_for(stage: Stage) -> None:
    app = stage.start("app-1_r1")
    for _ in range(2):
        stage.runtime.type(app, ("y", "Enter"), "yes")
    eventually(lambda: stage.received(app).count("yesy") == 2, "the keys")
    stage.exits(app, 0)
    ended(stage, "app-1_r1")
    for paste in ("", "yes"):
        with pytest.raises(Gone, match="app-1"):
            stage.runtime.type(app, ("y",), paste)
    with pytest.raises(Gone, match="app-2"):
        stage.runtime.type("app-2_r1", ("y",))


def test_a_second_start_of_a_running_program_does_nothing(stage: Stage) -> None:
    app = stage.start("app-1_r1")
    stage.prints(app, "first")
    eventually(lambda: "first" in stage.runtime.screens([app])[app], "its output")
    stage.start("app-1_r1")
    assert list(stage.runtime.look()) == [app]
    assert "first" in stage.runtime.screens([app])[app]


def test_a_second_start_of_an_ended_program_does_nothing(stage: Stage) -> None:
    app = stage.start("app-1_r1")
    stage.exits(app, 3)
    before = ended(stage, "app-1_r1")
    stage.start("app-1_r1")
    assert stage.runtime.look()[app].exit == before.exit


def test_a_stopped_program_is_forgotten_and_not_started_again(stage: Stage) -> None:
    app = stage.start("app-1_r1")
    stage.runtime.stop(app)
    assert stage.runtime.look() == {}
    stage.start("app-1_r1")
    assert stage.runtime.look() == {}


def test_stopping_a_program_that_is_gone_does_nothing(stage: Stage) -> None:
    stage.runtime.stop("never_r1")
    app = stage.start("app-1_r1")
    stage.exits(app, 0)
    ended(stage, "app-1_r1")
    stage.runtime.stop(app)
    stage.runtime.stop(app)
    assert stage.runtime.look() == {}


def test_a_message_is_sent_once_for_each_key(stage: Stage) -> None:
    app = stage.start("app-1_r1")
    stage.runtime.send(app, "look again", key="a")
    stage.runtime.send(app, "look again", key="a")
    stage.runtime.send(app, "and again", key="b", submit_seconds=0.05)
    stage.runtime.send(app, "not twice", key="b")
    stage.runtime.send(app, "the end", key="c")
    eventually(lambda: "the end\n" in stage.received(app), "the last message")
    assert stage.received(app) == "look again\nand again\nthe end\n"


def test_control_characters_are_not_sent(stage: Stage) -> None:
    app = stage.start("app-1_r1")
    text = "a\x1b[201~b\x03\x04\x15\x7f\x9b1mc\r\n\td"
    stage.runtime.send(app, text, key="a")
    eventually(lambda: stage.received(app).endswith("d\n"), "the message")
    assert stage.received(app) == "a[201~b1mc\n\td\n"


def test_an_empty_message_is_refused(stage: Stage) -> None:
    app = stage.start("app-1_r1")
    with pytest.raises(ValueError, match="empty"):
        stage.runtime.send(app, "\x1b", key="a")


def test_a_message_to_a_program_that_does_not_run_raises_gone(stage: Stage) -> None:
    with pytest.raises(Gone, match="never_r1"):
        stage.runtime.send("never_r1", "hello", key="a")
    app = stage.start("app-1_r1")
    stage.exits(app, 0)
    ended(stage, "app-1_r1")
    with pytest.raises(Gone, match="app-1_r1"):
        stage.runtime.send(app, "hello", key="a")


def test_screens_show_the_output_of_running_programs(stage: Stage) -> None:
    one, two = stage.start("app-1_r1"), stage.start("app-2_r1")
    gone = "app-3_r1"
    stage.prints(one, "one")
    stage.prints(two, "two")
    apps = [gone, one, two]
    eventually(lambda: stage.runtime.screens(apps) == {one: "one", two: "two"}, "both screens")


def test_the_screen_of_an_ended_program_does_not_change(stage: Stage) -> None:
    app = stage.start("app-1_r1")
    stage.prints(app, "last words")
    stage.exits(app, 1)
    assert ended(stage, "app-1_r1").program is Probe.DEAD
    assert stage.runtime.screens([app]) == {app: "last words"}


def test_a_look_reports_the_time_of_the_last_output(stage: Stage) -> None:
    app = stage.start("app-1_r1")
    stage.prints(app, "one")
    eventually(lambda: stage.runtime.look()[app].output_at is not None, "a time")


def test_a_name_never_matches_a_longer_name(stage: Stage) -> None:
    stage.start("app-10_r1")
    short = "app-1"
    assert stage.runtime.screens([short]) == {}
    with pytest.raises(Gone):
        stage.runtime.send(short, "hello", key="a")
    stage.runtime.stop(short)
    assert program(stage, "app-10_r1") is Probe.ALIVE


def test_one_look_reports_many_programs(stage: Stage) -> None:
    apps = [stage.start(f"app-{number}_r1") for number in range(12)]
    assert set(stage.runtime.look()) == set(apps)
    stage.exits(apps[3], 4)
    ended(stage, "app-3_r1")
    alive = [app for app, seen in stage.runtime.look().items() if seen.program is Probe.ALIVE]
    assert set(alive) == {*apps} - {apps[3]}


def test_every_runtime_has_a_command_to_attach(stage: Stage) -> None:
    assert any("app-1_r1" in word for word in stage.runtime.attach(stage.start("app-1_r1")))
