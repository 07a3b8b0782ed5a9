"""Looking at agents: a look that failed is no news, and one session's trouble is its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bot.journal import log_step
from bot.layout import Layout
from bot.sites import Sites
from bot.store import Observed
from bot.watch_agents import WatchAgents
from config.settings import Project
from lifecycle.facts import Agent, Exit, Work
from lifecycle.status import Activity, Probe
from runtimes.base import Handle, Seen, Unavailable

ALIVE = Seen(runtime=Probe.ALIVE, program=Probe.ALIVE)
PROJECTS = {"widgets": Project(repository="acme/widgets", agent="shell")}


class Edge:
    """A runtime and an agent type of which the test says what is seen."""

    submit_seconds = 0.0
    wants_screen = True

    def __init__(self) -> None:
        self.seen: dict[str, Seen] = {}
        self.fails: Exception | None = None
        self.screens_fail: Exception | None = None
        self.unreadable: set[str] = set()

    def handle(self, name: str) -> Handle:
        return Handle(name)

    def look(self) -> Mapping[str, Seen]:
        if self.fails:
            raise self.fails
        return self.seen

    def screens(self, handles: Any) -> Mapping[str, str]:
        if self.screens_fail:
            raise self.screens_fail
        return {}

    def reader(self, files: Any) -> Any:
        unreadable = self.unreadable

        class Reader:
            def read(self, seen: Seen, screen: str | None, now: Any) -> Agent:
                if files.session in unreadable:
                    raise ValueError("odd file")
                return Agent(
                    activity=Activity.ACTIVE, runtime=seen.runtime, program=seen.program, seen=now
                )

        return Reader()


@pytest.fixture
def edge() -> Edge:
    return Edge()


@pytest.fixture
def watch(room: Any, edge: Edge, tmp_path: Path) -> WatchAgents:
    at: Any = edge
    sites = Sites(Layout(tmp_path), dict(PROJECTS), "", lambda _: "", at, {"shell": at})
    return WatchAgents(room.store, sites, 300, room.clock, log_step)


def running(room: Any, edge: Edge, *numbers: int) -> None:
    for number in numbers:
        name = room.session(number)
        room.orders(name)
        agent = Agent(run=1, runtime=Probe.ALIVE, program=Probe.ALIVE)
        seen = Observed(session=name, run=1, agent=agent, work=Work(path="/x"))
        room.store.observe([seen], room.clock())
        edge.seen[f"{name}_r1"] = ALIVE


def programs(room: Any) -> list[str]:
    return [live.agent.program.value for live in room.store.live()]


def test_a_look_that_failed_changes_nothing(room: Any, edge: Edge, watch: WatchAgents) -> None:
    running(room, edge, 1)
    before = room.store.live()
    edge.fails = Unavailable("no tmux")
    assert watch.sweep() == 0
    edge.fails, edge.screens_fail = None, Unavailable("no screens")
    assert watch.sweep() == 0
    assert room.store.live() == before


def test_a_session_that_cannot_be_read_keeps_no_other_from_being_read(
    room: Any, edge: Edge, watch: WatchAgents
) -> None:
    running(room, edge, 1, 2)
    edge.unreadable.add("widgets-1")
    assert watch.sweep() == 1
    assert [live.agent.activity for live in room.store.live()] == ["none", "active"]


def test_a_session_of_a_project_that_is_not_configured_any_more_is_left_alone(
    room: Any, edge: Edge, watch: WatchAgents
) -> None:
    running(room, edge, 1)
    watch._sites.projects = {}
    assert watch.sweep() == 0
    watch._sites.projects, watch._sites.programs = PROJECTS, {}
    assert watch.sweep() == 0


def test_one_program_that_vanished_is_dead(room: Any, edge: Edge, watch: WatchAgents) -> None:
    running(room, edge, 1, 2)
    del edge.seen["widgets-1_r1"]
    watch.sweep()
    assert programs(room) == ["dead", "alive"]


def test_when_most_programs_vanish_in_one_look_it_is_not_believed(
    room: Any, edge: Edge, watch: WatchAgents
) -> None:
    running(room, edge, *range(1, 10))
    everything = dict(edge.seen)
    for number in range(1, 6):
        del edge.seen[f"widgets-{number}_r1"]
    assert watch.sweep() == 0
    assert programs(room) == ["alive"] * 9
    edge.seen["widgets-5_r1"] = everything["widgets-5_r1"]
    watch.sweep()
    assert programs(room) == ["dead"] * 4 + ["alive"] * 5


def test_ends_that_were_written_down_are_believed_whatever_their_number(
    room: Any, edge: Edge, watch: WatchAgents
) -> None:
    running(room, edge, *range(1, 7))
    end = Exit(at=room.clock(), code=0)
    for name in edge.seen:
        edge.seen[name] = replace(ALIVE, program=Probe.DEAD, exit=end)
    watch.sweep()
    assert programs(room) == ["dead"] * 6
