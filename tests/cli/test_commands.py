"""Commands given on the command line, as the bot gets them."""

import json
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from bot.cli.commands import PLAIN
from bot.store import Session, SessionDecision, Store
from lifecycle.model import keys
from lifecycle.model.actions import Action, Comment
from lifecycle.model.facts import Ended
from lifecycle.model.status import Reason, Status
from tests.cli.conftest import CommandLine, Deployment
from tests.world.databases import empty_database

_MODE = "permission-mode=confirm"
#: Invalid issue numbers.
NO_NUMBERS = ("²", "0", "012", "9" * 10, "9" * 30, "9" * 5_000)


def store(deployment: Deployment) -> Store:
    return Store(empty_database(deployment.paths.database))


def session(deployment: Deployment, id: str = "widgets-12") -> Session:
    with closing(store(deployment)) as opened:
        found = opened.sessions.get(id)
    assert found is not None
    return found


def commands(deployment: Deployment) -> list[tuple[str, str]]:
    return [(command.kind, command.text) for command in session(deployment).commands]


def judge(
    status: Status, because: str, *answers: str, refused: bool = False
) -> Callable[[Store], None]:
    """A reconciliation with this result."""
    key_of = keys.command_refused if refused else keys.command_applied

    def come(opened: Store) -> None:
        found = opened.sessions.get("widgets-12")
        assert found is not None
        now = opened.clock()
        (loaded,) = opened.facts.load([found.id])
        actions: tuple[Action, ...] = tuple(
            Comment(
                key=key_of(found.commands[-1].key),
                number=12,
                topic="answer",
                values={"text": text},
            )
            for text in answers
        )
        ended = None
        if status is Status.KILLED:
            ended = Ended(status=status, reason=Reason.MANUALLY_KILLED, because=because, at=now)
        decision = SessionDecision(
            status=status, reason="x", because=because, run=1, actions=actions, ended=ended
        )
        opened.decisions.record([(loaded, decision)], now)[0].result()

    return come


@pytest.mark.parametrize("kind", PLAIN)
def test_commands_without_arguments_are_submitted(
    mergewright: CommandLine, deployment: Deployment, kind: str
) -> None:
    deployment.has_session()
    result = mergewright(kind, "widgets-12")
    assert result.code == 0
    assert commands(deployment) == [(kind, "")]
    assert session(deployment).commands[0].actor.startswith("cli:")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("tell", "widgets-12", "keep", "the old name"), ("tell", "keep the old name")),
        (("answer", "widgets-12", "Yes."), ("answer", "Yes.")),
        (("merge", "widgets-12"), ("merge", "")),
        (("merge", "widgets-12", "Rebase"), ("merge", "rebase")),
        (("budget", "widgets-12", "+2.5"), ("budget", "+2.5")),
        (("allow", "widgets-12", "ABCDEF1"), ("allow", "abcdef1")),
        (("start", "widgets-12"), ("start", "")),
        (("start", "widgets-12", "ada", "codex"), ("start", "ada codex")),
        (("agent", "widgets-12", "ada", "codex"), ("agent", "ada codex")),
        (("restart", "widgets-12"), ("restart", "")),
        *(
            ((kind, "widgets-12", *words, _MODE), (kind, " ".join((*words, _MODE))))
            for kind, words in (("start", ()), ("agent", ("ada", "codex")), ("restart", ()))
        ),
        (("review", "widgets-12"), ("review", "")),
        (("freeze", "widgets-12"), ("freeze", "")),
        (("unfreeze", "widgets-12"), ("unfreeze", "")),
    ],
)
def test_arguments_are_parsed_as_in_comments(
    mergewright: CommandLine,
    deployment: Deployment,
    words: tuple[str, ...],
    command: tuple[str, str],
) -> None:
    deployment.has_session()
    assert mergewright(*words).code == 0
    assert commands(deployment) == [command]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("tell", "widgets-12", " "), "tell needs a text"),
        (("budget", "widgets-12", "lots"), "budget needs an amount in US dollars"),
        (("merge", "widgets-12", "squish"), "did you mean `squash`?"),
        (("merge", "widgets-12", "--pull", "9"), "no pull request #9; its pull requests: none"),
        (("stop", "widgets-13"), "no session 'widgets-13'; did you mean widgets-12?"),
        (
            ("start", "widget-1"),
            "no session 'widget-1', and no project 'widget'; did you"
            " mean 'widgets'? known: widgets",
        ),
        *(
            (("start", f"widgets-{number}"), "PROJECT-NUMBER, such as widgets-12")
            for number in NO_NUMBERS
        ),
        (
            ("start", "widgets-13", "one", "of", "three"),
            "start takes at most the name of one agent",
        ),
        (
            ("start", "widgets-13", "permission-mode=yolo"),
            "start takes one of `permission-mode=auto`",
        ),
        (
            ("restore", "widgets-12"),
            "widgets-12: no such file; an ended session is restored by `mergewright start",
        ),
        (("freeze",), "name what to freeze: a SESSION, --project NAME or --all"),
        (("unfreeze", "widgets-12", "--all"), "name what to unfreeze"),
        (("freeze", "--project", "gears"), "no project 'gears'; known: widgets"),
        (("meta", "widgets-12", "ticket"), "expected KEY=VALUE"),
        (("meta", "widgets-12", "a b=1"), "expected KEY=VALUE"),
    ],
)
def test_an_invalid_command_is_refused_with_a_remedy(
    mergewright: CommandLine, deployment: Deployment, words: tuple[str, ...], why: str
) -> None:
    deployment.has_session()
    result = mergewright(*words)
    assert result.code == 2
    assert why in result.err
    assert commands(deployment) == []


def test_secrets_in_messages_are_redacted(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MERGEWRIGHT_PAGE_TOKEN", "hunter2-of-the-page")
    deployment.has_session()
    assert mergewright("tell", "widgets-12", "use hunter2-of-the-page").code == 0
    assert mergewright("meta", "widgets-12", "note=hunter2-of-the-page").code == 0
    assert commands(deployment) == [("tell", "use [secret]")]
    files = deployment.paths.data.glob("mergewright.db*")
    assert not [file for file in files if b"hunter2" in file.read_bytes()]


def test_without_a_running_bot_the_command_is_deferred(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_session()
    out = " ".join(mergewright("pause", "widgets-12").out.split())
    printed = "no bot is running, so it is applied when `mergewright serve` starts"
    assert out == f"widgets-12: pause submitted; {printed}"


def test_the_outcome_of_a_command_is_printed(
    mergewright: CommandLine, deployment: Deployment, a_bot: Callable[..., None]
) -> None:
    deployment.has_session()
    a_bot(judge(Status.KILLED, "cli:ada stopped it", "It is ended; its work is kept."))
    out = mergewright("stop", "widgets-12").out
    assert out == "widgets-12 killed  cli:ada stopped it.\nIt is ended; its work is kept.\n"


def test_the_outcome_can_be_printed_as_json(
    mergewright: CommandLine, deployment: Deployment, a_bot: Callable[..., None]
) -> None:
    deployment.has_session()
    a_bot(judge(Status.WORKING, "at work", "It resumes."))
    printed = json.loads(mergewright("resume", "widgets-12", "--json").out)
    assert (printed["kind"], printed["accepted"], printed["status"]) == ("resume", True, "working")
    assert (printed["reply"], printed["reason"]) == ("It resumes.", "")
    assert printed["key"] == session(deployment).commands[0].key


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("retry", "widgets-12"), "There are no failed actions to retry."),
        (("merge", "widgets-12"), "There is no pull request yet."),
        (("agent", "widgets-12", "nobody"), "There is no agent `nobody`; known agents: shell."),
        (("start", "widgets-12"), "There is already a session here (`working`)."),
    ],
)
def test_a_refused_command_is_an_error(
    mergewright: CommandLine,
    deployment: Deployment,
    a_bot: Callable[..., None],
    words: tuple[str, ...],
    why: str,
) -> None:
    deployment.has_session()
    a_bot(judge(Status.WORKING, "at work", why, refused=True))
    result = mergewright(*words)
    assert (result.code, result.out) == (1, "")
    assert result.err == f"mergewright: widgets-12: {words[0]} refused: {why}\n"
    a_bot(judge(Status.WORKING, "at work", why, refused=True))
    result = mergewright(*words, "--json")
    printed = json.loads(result.out)
    assert (result.code, printed["accepted"], printed["reason"]) == (1, False, why)


def test_a_command_that_no_bot_has_judged_is_neither_accepted_nor_refused(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_session()
    result = mergewright("retry", "widgets-12", "--json")
    assert (result.code, json.loads(result.out)["accepted"]) == (0, None)


def test_in_mode_observe_a_command_is_refused_though_no_reply_is_recorded(
    mergewright: CommandLine, deployment: Deployment, a_bot: Callable[..., None]
) -> None:
    deployment.has_session()
    deployment.file.write_text(f'{deployment.file.read_text()}\n[policy]\nmode = "observe"\n')
    a_bot(judge(Status.WORKING, "at work"))
    result = mergewright("retry", "widgets-12")
    assert result.code == 1
    assert "There are no failed actions to retry." in result.err


def test_no_wait_returns_at_once(
    mergewright: CommandLine, deployment: Deployment, a_bot: Callable[..., None]
) -> None:
    deployment.has_session()
    a_bot(lambda _: pytest.fail("it waited"))
    out = mergewright("stop", "widgets-12", "--no-wait").out
    assert out == "widgets-12: stop submitted, not applied yet\n"


def test_start_creates_a_session(
    mergewright: CommandLine, deployment: Deployment, a_bot: Callable[..., None]
) -> None:
    deployment.has_session(1)

    def makes_it(opened: Store) -> None:
        (command,) = opened.commands.new()
        assert (command.repository, command.number, command.text) == ("acme/widgets", 13, "shell")
        opened.commands.refuse(command.key, "a session was opened")
        deployment.has_session(13)

    a_bot(makes_it)
    out = mergewright("start", "widgets-13", "shell").out
    assert out == "widgets-13 working  The agent is at work.\na session was opened\n"


def test_a_refused_start_prints_the_reason(
    mergewright: CommandLine, deployment: Deployment, a_bot: Callable[..., None]
) -> None:
    deployment.has_session(1)
    a_bot(
        lambda opened: opened.commands.refuse(opened.commands.new()[0].key, "the issue is closed")
    )
    result = mergewright("start", "widgets-13")
    assert (result.code, result.err) == (
        1,
        "mergewright: widgets-13: start refused: the issue is closed\n",
    )
    a_bot(
        lambda opened: opened.commands.refuse(opened.commands.new()[0].key, "the issue is closed")
    )
    result = mergewright("start", "widgets-13", "--json")
    printed = json.loads(result.out)
    assert (result.code, printed["accepted"], printed["reason"]) == (
        1,
        False,
        "the issue is closed",
    )


def test_a_project_or_everything_is_frozen_and_unfrozen(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_session()
    assert mergewright("freeze", "--all").out == "everything is now frozen\n"
    out = mergewright("freeze", "--project", "widgets").out
    assert out.startswith("widgets is now frozen\neverything is frozen by cli:")
    assert mergewright("freeze", "--all").out.startswith("everything is already frozen\n")
    (all_of_it, one) = json.loads(mergewright("freeze", "--all", "--json").out)
    assert (all_of_it["scope"], one["scope"]) == ("", "project:widgets")
    assert mergewright("unfreeze", "--all").out.startswith("the freeze of everything is undone\n")
    result = mergewright("unfreeze", "--all")
    says = (
        "mergewright: there is no freeze of everything to undo; project widgets is frozen by cli:"
    )
    assert (result.code, result.out, result.err.startswith(says)) == (1, "", True)
    assert mergewright("unfreeze", "--all", "--json").code == 1
    assert "the project, by cli:" in mergewright("show", "widgets-12").out
    assert "the project, by cli:" in mergewright("why", "widgets-12").out


def test_metadata_is_stored_and_shown(mergewright: CommandLine, deployment: Deployment) -> None:
    deployment.has_session()
    assert mergewright("meta", "widgets-12").out == ""
    out = mergewright("meta", "widgets-12", "ticket=OPS-1", "team=blue").out
    assert out == "team=blue\nticket=OPS-1\n"
    assert json.loads(mergewright("meta", "widgets-12", "team=", "--json").out) == {
        "ticket": "OPS-1"
    }
    assert "ticket     OPS-1" in mergewright("show", "widgets-12").out


def test_a_merge_is_bound_to_the_current_head(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_a_red_check(deployment.has_session())
    assert mergewright("merge", "widgets-12").code == 0
    assert mergewright("merge", "widgets-12", "--pull", "34").code == 0
    assert {command.head for command in session(deployment).commands} == {"c" * 40}


def test_budgets_are_shown(mergewright: CommandLine, deployment: Deployment) -> None:
    deployment.has_session()
    for command in ("show", "why"):
        assert "0.00 of this session's budget of 5.00 USD" in mergewright(command, "widgets-12").out
        (bar, *_) = json.loads(mergewright(command, "widgets-12", "--json").out)["budgets"]
        assert (bar["name"], bar["spent"], bar["limit"]) == ("session", 0, 5)


def test_waiting_for_a_hanging_bot_times_out(
    mergewright: CommandLine,
    deployment: Deployment,
    a_bot: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deployment.has_session()
    a_bot(lambda _: None)
    ticks = iter(range(0, 1000, 6))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    out = mergewright("stop", "widgets-12").out
    assert out == "widgets-12: stop submitted, not applied yet\n"
