"""Assignment of sessions to named agents."""

from datetime import UTC, datetime

from msgspec.structs import replace

from bot.decide.assignment import AssignedAgent, Assignment
from bot.store import Store
from config.settings import AgentSettings, ProjectSettings
from lifecycle.model.facts import Ended
from lifecycle.model.status import Reason, Status
from tests.store.conftest import Scenario

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


def chosen(
    store: Store, word: str, requester: str = "alice", about: str = "", **project: str
) -> AssignedAgent:
    projects = {"widgets": ProjectSettings(repository="acme/widgets", **project)}  # type: ignore[arg-type]
    return Assignment(store, AGENTS, projects).choose(word, "widgets", requester, about)


def works(scenario: Scenario, number: int, agent: str, requester: str = "alice") -> None:
    new = replace(scenario.new_session(number), agent_name=agent, requester=requester)
    assert scenario.store.sessions.create(new)


def test_a_session_goes_to_the_least_busy_agent_of_its_type(
    scenario: Scenario, store: Store
) -> None:
    assert chosen(store, "claude") == AssignedAgent("ada", "claude")
    works(scenario, 1, "ada")
    assert chosen(store, "claude") == AssignedAgent("ben", "claude")
    works(scenario, 2, "ben")
    assert chosen(store, "claude") == AssignedAgent("ada", "claude")
    assert chosen(store, "shell") == AssignedAgent("eve", "shell")


def test_an_ended_session_does_not_count_as_busy(scenario: Scenario, store: Store) -> None:
    works(scenario, 1, "ada")
    scenario.decides("widgets-1", ended=OVER, status="killed")
    assert chosen(store, "claude") == AssignedAgent("ada", "claude")


def test_an_agent_requested_by_name_gets_the_session_however_busy(
    scenario: Scenario, store: Store
) -> None:
    works(scenario, 1, "ben")
    assert chosen(store, "ben") == AssignedAgent("ben", "claude")


def test_an_agent_requested_with_one_of_its_types_has_that_type(store: Store) -> None:
    assert chosen(store, "ben shell") == AssignedAgent("ben", "shell")


def test_with_affinity_a_session_goes_to_the_agent_of_the_requesters_last_one(
    scenario: Scenario, store: Store
) -> None:
    works(scenario, 1, "ada")
    scenario.clock.passes(1)
    works(scenario, 2, "ben")
    works(scenario, 3, "ben", "rob")
    works(scenario, 4, "ben", "rob")
    assert chosen(store, "claude", affinity="none") == AssignedAgent("ada", "claude")
    assert chosen(store, "claude", affinity="last") == AssignedAgent("ben", "claude")
    assert chosen(store, "claude", "carol", affinity="last") == AssignedAgent("ada", "claude")


def test_with_affinity_to_an_area_the_agent_is_chosen_that_changed_its_files_before(
    scenario: Scenario, store: Store
) -> None:
    merged = replace(OVER, status=Status.MERGED)
    for number, agent, end, path in (
        (1, "ada", merged, "src/parser/lines.py"),
        (2, "ben", merged, "src/lexer.py"),
        (3, "ben", merged, "src/parser/words.py"),
        (4, "ben", OVER, "src/parser/lines.py"),
        (6, "ada", merged, ".github/workflows/ci.yml"),
    ):
        works(scenario, number, agent)
        store.agents.add_paths(f"widgets-{number}", [path, "README.md"])
        scenario.decides(f"widgets-{number}", ended=end)
    works(scenario, 5, "ada")
    for about, agent in (
        ("It fails in src/parser/lines.py.", "ada"),
        ("See `lines.py`", "ada"),
        ("words.py", "ben"),
        ("See .github/workflows/ci.yml.", "ada"),
        ("See ./src/parser/lines.py", "ada"),
        ("See ../../src/parser/lines.py", "ada"),
        ("See .../lines.py", "ada"),
        ("Everything in src/parser/ and src/lexer.py", "ben"),
        ("README.md", "ben"),
        ("no-lines.py, parser", "ben"),
        ("", "ben"),
    ):
        assert chosen(store, "claude", about=about, affinity="area").agent == agent, about
    assert chosen(store, "claude", about="lines.py", affinity="none").agent == "ben"


def test_a_handover_to_a_type_prefers_who_knows_the_files_that_the_session_changed(
    scenario: Scenario, store: Store
) -> None:
    works(scenario, 1, "ben")
    store.agents.add_paths("widgets-1", ["src/lexer.py"])
    scenario.decides("widgets-1", ended=replace(OVER, status=Status.MERGED))
    works(scenario, 2, "ben")
    works(scenario, 3, "cid")
    store.agents.add_paths("widgets-3", ["src/lexer.py"])
    session = store.sessions.get("widgets-3")
    assert session
    projects = {"widgets": ProjectSettings(repository="acme/widgets", affinity="area")}
    given = Assignment(store, AGENTS, projects).hand_over(
        replace(session, agent_type="x"), "shell", 2
    )
    assert (given.agent_name, given.agent_type) == ("ben", "shell")


def test_affinity_ignores_agents_of_another_type(scenario: Scenario, store: Store) -> None:
    works(scenario, 1, "ada")
    assert chosen(store, "shell", affinity="last") == AssignedAgent("ben", "shell")


def test_agents_can_be_requested_by_name_or_type(store: Store) -> None:
    assert Assignment(store, AGENTS, {}).names == {
        *("ada", "ben", "eve", "claude", "shell"),
        *("ada claude", "ben claude", "ben shell", "eve shell"),
    }
    alike = {
        "claude": AgentSettings(types=("claude",)),
        "shell": AgentSettings(types=("shell", "claude")),
    }
    pairs = {"claude claude", "shell claude"}
    assert Assignment(store, alike, {}).names == {"claude", "shell", *pairs}


def test_a_session_that_is_handed_over_counts_for_the_new_agent(
    scenario: Scenario, store: Store
) -> None:
    works(scenario, 1, "ada")
    identities = Assignment(store, AGENTS, {"widgets": ProjectSettings(repository="acme/widgets")})
    for word, agent, kind in (
        ("eve", "eve", "shell"),
        ("ben shell", "ben", "shell"),
        ("ben claude", "ben", "claude"),
        ("ada", "ada", "claude"),
    ):
        session = store.sessions.get("widgets-1")
        assert session
        given = identities.hand_over(session, word, 1)
        assert (given.agent_name, given.agent_type) == (agent, kind)
        assert store.sessions.get("widgets-1") == given
        assert identities.hand_over(given, word, 1) == given
    assert [one.agent for one in store.agents.records()] == ["ada"]


def test_a_long_word_in_an_issue_takes_linear_time(scenario: Scenario, store: Store) -> None:
    """Not linear would be minutes."""
    works(scenario, 1, "ada")
    for word in ("a", "a.", "a-", "/"):
        assert chosen(store, "claude", about=word * 65_536, affinity="area").agent == "ben"
