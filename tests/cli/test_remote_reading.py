"""Every command that reads prints the same on the server's machine as by the server's API."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from bot.cli.remote_reader import RemoteLog, RemoteTranscript
from bot.decide.assignment import caps
from bot.decide.policies import Policies
from bot.intake.inbox import Inbox
from bot.intake.terminal_input import TerminalInput
from bot.show.run_log import LogPage
from bot.show.terminal import terminal
from bot.store import Delivery, Observation, Store
from bot.system.http_server import HttpServer
from bot.system.isolation import isolation_of
from bot.system.locations import Locations, Paths, programs
from bot.system.redaction import Redaction
from bot.web.app import build
from bot.web.health import Health
from bot.web.webhook import WebhookLimits
from config.load import load_settings
from lifecycle.model.facts import Agent, Usage
from runtimes import RUNTIMES
from runtimes.agents.shared.messages import Message, MessageKind
from runtimes.base import Options
from tests.cli.conftest import CommandLine, Deployment

TOKEN = "the page's token"
SETTINGS = """
[agents.ada]
types = ["shell"]
[prices."known"]
input = 1.0
output = 2.0
as-of = 2026-11-20
[policy]
session-usd = 5.0
[limits]
sessions = 1
"""
MODELS = {"odd-model": Usage(input=90), "known": Usage(input=10, cost_usd=0.5)}
READS = [
    "ls",
    "ls --all",
    "ls --project widgets --search 12",
    "show widgets-12",
    "show widgets-14",
    "show widgets-7",
    "why widgets-12",
    "why widgets-14",
    "queue",
    "usage",
    "usage widgets-12",
    "usage --by day --project widgets",
    "usage --agent bob",
    "logs widgets-12",
    "logs widgets-12 -n 2",
    "logs widgets-12 -n 5000",
    "logs widgets-12 --step setup",
    "transcript widgets-12",
    "transcript widgets-12 --from 1 -n 1",
    "agents show ada",
    "deliveries",
    "deliveries --all",
    "meta widgets-12",
]
#: With the same error and exit code on both.
ERRORS = [
    "logs widgets-12 --run 7",
    "logs widgets-12 --step teardown",
    "transcript widgets-12 --run 7",
    "meta widgets-12 ticket",
]


class Served:
    """An installation with sessions in many states, and the server of its database."""

    def __init__(self, deployment: Deployment) -> None:
        deployment.file.write_text(deployment.file.read_text() + SETTINGS)
        deployment.has_a_red_check(deployment.has_session(12, slot=True))
        deployment.has_ended(deployment.has_session(7, title="It is over \x1b[2J\x9b2J"))
        deployment.has_waiting(14, agent="ada", priority=1)
        deployment.looks_for_slots(1)
        deployment.has_run_setup("widgets-12", 3, "no compiler\nno linker\n")
        printed = "".join(f"line {number} \x1b[31mred\x1b[0m\n" for number in range(2_500))
        deployment.printed("widgets-12", printed)
        settings = load_settings(deployment.file)
        self.store = Store(deployment.paths.database)
        usage = Usage(input=100, cost_usd=0.5, unpriced=90, models=MODELS)
        used = Observation(session="widgets-12", run=1, agent=Agent(run=1, usage=usage))
        self.store.observations.record([used], deployment.now)
        self.store.metadata.set("widgets-12", {"team": "blue"}, "ada")
        self.store.incidents.report("many-lost", "Many agents are lost.", deployment.now)
        self.store.freezes.add("project:widgets", "ada")
        odd = Delivery(id="d-1", event="issues", at=deployment.now, body=b"odd")
        self.store.deliveries.add([odd]).result()
        self.store.deliveries.mark_failed("d-1", "DecodeError: odd")
        paths = Paths(settings.data)
        locations = Locations(
            *(paths, settings.projects, settings.github.git_base, lambda _: ""),
            RUNTIMES[settings.runtime.kind](Options(data=paths.runtime)),
            *(programs(settings), partial(isolation_of, settings)),
        )
        inbox = Inbox(self.store, frozenset({"acme/widgets"}), lambda: None)
        app = build(
            inbox,
            self.store,
            webhook_secrets=("s" * 32,),
            page_token=TOKEN,
            health=lambda: Health(scheduler=True),
            settings=settings,
            policy_of=Policies(self.store, settings.projects, settings.policy).of,
            caps=lambda: caps(settings),
            terminal=terminal(self.store, locations, Redaction([TOKEN])),
            keyboard=TerminalInput(self.store, lambda _: True, lambda: None, time.monotonic),
            limits=WebhookLimits(unverified_bytes=1_000_000),
        )
        self.server = HttpServer(app, "127.0.0.1", 0)
        self.server.start()
        self.url = f"http://127.0.0.1:{self.server.port}"

    def close(self) -> None:
        self.server.stop()
        self.store.close()


@pytest.fixture
def served(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("MERGEWRIGHT_PAGE_TOKEN", TOKEN)
    with closing(Served(deployment)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def frozen_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ages on both screens are the same."""
    now = datetime.now(UTC)
    monkeypatch.setattr("bot.cli.screens.utc_now", lambda: now)


@pytest.mark.parametrize("form", ["", " --json"])
def test_a_server_elsewhere_is_read_like_this_machine(
    served: Served, mergewright: CommandLine, form: str
) -> None:
    for words in (f"{one}{form}".split() for one in READS):
        local = mergewright(*words)
        assert (local.code, local.err, local.out > "") == (0, "", True), words
        remote = mergewright(*words, "--server", served.url)
        lines = zip(remote.out.splitlines(), local.out.splitlines(), strict=False)
        assert [pair for pair in lines if pair[0] != pair[1]] == [], words
        assert remote == local, words


def test_what_a_server_elsewhere_does_not_have_is_the_same_error(
    served: Served, mergewright: CommandLine
) -> None:
    for words in (one.split() for one in ERRORS):
        local = mergewright(*words)
        assert (local.code > 0, local.out) == (True, ""), words
        assert mergewright(*words, "--server", served.url) == local


def test_agents_are_listed_without_the_health_of_their_types(
    served: Served, mergewright: CommandLine
) -> None:
    local = json.loads(mergewright("agents", "--json").out)
    remote = json.loads(mergewright("agents", "--json", "--server", served.url).out)
    assert remote == {"agents": local["agents"], "types": None}
    shown = " ".join(mergewright("agents", "--server", served.url).out.split())
    assert shown.endswith("on the server's own machine also checks the agent types.")


def test_the_server_is_changed_by_the_commands_that_also_read(
    served: Served, mergewright: CommandLine
) -> None:
    at = ("--server", served.url)
    assert mergewright("meta", "widgets-12", "ticket=A-1", "team=", *at).out == "ticket=A-1\n"
    assert served.store.metadata.of("widgets-12") == {"ticket": "A-1"}
    assert json.loads(mergewright("deliveries", "--retry", "--json", *at).out)["retried"] == 1
    assert [one.id for one in served.store.deliveries.waiting()] == ["d-1"]


def test_an_unknown_session_is_named(served: Served, mergewright: CommandLine) -> None:
    says = "mergewright: no session 'widgets-9'; `mergewright ls --all` lists all sessions\n"
    for command in ("show", "why", "logs", "transcript", "meta", "usage"):
        result = mergewright(command, "widgets-9", "--server", served.url)
        assert (result.code, result.err) == (2, says), command


def test_a_transcript_stays_that_of_its_run() -> None:
    """The messages of a run that starts meanwhile are numbered from 0 again."""
    server = MagicMock()
    session, messages = SimpleNamespace(run=1), [Message(kind=MessageKind.ANSWER, text="Done.")]

    def get(path: str, _: object, **wanted: object) -> Any:
        if path.endswith("/transcript"):
            return SimpleNamespace(items=messages if wanted["run"] == 1 else [])
        return SimpleNamespace(session=session)

    server.get = get
    transcript = RemoteTranscript(server, "widgets-12", 0)
    assert transcript.new() == messages
    session.run = 2
    assert transcript.new() == messages


def test_a_log_stays_that_of_its_run() -> None:
    """A cursor of one run would skip the beginning of the next one."""
    asked: list[object] = []

    def get(_: str, __: object, *, run: int, **wanted: object) -> LogPage:
        asked.append(run)
        return LogPage(lines=("red",), cursor=500, more=False, run=run or 1)

    log = RemoteLog(MagicMock(get=get), "widgets-12", 0, 1)
    assert [*log.new()] == ["red", "red"]
    assert asked == [0, 1]


@pytest.mark.parametrize("follow", ["logs", "transcript"])
def test_output_on_a_server_is_followed_until_it_is_interrupted(
    served: Served,
    mergewright: CommandLine,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    follow: str,
) -> None:
    log = deployment.paths.run("widgets-12", 1) / "output.log"
    to_come = ["half a ", "line\n", "more\n"]

    def meanwhile(_: float) -> None:
        if not to_come:
            raise KeyboardInterrupt
        with log.open("a") as file:
            file.write(to_come.pop(0))

    monkeypatch.setattr("bot.cli.output.time.sleep", meanwhile)
    result = mergewright(follow, "widgets-12", "--follow", "--server", served.url)
    assert result.code == 0
    assert result.out.endswith("line 2499 red\nhalf a line\nmore\n")


def test_what_the_api_cannot_send_is_refused(served: Served, mergewright: CommandLine) -> None:
    for options in ("--ansi", "--step setup --follow"):
        words = f"logs widgets-12 {options} --server {served.url}"
        result = mergewright(*words.split())
        assert (result.code, "on the server's own machine only" in result.err) == (2, True)


def test_control_characters_are_escaped_in_json(served: Served, mergewright: CommandLine) -> None:
    served.store.metadata.set("widgets-12", {"team": "a\x9b2J\x7f"}, "ada")
    out = mergewright("meta", "widgets-12", "--json").out
    assert (out.isprintable() or "\n" in out, "\x9b" in out, "\x7f" in out) == (True, False, False)
    assert json.loads(out) == {"team": "a\x9b2J\x7f"}
