"""The screens of sessions, in 80 columns."""

import json
import re
from contextlib import closing

import pytest

from bot.store import Configuration, Destination, Observation, Store
from lifecycle.judge.reasons import advice_on
from lifecycle.model.facts import Frozen, Issue
from lifecycle.model.status import Reason, Status
from tests.cli.conftest import CommandLine, Deployment
from tests.world.databases import empty_database

HOSTILE = "It breaks \x1b]0;owned\x07\x1b[2J\u202e" + "very " * 30 + "much"


def test_sessions_are_listed_with_status_pull_age_and_reason(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_session(7)
    deployment.has_a_red_check(deployment.has_session(12, title="The parser drops a line"))
    result = mergewright("ls")
    assert result.code == 0
    lines = [line.split() for line in result.out.splitlines() if not line.startswith(" ")]
    assert lines[0] == ["SESSION", "STATUS", "ACTIVITY", "PULL", "SINCE"]
    assert [line[:-1] for line in lines[1:]] == [
        ["widgets-7", "working", "active", "-"],
        ["widgets-12", "ci_failed", "active", "#34"],
    ]
    assert all(re.fullmatch(r"\d+s", line[-1]) for line in lines[1:])
    assert "  The parser drops a line\n  A check that counts failed on ccccccc: unit." in result.out


def test_ended_sessions_are_listed_only_when_asked_for(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_ended(deployment.has_session(7))
    deployment.has_session(12)
    assert "widgets-7" not in mergewright("ls").out
    listed = mergewright("ls", "--all").out
    assert "widgets-7   killed" in listed
    assert "widgets-12  working" in listed


def test_an_empty_list_has_a_message(mergewright: CommandLine, deployment: Deployment) -> None:
    deployment.has_session()
    deployment.paths.database.unlink()
    empty_database(deployment.paths.database)
    assert mergewright("ls").out == "No live sessions. Use --all to include ended ones.\n"
    assert mergewright("ls", "--all").out == "No sessions yet.\n"
    assert "no project 'nosuch'; known: " in mergewright("ls", "--project", "nosuch").err


def test_show_prints_everything_about_a_session(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session(12, title="The parser drops a line")
    deployment.has_a_red_check(session)
    result = mergewright("show", session)
    assert result.code == 0
    shown = " ".join(result.out.split())
    for words in (
        "widgets-12 ci_failed A check that counts failed on ccccccc: unit.",
        "#12 The parser drops a line",
        "https://example.com/issues/12",
        "requester @ada",
        "shell, run 1, at work for 5m: it printed",
        "mergewright/12-it-breaks at ccccccc",
        "checks: 1 passed, 1 failed (unit)",
        "pending Post a comment",
        "working: The agent is at work -> Post a comment",
    ):
        assert words in shown


def test_a_session_that_failed_is_listed_with_its_remedy(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_ended(deployment.has_session(1))
    failed = deployment.has_session(2)
    deployment.has_ended(failed, Status.ERRORED, Reason.TIMEOUT)
    shown = " ".join(mergewright("ls").out.split())
    assert "widgets-1 " not in shown
    assert "widgets-2 errored" in shown
    assert f"-> {advice_on(Reason.TIMEOUT)}" in shown
    assert [one["id"] for one in json.loads(mergewright("ls", "--json").out)] == [failed]


def test_why_prints_facts_signals_and_next_actions(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session()
    before = deployment.paths.database.read_bytes()
    result = mergewright("why", session)
    assert result.code == 0
    assert result.out.startswith("widgets-12 queued  The session waits for its turn in the queue")
    order = ["facts", "signals", "next actions", "next decision"]
    places = [result.out.index(f"\n{word}") for word in order]
    assert places == sorted(places)
    assert deployment.paths.database.read_bytes() == before


def test_why_names_the_next_actions(mergewright: CommandLine, deployment: Deployment) -> None:
    session = deployment.has_session(slot=True)
    assert "Start the agent" in mergewright("why", session).out


def test_in_observe_mode_there_are_no_next_actions(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session(slot=True)
    with deployment.file.open("a") as file:
        file.write('\n[policy]\nmode = "observe"\n')
    assert "none, because policy.mode is" in mergewright("why", session).out


def test_why_and_show_use_the_repositorys_policy(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session(slot=True)
    said = '[policy]\nmode = "observe"\nsession-usd = 1.5\n'
    with closing(Store(deployment.paths.database)) as store:
        store.configurations.set(Configuration(repository="acme/widgets", blob="b", valid=said))
    assert "none, because policy.mode is" in mergewright("why", session).out
    for command in ("why", "show"):
        assert "1.5" in mergewright(command, session).out, command


def test_foreign_text_is_wrapped_and_has_no_escape_sequences(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session(title=HOSTILE)
    deployment.has_a_red_check(session)
    for words in (("ls",), ("show", session), ("why", session)):
        out = mergewright(*words).out
        assert not set(out) & {"\x1b", "\x07", "\u202e"}
        assert max(map(len, out.splitlines())) <= 80


def test_missing_values_are_omitted(mergewright: CommandLine, deployment: Deployment) -> None:
    deployment.has_waiting(14, agent="")
    assert mergewright("ls").out.splitlines()[1:] == [
        "widgets-14  queued  none      -     5m",
        "  It breaks",
        "  number 1, starts any moment: not checked yet",
    ]
    assert "agent      shell, not started yet" in mergewright("show", "widgets-14").out
    assert "- " in mergewright("agents").out.splitlines()[1]
    assert mergewright("agents", "show", "ada").err == "mergewright: no agent 'ada'; known: shell\n"


def test_incidents_and_freezes_are_listed_first(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_session()
    with closing(Store(deployment.paths.database)) as store:
        store.incidents.report("many-lost", "five sessions seem dead at once", deployment.now)
        store.freezes.add("project:widgets", "cli:ada")
    assert mergewright("ls").out.splitlines()[:2] == [
        "five sessions seem dead at once",
        "project widgets is frozen by cli:ada",
    ]


@pytest.mark.parametrize(
    ("frozen", "says"),
    [
        (
            "--all",
            "Everything is frozen by cli:ada. The command waits for `mergewright unfreeze --all`.",
        ),
        (
            "--project widgets",
            "Project widgets is frozen by cli:ada. The command waits for `mergewright unfreeze"
            " --project widgets`.",
        ),
        (
            "widgets-12",
            "widgets-12 is frozen by cli:ada. The command waits for `mergewright unfreeze"
            " widgets-12`.",
        ),
    ],
)
def test_a_command_for_a_frozen_session_names_what_undoes_the_freeze(
    mergewright: CommandLine,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    frozen: str,
    says: str,
) -> None:
    monkeypatch.setattr("bot.cli.submit.local_actor", lambda: "cli:ada")
    session = deployment.has_session()
    mergewright("freeze", *frozen.split())
    answered = json.loads(mergewright("pause", session, "--json").out)
    assert (answered["accepted"], answered["reply"]) == (None, says)


def test_a_command_for_a_session_frozen_by_a_label_names_the_label(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session()
    frozen = Frozen(scope="session", by="", at=deployment.now)
    issue = Issue(number=12, title="It breaks", frozen=frozen)
    with closing(Store(deployment.paths.database)) as store:
        store.observations.record([Observation(session=session, issue=issue)], deployment.now)
    answered = json.loads(mergewright("unfreeze", session, "--json").out)
    assert answered["reply"] == (
        "widgets-12 is frozen. The command waits for the removal of the label `mergewright:freeze`."
    )


def test_show_and_why_name_refused_hosts_with_their_remedy(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session(12)
    with closing(Store(deployment.paths.database)) as store:
        store.refused.record({Destination(session=session, host="evil.example", port=443): 3})
    remedy = 'allow it: add "evil.example" to `network` in [projects.widgets]'
    for command in ("show", "why"):
        shown = " ".join(mergewright(command, session).out.split())
        assert f"network refused: evil.example:443, 3 times; {remedy}" in shown
        (refused,) = json.loads(mergewright(command, session, "--json").out)["refused"]
        assert (refused["host"], refused["port"], refused["times"]) == ("evil.example", 443, 3)
