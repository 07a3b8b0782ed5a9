"""A new session goes to an agent by name, and stays with it."""

from datetime import UTC, datetime

from msgspec.structs import replace

from bot.decide.assignment import AssignedAgent, Assignment
from bot.store import Store
from config.settings import AgentSettings, ProjectSettings
from lifecycle.model.facts import Ended
from lifecycle.model.status import Reason, Status
from tests.store.conftest import Room

AGENTS = {
    "ada": AgentSettings(types=("claude",)),
    "ben": AgentSettings(types=("claude", "shell")),
    "eve": AgentSettings(types=("shell",)),
}
OVER = Ended(
    status=Status.KILLED,
    reason=Reason.MANUALLY_KILLED,
    because="alice said so",
    at=datetime(2030, 1, 1, tzinfo=UTC),
)


def chosen(store: Store, word: str, requester: str = "alice", **project: str) -> AssignedAgent:
    projects = {"widgets": ProjectSettings(repository="acme/widgets", **project)}  # type: ignore[arg-type]
    return Assignment(store, AGENTS, projects).choose(word, "widgets", requester)


def works(room: Room, number: int, agent: str, requester: str = "alice") -> None:
    new = replace(room.new_session(number), agent_name=agent, requester=requester)
    assert room.store.sessions.create(new)


def test_the_least_busy_of_those_that_run_the_type_gets_it(room: Room, store: Store) -> None:
    assert chosen(store, "claude") == AssignedAgent("ada", "claude")
    works(room, 1, "ada")
    assert chosen(store, "claude") == AssignedAgent("ben", "claude")
    works(room, 2, "ben")
    assert chosen(store, "claude") == AssignedAgent("ada", "claude")
    assert chosen(store, "shell") == AssignedAgent("eve", "shell")


def test_a_session_that_is_over_keeps_nobody_busy(room: Room, store: Store) -> None:
    works(room, 1, "ada")
    room.decides("widgets-1", ended=OVER, status="killed")
    assert chosen(store, "claude") == AssignedAgent("ada", "claude")


def test_an_agent_asked_for_by_name_gets_it_however_busy(room: Room, store: Store) -> None:
    works(room, 1, "ben")
    assert chosen(store, "ben") == AssignedAgent("ben", "claude")


def test_with_affinity_it_goes_back_to_who_had_the_requesters_last(
    room: Room, store: Store
) -> None:
    works(room, 1, "ada")
    room.clock.passes(1)
    works(room, 2, "ben")
    works(room, 3, "ben", "rob")
    works(room, 4, "ben", "rob")
    assert chosen(store, "claude", affinity="none") == AssignedAgent("ada", "claude")
    assert chosen(store, "claude", affinity="last") == AssignedAgent("ben", "claude")
    assert chosen(store, "claude", "carol", affinity="last") == AssignedAgent("ada", "claude")


def test_affinity_does_not_give_it_to_who_cannot_run_it(room: Room, store: Store) -> None:
    works(room, 1, "ada")
    assert chosen(store, "shell", affinity="last") == AssignedAgent("ben", "shell")


def test_names_and_types_may_be_asked_for(store: Store) -> None:
    assert Assignment(store, AGENTS, {}).names == {"ada", "ben", "eve", "claude", "shell"}


def test_a_session_that_is_handed_over_is_the_other_agents_in_every_record(
    room: Room, store: Store
) -> None:
    works(room, 1, "ada")
    identities = Assignment(store, AGENTS, {"widgets": ProjectSettings(repository="acme/widgets")})
    for word, agent, kind in (("eve", "eve", "shell"), ("claude", "ada", "claude")):
        session = store.sessions.get("widgets-1")
        assert session
        given = identities.hand_over(session, word, 1)
        assert (given.agent_name, given.agent_type) == (agent, kind)
        assert store.sessions.get("widgets-1") == given
        assert identities.hand_over(given, word, 1) == given
    assert [one.agent for one in store.agents.records()] == ["ada"]
