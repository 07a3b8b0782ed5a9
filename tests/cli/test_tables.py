"""The tables of the queue and of agents."""

import json

import pytest

from bot.cli import screens
from bot.store import AgentRecord, QueuedSession
from bot.store.slots import AgentsTable
from tests.cli.conftest import CommandLine, Deployment


def lines(said: str) -> list[str]:
    return [" ".join(line.split()) for line in said.splitlines()]


def test_the_queue_shows_position_wait_start_and_reason(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_waiting(1)
    deployment.looks_for_slots(1, minutes_ago=4)
    deployment.has_waiting(2)
    deployment.has_waiting(3, priority=1)
    deployment.looks_for_slots(1)
    deployment.file.write_text(deployment.file.read_text() + "[limits]\nsessions = 1\n")
    limit = (
        "the server has no free session slot"
        " (limit: 1; slots reserved for sessions earlier in the queue are not free)"
    )
    assert " ".join(lines(mergewright("queue").out)) == (
        f"SESSION WAITED STARTS REASON 1 widgets-3 5m unknown {limit}; priority:high "
        f"2 widgets-2 5m unknown {limit}"
    )
    output = json.loads(mergewright("queue", "--json").out)
    assert [(one["session"], one["position"], one["starts_at"]) for one in output] == [
        ("widgets-3", 1, None),
        ("widgets-2", 2, None),
    ]


def test_the_start_is_estimated_from_earlier_sessions(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_waiting(1)
    deployment.looks_for_slots(1, minutes_ago=4.5)
    deployment.has_ended("widgets-1")
    deployment.has_waiting(2)
    deployment.looks_for_slots(1)
    deployment.has_waiting(3)
    deployment.file.write_text(deployment.file.read_text() + "[limits]\nsessions = 1\n")
    assert lines(mergewright("queue").out)[1] == "1 widgets-3 5m in about 4m not checked yet"


def test_the_queue_shows_priorities_and_waiting_people(deployment: Deployment) -> None:
    waits = QueuedSession(
        session="widgets-1",
        project="widgets",
        position=1,
        starts_at=None,
        waits="the server is at its limit",
        since=deployment.now,
        priority=-1,
        awaited=True,
    )
    assert (
        screens.queue_reason(waits)
        == "the server is at its limit; priority:low; requested by a command"
    )


def test_ls_and_show_print_the_queue_position(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_waiting(1)
    assert "\n  number 1, starts any moment: not checked yet" in mergewright("ls").out
    shown = lines(mergewright("show", "widgets-1").out)
    assert "queue number 1, starts any moment: not checked yet" in shown
    assert json.loads(mergewright("ls", "--json").out)[0]["place"]["position"] == 1
    assert (
        json.loads(mergewright("show", "widgets-1", "--json").out)["session"]["place"]["position"]
        == 1
    )


def test_an_empty_queue_has_a_message(mergewright: CommandLine, deployment: Deployment) -> None:
    deployment.has_session(1, slot=True)
    assert mergewright("queue").out == "No sessions are queued.\n"
    assert "in line" not in mergewright("show", "widgets-1").out


def test_agents_without_sessions_are_listed_too(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_ended(deployment.has_waiting(1, agent="old"))
    deployment.has_waiting(2, agent="ada")
    ada = '[agents.ada]\ntypes = ["shell"]\nsystem-prompt = "Be kind."\n'
    deployment.file.write_text(
        f"{deployment.file.read_text()}{ada}[agents.ben]\ntypes = ['shell']\n"
    )
    assert lines(mergewright("agents").out)[:4] == [
        "AGENT SESSIONS LIVE MERGED UNAIDED REPAIRS COST MEDIAN TIME",
        "ada 1 1 0 - 0 $0.00 -",
        "ben 0 0 0 - 0 $0.00 -",
        "old 1 0 0 - 0 $0.00 -",
    ]
    one = lines(mergewright("agents", "show", "ada").out)
    assert "prompt Be kind." in one
    assert "sessions 1, 1 live; none ended" in one
    assert "first pass nothing merged yet" in one
    assert any(line.startswith("widgets-2 ") for line in one)
    old = lines(mergewright("agents", "show", "old").out)
    assert "types not in the configuration" in old
    assert "sessions 1, 0 live; 1 stopped" in old
    output = json.loads(mergewright("agents", "show", "old", "--json").out)
    assert output["outcomes"] == {"killed": 1}


def test_an_agents_record_shows_its_results(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.has_session()
    ada = AgentRecord(
        agent="ada",
        sessions=5,
        live=1,
        outcomes={"merged": 4},
        first_pass=1,
        repairs=3,
        review_rounds=2,
        cost_usd=7.5,
        unpriced=12_345,
        seconds_to_merge=7200.0,
    )
    monkeypatch.setattr(AgentsTable, "records", lambda *_: [ada])
    assert "ada 5 1 4 25% 3 $7.50 + 12k tokens 2h" in lines(mergewright("agents").out)
    one = lines(mergewright("agents", "show", "ada").out)
    for line in (
        "sessions 5, 1 live; 4 merged",
        "first pass 25% of the merged sessions, without repairs or review rounds",
        "repairs 3; 2 review rounds",
        "cost $7.50 + 12k tokens",
        "merged in 2h (median)",
    ):
        assert line in one


def test_an_unknown_agent_gets_the_closest_one(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_waiting(1, agent="ada")
    result = mergewright("agents", "show", "adda")
    assert result.code != 0
    assert "no agent 'adda'; did you mean 'ada'?" in result.err
