"""Fixtures: a store in its own folder, a manual clock, and methods to fill the store."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.store import Delivery, LoadedSession, NewCommand, NewSession, SessionDecision, Store
from lifecycle.model.actions import Action
from lifecycle.model.facts import Issue
from tests.world.databases import empty_database

REPOSITORY = "acme/widgets"


class Clock:
    """A clock that only `passes` advances."""

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def passes(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


class Scenario:
    """Fills a store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock

    @property
    def now(self) -> datetime:
        return self.clock.now

    def delivery(self, id: str, body: bytes = b"{}") -> Delivery:
        return Delivery(id=id, event="issues", at=self.now, body=body)

    def session(self, number: int = 12) -> str:
        """Create a session and return its id."""
        assert self.store.sessions.create(self.new_session(number))
        return f"widgets-{number}"

    def new_session(self, number: int) -> NewSession:
        return NewSession(
            id=f"widgets-{number}",
            project="widgets",
            repository=REPOSITORY,
            created=self.now,
            issue=Issue(number=number, title="It breaks"),
            branch=f"mergewright/{number}-it-breaks",
            requester="ada",
            agent_type="claude",
        )

    def command(self, key: str = "comment:7") -> NewCommand:
        return NewCommand(
            key=key,
            repository=REPOSITORY,
            number=12,
            kind="tell",
            actor="ada",
            at=self.now,
            text="mind the gap",
            comment=7,
        )

    def loaded(self, id: str) -> LoadedSession:
        """A session as loaded for a decision."""
        (loaded,) = self.store.facts.load([id])
        return loaded

    def records(self, loaded: LoadedSession, decided: SessionDecision) -> list[str]:
        """Write a decision. Returns the keys of its new actions."""
        (written,) = self.store.decisions.record([(loaded, decided)], self.now)
        return written.result()

    def decides(self, id: str, *actions: Action, **changes: object) -> list[str]:
        """Load a session and write a decision about it."""
        return self.records(self.loaded(id), decision(*actions, **changes))


def decision(*actions: Action, **changes: object) -> SessionDecision:
    usual: dict[str, object] = {
        "status": "working",
        "reason": "agent_at_work",
        "because": "the agent works",
        "run": 1,
        "actions": actions,
        "wants_slot": changes.get("status") == "queued",
    }
    return SessionDecision(**{**usual, **changes})  # type: ignore[arg-type]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mergewright.db"


@pytest.fixture
def open_store(path: Path, clock: Clock) -> Iterator[Callable[[], Store]]:
    """Open the database again, as another process would."""
    stores: list[Store] = []

    def open_store() -> Store:
        stores.append(Store(empty_database(path), clock=clock))
        return stores[-1]

    yield open_store
    for store in stores:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], Store]) -> Store:
    return open_store()


@pytest.fixture
def scenario(store: Store, clock: Clock) -> Scenario:
    return Scenario(store, clock)


@pytest.fixture
def statements(store: Store) -> list[str]:
    """Records every statement before the writer executes it."""
    seen: list[str] = []
    store.db.write(lambda connection: connection.set_trace_callback(seen.append))
    seen.clear()
    return seen
