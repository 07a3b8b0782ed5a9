"""`mergewright chat`: opens or continues a chat and attaches to its terminal."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing

import pytest

from bot.cli import chat, submit
from bot.show.command_outcome import CommandOutcome
from bot.store import NewSession, Observation, SessionDecision, Store
from lifecycle.model.candidates import Spawn
from lifecycle.model.facts import Agent, Issue
from lifecycle.model.names import MAKES_PULL
from lifecycle.model.status import Activity, Origin, Probe, Reason, Status
from tests.cli.conftest import CommandLine, Deployment
from tests.world.databases import empty_database

Meanwhile = Callable[[Callable[[Store], None]], None]


@pytest.fixture(autouse=True)
def database(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(empty_database(deployment.paths.database)).close()
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)


@pytest.fixture
def attached(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The terminals that were opened."""
    names: list[str] = []
    monkeypatch.setattr(subprocess, "run", lambda argv, check: names.append(argv[-1]))
    return names


def creates(store: Store, origin: Origin = Origin.CHAT) -> None:
    new = NewSession(
        id="widgets-c1",
        project="widgets",
        repository="acme/widgets",
        created=store.clock(),
        issue=Issue(number=0, title="Chat"),
        branch="c1",
        origin=origin,
        agent_type="shell",
    )
    settled = [command.key for command in store.commands.new()]
    assert store.sessions.create(new, *settled)


def decides(store: Store, status: Status, reason: Reason, because: str, run: int = 1) -> None:
    (loaded,) = store.facts.load(["widgets-c1"])
    decision = SessionDecision(status=status, reason=reason, because=because, run=run)
    store.decisions.record([(loaded, decision)], store.clock())[0].result()


def runs(store: Store, run: int = 1) -> None:
    """The agent's program runs and waits for a message."""
    decides(store, Status.WORKING, Reason.IN_CHAT, "the agent waits for a message", run)
    agent = Agent(run=run, activity=Activity.READY, runtime=Probe.ALIVE, program=Probe.ALIVE)
    store.observations.record(
        [Observation(session="widgets-c1", run=run, agent=agent)], store.clock()
    )


def opens(store: Store) -> None:
    """What the bot does for a request: first the session, then its program."""
    if store.sessions.get("widgets-c1") is None:
        creates(store)
    else:
        runs(store)


def test_a_chat_is_opened_and_attached_to(
    mergewright: CommandLine, deployment: Deployment, a_bot: Meanwhile, attached: list[str]
) -> None:
    requested: list[Spawn | None] = []

    def meanwhile(store: Store) -> None:
        requested.extend(command.spawn for command in store.commands.new())
        opens(store)

    a_bot(meanwhile)
    result = mergewright("chat", "widgets", "--message", "Look.", "--budget", "2")
    assert result.code == 0, result.err
    assert requested == [Spawn(session="widgets-c1", prompt="Look.", budget_usd=2.0, chat=True)]
    assert attached == ["=widgets-c1_r1"]
    assert "press Ctrl-B, then D" in result.err
    assert result.out.splitlines()[1:] == [
        "  mergewright chat         widgets-c1   talk to the agent again",
        "  mergewright pull-request widgets-c1   turn its work into a pull request",
        "  mergewright stop         widgets-c1   end it; the work is kept",
    ]


def test_a_long_wait_is_explained(
    mergewright: CommandLine,
    a_bot: Meanwhile,
    attached: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chat, "_QUIET_SECONDS", 0.0)
    steps = iter(("creates", "queued", "queued", "runs"))

    def meanwhile(store: Store) -> None:
        match next(steps):
            case "creates":
                creates(store)
            case "queued":
                decides(
                    store,
                    Status.QUEUED,
                    Reason.NO_SLOT,
                    "the session waits for its turn in the queue",
                    run=0,
                )
            case "runs":
                runs(store)

    a_bot(meanwhile)
    result = mergewright("chat", "widgets")
    assert result.err.count("widgets-c1: the session waits for its turn in the queue") == 1
    assert attached == ["=widgets-c1_r1"]


def test_a_paused_chat_is_resumed_by_its_id(
    mergewright: CommandLine,
    deployment: Deployment,
    a_bot: Meanwhile,
    attached: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accepted = CommandOutcome(
        key="k",
        session="widgets-c1",
        kind="resume",
        text="",
        accepted=True,
        reason="",
        status="working",
        because="",
        reply="",
    )
    monkeypatch.setattr(chat, "outcome_of", lambda *_, wait: accepted)

    def meanwhile(store: Store) -> None:
        session = store.sessions.get("widgets-c1")
        assert session is not None
        assert [command.kind for command in session.commands] == ["resume"]
        runs(store, 2)

    a_bot(meanwhile)
    with closing(Store(deployment.paths.database)) as store:
        creates(store)
        runs(store)
        decides(store, Status.PAUSED, Reason.CHAT_PAUSED, "nobody has written")
    assert mergewright("chat", "widgets-c1").code == 0
    assert attached == ["=widgets-c1_r2"]


def test_one_that_runs_is_attached_to_at_once(
    mergewright: CommandLine, deployment: Deployment, a_bot: Meanwhile, attached: list[str]
) -> None:
    a_bot(lambda _: pytest.fail("nothing is waited for"))
    with closing(Store(deployment.paths.database)) as store:
        creates(store)
        runs(store)
    assert mergewright("chat", "widgets-c1").code == 0
    assert attached == ["=widgets-c1_r1"]


def test_a_chat_that_cannot_be_started_says_why(
    mergewright: CommandLine, a_bot: Meanwhile, attached: list[str]
) -> None:
    def meanwhile(store: Store) -> None:
        if store.sessions.get("widgets-c1") is None:
            creates(store)
        else:
            decides(store, Status.ERRORED, Reason.SPAWN_FAILED, "there is no sandbox")

    a_bot(meanwhile)
    result = mergewright("chat", "widgets")
    assert (result.code, attached) == (1, [])
    assert "widgets-c1 has ended: there is no sandbox" in result.err


def test_a_refusal_is_an_error(
    mergewright: CommandLine, a_bot: Meanwhile, attached: list[str]
) -> None:
    def refuses(store: Store) -> None:
        for command in store.commands.new():
            store.commands.refuse(command.key, "there is no agent `ada` here")

    a_bot(refuses)
    result = mergewright("chat", "widgets", "ada")
    assert (result.code, result.err) == (
        1,
        "mergewright: widgets-c1: there is no agent `ada` here\n",
    )


def test_a_request_that_the_bot_has_not_decided_yet_is_not_reported_as_unknown(
    mergewright: CommandLine,
    a_bot: Meanwhile,
    attached: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(submit, "_WAIT_SECONDS", 0.0)
    a_bot(lambda _: None)
    result = mergewright("chat", "widgets")
    assert (result.code, result.err, attached) == (
        1,
        "mergewright: widgets-c1: requested, but the bot has not opened it yet; when it has,"
        " `mergewright chat widgets-c1` opens it\n",
        [],
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("gears",), "no project and no session 'gears'; known: widgets"),
        (("widgets-12",), "widgets-12 is not a chat; `mergewright attach widgets-12` opens it"),
        (("widgets", "--permission-mode", "yolo"), "takes one of"),
        (("widgets", "--server", "https://bot.example"), "needs the terminal of the server's"),
    ],
)
def test_a_wrong_request_names_the_remedy(
    mergewright: CommandLine,
    deployment: Deployment,
    a_bot: Meanwhile,
    words: tuple[str, ...],
    why: str,
) -> None:
    deployment.has_session()
    a_bot(lambda _: None)
    result = mergewright("chat", *words)
    assert (result.code, why in result.err) == (2, True), result.err


def test_it_needs_a_terminal_and_a_bot(
    mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no bot is running: start `mergewright serve`" in mergewright("chat", "widgets").err
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert "a chat needs a terminal" in mergewright("chat", "widgets").err


def test_a_chat_is_made_a_pull_request(mergewright: CommandLine, deployment: Deployment) -> None:
    with closing(Store(deployment.paths.database)) as store:
        creates(store)
    assert mergewright(MAKES_PULL, "widgets-c1").code == 0
    with closing(Store(deployment.paths.database)) as store:
        session = store.sessions.get("widgets-c1")
        assert session is not None
        assert [command.kind for command in session.commands] == [MAKES_PULL]
