"""Commands on an issue with several sessions: which one gets them."""

import pytest
from msgspec.structs import replace

from bot.intake.commands import ParsedCommand, parse
from bot.store import NewCommand, NewSession
from bot.text import messages
from lifecycle.model.actions import Comment
from lifecycle.model.facts import Ended, Issue
from lifecycle.model.status import Reason, Status
from tests.harness.observers import REPOSITORY, Bench


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/mergewright widgets-12b stop", ("widgets-12b", "stop", "")),
        ("@mergewright widgets-p3 budget +5", ("widgets-p3", "budget", "+5")),
        ("/mergewright my-app-7 tell use it\nand test it", ("my-app-7", "tell", "use it and")),
        ("/mergewright widgets-12b", ("", "help", "There is no command")),
        ("/mergewright widgets-12b frobnicate", ("", "help", "There is no command")),
        ("@mergewright utf-8 is broken", ("", "tell", "utf-8 is broken")),
        ("@mergewright utf-8 stop bytes", ("utf-8", "help", "takes no argument")),
    ],
)
def test_a_command_may_begin_with_the_id_of_a_session(
    text: str, expected: tuple[str, str, str]
) -> None:
    (found,) = parse(text)
    session, name, words = expected
    assert (found.session, found.name) == (session, name)
    assert words in " ".join(found.text.split())


def test_a_command_without_an_id_names_no_session() -> None:
    assert parse("/mergewright stop") == (ParsedCommand(name="stop"),)


@pytest.fixture
def several(bench: Bench) -> Bench:
    """An issue with two sessions."""
    bench.scenario.session()
    bench.scenario.clock.passes(60)
    opened(bench, "widgets-12b")
    return bench


def opened(bench: Bench, name: str, repository: str = REPOSITORY) -> None:
    new = NewSession(
        id=name,
        project="widgets",
        repository=repository,
        created=bench.scenario.clock(),
        issue=Issue(number=12, title="It breaks"),
        branch=name,
        agent_type="shell",
    )
    assert bench.store.sessions.create(new)


def commands(bench: Bench, addressee: str = "", actor: str = "ada", number: int = 12) -> None:
    """A person comments `pause`, after the id of a session if there is one."""
    command = NewCommand(
        key="comment:7",
        repository=REPOSITORY,
        number=number,
        kind="pause",
        actor=actor,
        at=bench.scenario.clock(),
        comment=7,
        addressee=addressee,
    )
    bench.store.commands.add(command)
    assert bench.store.commands.new() == [command]
    bench.commands.settle()


def granted(bench: Bench) -> list[str]:
    """The ids of the sessions that got a command."""
    ids = [session.id for session in bench.store.sessions.all() if session.commands]
    return sorted(ids)


def replies(bench: Bench) -> list[str]:
    due = bench.store.outbox.due(bench.scenario.clock())
    found = [one.action for one in due if isinstance(one.action, Comment)]
    return [messages.comment_body(one.topic, one.values) for one in found]


def test_a_command_goes_to_the_session_that_it_names(several: Bench) -> None:
    commands(several, "widgets-12")
    assert (granted(several), replies(several)) == (["widgets-12"], [])


def test_a_session_without_an_issue_gets_commands_by_its_id(several: Bench) -> None:
    opened(several, "widgets-p1")
    commands(several, "widgets-p1", number=99)
    assert granted(several) == ["widgets-p1"]


def test_a_command_that_names_no_session_goes_to_the_newest_and_says_so(several: Bench) -> None:
    commands(several)
    assert granted(several) == ["widgets-12b"]
    (reply,) = replies(several)
    assert reply == (
        "This issue has several sessions. `pause` went to widgets-12b, the newest one; also open:"
        " widgets-12. To choose one, write `/mergewright SESSION pause`."
    )


def test_a_command_where_one_session_is_open_needs_no_name(several: Bench) -> None:
    now = several.scenario.clock()
    over = Ended(status=Status.KILLED, reason=Reason.MANUALLY_KILLED, because="x", at=now)
    (loaded,) = several.store.facts.load(["widgets-12b"])
    decided = replace(loaded.before, status="killed", reason="x", because="x", run=1, ended=over)
    several.store.decisions.record([(loaded, decided)], now)[0].result()
    commands(several)
    assert (granted(several), replies(several)) == (["widgets-12"], [])


@pytest.mark.parametrize("name", ["widgets-12c", "gears-12"])
def test_a_name_without_a_session_in_this_repository_is_refused(several: Bench, name: str) -> None:
    opened(several, "gears-12", repository="acme/gears")
    commands(several, name)
    assert granted(several) == []
    (reply,) = replies(several)
    assert reply.startswith(f"There is no session {name} in this repository")


def test_naming_a_session_gives_nobody_access(several: Bench) -> None:
    commands(several, "widgets-12", actor="mallory")
    assert granted(several) == []
