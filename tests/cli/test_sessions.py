"""`mergewright usage` and `mergewright transcript`."""

import json
from typing import get_args

import pytest

from bot.cli.sessions import UsageGroup
from bot.store import USAGE_GROUPS, Observation, Store
from lifecycle.model.facts import Agent, Usage
from lifecycle.model.status import Reason, Status
from tests.cli.conftest import CommandLine, Deployment


def lines(out: str) -> list[str]:
    return [" ".join(line.split()) for line in out.splitlines() if line.strip()]


def uses(deployment: Deployment, session: str, usage: Usage) -> None:
    store = Store(deployment.paths.database, clock=lambda: deployment.now)
    store.observations.record(
        [Observation(session=session, run=1, agent=Agent(run=1, usage=usage))], deployment.now
    )
    store.close()


def test_usage_shows_cost_and_unpriced_models(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    priced = Usage(input=1_234, output=12_345, cache_read=2_500_000, reasoning=9, cost_usd=1.5)
    uses(deployment, deployment.has_session(12), priced)
    models = {"odd-model": Usage(input=90), "known": Usage(input=10, cost_usd=0.5)}
    odd = Usage(input=100, cost_usd=0.5, unpriced=90, models=models)
    uses(deployment, deployment.has_session(13), odd)
    deployment.file.write_text(
        deployment.file.read_text()
        + '[prices."known"]\ninput = 1.0\noutput = 2.0\nas-of = 2026-11-20\n'
    )
    shown = lines(mergewright("usage").out)
    assert shown[0] == "INPUT OUTPUT REASONING CACHE READ CACHE WRITE COST UNPRICED HOURS"
    assert "widgets-12 1.2k 12k 9 2.5M 0 $1.50 0.1" in shown
    assert "widgets-13 100 0 0 0 0 $0.50 90 0.1" in shown
    assert "all 1.3k 12k 9 2.5M 0 $2.00 90 0.2" in shown
    assert 'odd-model has no price. Add [prices."odd-model"] to the configuration.' in shown
    assert not any("known has no price" in line for line in shown)
    assert "The oldest configured price is from 2026-11-20." in shown


def test_usage_of_a_session_is_grouped_by_run_by_default(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    uses(deployment, deployment.has_session(12), Usage(input=5, cost_usd=1.5))
    uses(deployment, deployment.has_session(13), Usage(input=5, cost_usd=2.5))
    (run,) = json.loads(mergewright("usage", "widgets-12", "--json").out)
    assert (run["name"], run["input"], run["cost_usd"]) == ("widgets-12_r1", 5, 1.5)
    (all_of_it,) = json.loads(mergewright("usage", "--by", "repository", "--json").out)
    assert (all_of_it["name"], all_of_it["sessions"], all_of_it["cost_usd"]) == (
        "acme/widgets",
        2,
        4.0,
    )
    assert "no session 'widgets-99'" in mergewright("usage", "widgets-99").err


def test_usage_is_filtered(mergewright: CommandLine, deployment: Deployment) -> None:
    uses(deployment, deployment.has_session(12), Usage(input=5, cost_usd=1.5))
    day = f"{deployment.now:%Y-%m-%d}"
    for options, sessions in (
        (("--from", day, "--to", day, "--project", "widgets"), 1),
        (("--from", "2100-01-01"), 0),
        (("--to", "2001-01-01"), 0),
        (("--agent", "bob"), 0),
        (("--person", "nobody-of-that-name"), 0),
    ):
        assert len(json.loads(mergewright("usage", *options, "--json").out)) == sessions, options
    assert "no project 'gears'" in mergewright("usage", "--project", "gears").err


def test_usage_supports_every_group_of_the_store() -> None:
    assert [*get_args(UsageGroup)] == [*USAGE_GROUPS]


def test_no_usage_has_a_message(mergewright: CommandLine, deployment: Deployment) -> None:
    deployment.has_waiting(1)
    assert lines(mergewright("usage").out) == ["No usage yet."]


def test_a_transcript_is_printed_with_its_numbers(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.printed(deployment.has_session(), "one\ntwo \x1b[31mred\x1b[0m\nthree\n")
    assert lines(mergewright("transcript", "widgets-12").out) == [
        "0 answer",
        "one",
        "two red",
        "three",
    ]
    for part in ("--from", "--messages"):
        refused = mergewright("transcript", "widgets-12", part, str(10**20))
        assert (refused.code, part in refused.err) == (2, True)
    some = mergewright("transcript", "widgets-12", "--from", "1", "-n", "1", "--json").out
    assert json.loads(some) == {"number": 1, "kind": "answer", "text": "two red"}


def test_a_transcript_is_followed_until_it_is_interrupted(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = deployment.printed(deployment.has_session(), "one\n")
    polls: list[float] = []

    def sleep(seconds: float) -> None:
        polls.append(seconds)
        if len(polls) > 2:
            raise KeyboardInterrupt
        with log.open("a") as file:
            file.write(f"more {len(polls)}\n")

    monkeypatch.setattr("time.sleep", sleep)
    shown = mergewright("transcript", "widgets-12", "--follow")
    assert (shown.code, lines(shown.out)) == (0, ["0 answer", "one", "more 1", "more 2"])


def test_a_missing_run_has_no_transcript(mergewright: CommandLine, deployment: Deployment) -> None:
    deployment.has_session()
    refused = mergewright("transcript", "widgets-12", "--run", "7")
    assert (refused.code, refused.err) == (1, "mergewright: widgets-12 has no run 7\n")


def test_sessions_are_filtered(mergewright: CommandLine, deployment: Deployment) -> None:
    deployment.has_session(7, title="The parser drops a line")
    deployment.has_a_red_check(deployment.has_session(12))
    deployment.has_ended(deployment.has_session(13))

    def listed(*words: str) -> list[str]:
        return [one["id"][8:] for one in json.loads(mergewright("ls", "--json", *words).out)]

    assert listed("--search", "parser") == ["7"]
    assert listed("--search", "#34") == ["12"]
    assert listed("--status", "ci_failed", "--status", "killed") == ["13", "12"]
    assert len(listed("--all", "--limit", "2")) == 2
    assert listed("--agent", "codex") == []
    assert listed("--person", "bob") == []
    assert sorted(listed("--agent", "shell", "--person", "Ada")) == ["12", "7"]
    assert mergewright("ls", "--agent", "codex").out == "No sessions match.\n"
    unknown = mergewright("ls", "--project", "gears")
    assert (unknown.code, "no project 'gears'; known: " in unknown.err) == (2, True), unknown.err
    result = mergewright("ls", "--status", "merge")
    assert (result.code, "did you mean 'merged'?" in result.err) == (2, True), result.err


def test_a_session_is_waited_for(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = deployment.has_session()
    result = mergewright("wait", session, "--for", "merged", "--timeout", "0")
    assert (result.code, result.err) == (
        1,
        "mergewright: gave up after 0 s: the status of widgets-12 is working\n",
    )

    def merges(_: float) -> None:
        deployment.has_ended(session, Status.MERGED, Reason.PR_MERGED)

    monkeypatch.setattr("bot.cli.listing.time.sleep", merges)
    result = mergewright("wait", session, "--for", "merged")
    assert (result.code, result.out) == (0, "widgets-12 merged  Ada stopped it.\n")
    result = mergewright("wait", session, "--for", "needs_input", "--json")
    assert (result.code, json.loads(result.out)["outcome"]) == (1, "merged")
    assert mergewright("wait", "nope", "--for", "merged").code == 2
