"""What holds for every command of the program."""

from collections.abc import Iterator
from typing import Any

import pytest
import respx
import typer

from bot.cli.options import LOCAL
from bot.cli.program import app
from tests.cli.conftest import CommandLine, Deployment

URL = "https://bot.example"
#: Commands without a result: they run until they are ended, ask questions, or print a file.
WITHOUT_JSON = {"serve", "sandbox", "attach", "chat", "top", "config example", "init", "setup"}
#: Those that say themselves what `--server` means.
HINTS = {"status"}


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


ALL = {name: one for name, one in commands(typer.main.get_command(app)) if name not in HINTS}


def options(command: Any) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


def test_every_command_with_a_result_prints_it_as_json() -> None:
    assert {name for name, one in ALL.items() if "--json" not in options(one)} == WITHOUT_JSON


def test_every_command_takes_a_server_or_has_a_reason_not_to() -> None:
    assert {name for name, one in ALL.items() if "--server" not in options(one)} == LOCAL.keys()


@pytest.mark.parametrize("name", LOCAL)
def test_a_command_of_the_servers_machine_says_why_it_takes_no_server(
    mergewright: CommandLine, deployment: Deployment, name: str
) -> None:
    result = mergewright(*name.split(), "--server", URL)
    remedies = {"config example": "Leave the option out"}
    remedy = remedies.get(name, "Run it on the server's own machine")
    says = f"{name} takes no --server: {LOCAL[name]}. {remedy}"
    assert (result.code, result.err) == (2, f"mergewright: {says}\n")


@pytest.fixture
def elsewhere(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> Iterator[respx.MockRouter]:
    monkeypatch.setenv("MERGEWRIGHT_PAGE_TOKEN", "t" * 32)
    with respx.mock(base_url=f"{URL}/api/v1/", assert_all_called=False) as router:
        yield router


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (404, {"detail": "Not Found"}, "its version of Mergewright differs from yours"),
        (200, {"odd": 1}, "its version of Mergewright differs from yours"),
        (403, {"detail": "This needs write.", "remedy": "Ask."}, "This needs write. Ask."),
        (401, {"detail": "No."}, "refuses the token"),
    ],
)
def test_what_a_server_cannot_or_may_not_do_is_said(
    mergewright: CommandLine,
    elsewhere: respx.MockRouter,
    status: int,
    body: dict[str, object],
    says: str,
) -> None:
    elsewhere.route().respond(status, json=body)
    for words in ("queue", "usage", "meta widgets-1 a=b", "agents show ada"):
        result = mergewright(*words.split(), "--server", URL)
        assert (result.code, result.out, says in result.err) == (1, "", True), result.err
