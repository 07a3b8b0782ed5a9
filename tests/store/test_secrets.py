"""No secret is written into the database; a repeated value with a secret is not a change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.intake.local_commands import add_command
from bot.store import Observation, Store
from bot.system.redaction import Redaction
from lifecycle.model.facts import Agent, Command
from lifecycle.model.status import Activity
from tests.store.conftest import Clock, Scenario

SECRET = "hunter2-of-the-agent"


@pytest.fixture
def store(path: Path, clock: Clock) -> Iterator[Store]:
    store = Store(path, clock=lambda: clock.now, redact=Redaction([SECRET]))
    yield store
    store.close()


def files(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir())


def test_secrets_are_redacted_in_observations(scenario: Scenario, store: Store, path: Path) -> None:
    name = scenario.session(12)
    scenario.decides(name, run=1, recheck_at=None)
    agent = Agent(run=1, activity=Activity.WAITING_INPUT, question=f"Is {SECRET} right?")
    seen = Observation(session=name, run=1, agent=agent)
    assert store.observations.record([seen], scenario.now) == [name]
    assert store.observations.record([seen], scenario.now) == []
    assert store.facts.get(name).agent.question == "Is [secret] right?"
    assert SECRET.encode() not in files(path)


def test_a_repeated_command_with_a_secret_is_a_duplicate(scenario: Scenario, store: Store) -> None:
    found = store.sessions.get(scenario.session(12))
    assert found is not None
    command = Command(
        key="api:1", kind="tell", actor="api:client", at=scenario.now, text=f"use {SECRET}"
    )
    assert add_command(store, found, command)
    assert not add_command(store, found, command)


def test_secrets_are_redacted_in_every_write(scenario: Scenario, store: Store, path: Path) -> None:
    name = scenario.session(12)
    scenario.decides(name, run=1, because=f"it said {SECRET}")
    store.freezes.add("", SECRET)
    assert SECRET.encode() not in files(path)
    assert "it said [secret]" in str(store.history.of(name))
