"""A runtime, agents and workspaces whose observed state a test sets."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bot.store import Observation, Receipt
from config.settings import ProjectSettings
from lifecycle.model import keys
from lifecycle.model.actions import Prompt, SendMessage
from lifecycle.model.facts import Agent, OffBranch, Sent, Work
from lifecycle.model.key import Key
from lifecycle.model.status import Activity, Probe
from runtimes.agents.shared.reader import exited
from runtimes.base import Seen

ALIVE = Seen(runtime=Probe.ALIVE, program=Probe.ALIVE)
PROJECTS = {"widgets": ProjectSettings(repository="acme/widgets", agent="shell")}


class Edge:
    """A runtime and an agent type whose observed state a test sets."""

    submit_seconds = 0.0
    wants_screen = True

    def __init__(self) -> None:
        self.seen: dict[str, Seen] = {}
        self.says: dict[
            str, Agent
        ] = {}  #: The activity in an agent's own files; active by default.
        self.fails: Exception | None = None
        self.screens_fail: Exception | None = None
        self.unreadable: set[str] = set()
        self.received: set[str] = set()  #: Marks of messages that an agent has read.
        self.reads = 0

    def look(self) -> Mapping[str, Seen]:
        if self.fails:
            raise self.fails
        return self.seen

    def screens(self, names: Any, *, recent: bool) -> Mapping[str, str]:
        if self.screens_fail:
            raise self.screens_fail
        return {}

    def reader(self, files: Any) -> Any:
        edge = self

        class Reader:
            def read(self, seen: Seen, screen: str | None, now: Any) -> Agent:
                edge.reads += 1
                if files.session in edge.unreadable:
                    raise ValueError("odd file")
                says = edge.says.get(files.session, Agent(activity=Activity.ACTIVE, seen=now))
                agent = replace(says, runtime=seen.runtime, program=seen.program)
                return exited(seen, agent) or agent

            def received(self, mark: str) -> bool:
                return mark in edge.received

        return Reader()


class Checkout:
    """A workspace whose state a test sets."""

    made = True

    def __init__(self) -> None:
        self.path = Path("/x")
        self.at: str | None = "a" * 40
        self.unclean, self.looks = False, 0
        self.elsewhere: OffBranch | None = None
        self.meanwhile: Callable[[], object] = int
        self.fails: Exception | None = None

    def commit(self) -> str | None:
        return self.at

    def off_branch(self, known: str) -> OffBranch | None:
        return self.elsewhere

    def dirty(self) -> bool:
        self.looks += 1
        self.meanwhile()
        if self.fails:
            raise self.fails
        return self.unclean


def running(scenario: Any, edge: Edge, *numbers: int, **given: Any) -> None:
    for number in numbers:
        name = scenario.session(number)
        scenario.orders(name)
        agent = Agent(run=1, runtime=Probe.ALIVE, program=Probe.ALIVE, **given)
        seen = Observation(session=name, run=1, agent=agent, work=Work(path="/x"))
        scenario.store.observations.record([seen], scenario.clock())
        edge.seen[f"{name}_r1"] = ALIVE


def is_sent(scenario: Any, session: str) -> Key:
    """Record a message to the session's agent as sent; return the key of the action."""
    key = keys.fix_ci("x", ["unit"]).of_run(1)
    scenario.orders(session, SendMessage(key=key, run=1, prompt=Prompt(name="fix_ci")))
    (due,) = [due for due in scenario.store.outbox.due(scenario.clock()) if due.session == session]
    until = scenario.clock() + timedelta(seconds=8)
    scenario.store.outbox.mark_sent(due.seq, Receipt(sent=Sent(at=scenario.clock(), until=until)))
    return key


def is_received(scenario: Any, edge: Edge, session: str) -> Key:
    """Send a message that the agent's transcript shows; return the key of the action."""
    key = is_sent(scenario, session)
    edge.received.add(keys.visible(session, key))
    return key


def programs(scenario: Any) -> list[str]:
    return [live.agent.program.value for live in scenario.store.sessions.live()]


def the(scenario: Any) -> Agent:
    """The stored state of the first session's agent."""
    agent: Agent = scenario.store.sessions.live()[0].agent
    return agent


def incidents(scenario: Any) -> list[str]:
    return [incident.key for incident in scenario.store.incidents.current()]
