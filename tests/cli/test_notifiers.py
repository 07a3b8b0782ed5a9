"""`mergewright notify`, and what the doctor says of notifiers."""

import json
from collections.abc import Iterator

import pytest

from bot.demo.bot_process import free_port
from tests.cli.conftest import CommandLine, Deployment, LineTail
from tests.world.notification_receivers import HttpReceiver, http_receiver

KEY = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TABLES = """
[notify.team]
kind = "apprise"
url = "TEAM_URL"
projects = ["widgets"]
quiet = "22:00-07:00"
[notify.pager]
kind = "webhook"
url = "PAGER_URL"
secret = "PAGER_SECRET"
priority = "action"
digest = "08:30"
"""


@pytest.fixture
def receiver(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpReceiver]:
    """The receiver of both notifiers of the installation."""
    with deployment.file.open("a") as file:
        file.write(TABLES)
    with http_receiver() as receiver:
        monkeypatch.setenv("TEAM_URL", f"json://127.0.0.1:{receiver.port}/t0ken-of-the-team")
        monkeypatch.setenv("PAGER_URL", f"{receiver.url}/t0ken-of-the-pager")
        monkeypatch.setenv("PAGER_SECRET", KEY)
        yield receiver


@pytest.mark.usefixtures("receiver")
def test_notifiers_are_listed(mergewright: CommandLine, deployment: Deployment) -> None:
    deployment.has_session(12)
    assert [line.rstrip() for line in mergewright("notify").out.splitlines()] == [
        "NAME   KIND     PROJECTS  PRIORITY  QUIET        DIGEST  WAITING",
        "team   apprise  widgets   info+     22:00-07:00  -       0",
        "pager  webhook  all       action+   -            08:30   0",
    ]
    found = json.loads(mergewright("notify", "--json").out)
    assert [one["name"] for one in found] == ["team", "pager"]
    assert "t0ken" not in json.dumps(found)


def test_without_notifiers_the_list_says_how_to_add_one(mergewright: CommandLine) -> None:
    assert "add a table [notify.NAME]" in mergewright("notify").out
    refused = mergewright("notify", "--test")
    assert (refused.code, refused.out) == (1, "")
    assert "no notifier: add a table [notify.NAME]" in refused.err


def test_a_test_message_is_sent(mergewright: CommandLine, receiver: HttpReceiver) -> None:
    done = mergewright("notify", "--test")
    assert [line.split() for line in done.out.splitlines()] == [["sent", "team"], ["sent", "pager"]]
    assert done.code == 0
    team, pager = receiver.requests
    assert "The notifier `team` works" in team.json["message"]
    assert pager.json["type"] == "test"
    mergewright("notify", "pager", "--test")
    assert [request.path for request in receiver.requests[2:]] == ["/t0ken-of-the-pager"]


def test_a_test_message_that_fails_is_explained_without_the_url(
    mergewright: CommandLine, receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.status = 503
    monkeypatch.delenv("PAGER_SECRET")
    done = mergewright("notify", "--test")
    team, pager = done.out.split("fail  pager")
    assert done.code == 1
    assert team.startswith("fail  team")
    assert "set PAGER_SECRET, or PAGER_SECRET_FILE" in " ".join(pager.split())
    assert "t0ken" not in done.out


@pytest.mark.usefixtures("receiver")
def test_an_unknown_notifier_is_refused(mergewright: CommandLine) -> None:
    assert mergewright("notify", "team").err == "mergewright: NAME works only with --test\n"
    refused = mergewright("notify", "teams", "--test")
    assert refused.code == 2
    assert "no notifier 'teams'; did you mean 'team'? known: pager, team" in refused.err


def test_doctor_needs_no_notifier(lines: LineTail) -> None:
    assert lines()["notifiers"] == "ok none configured"


def test_doctor_finds_reachable_receivers(lines: LineTail, receiver: HttpReceiver) -> None:
    test = "to send a test message: mergewright notify --test"
    assert lines()["notifiers"] == f"ok team, pager; {test}"
    assert receiver.requests == [], "it only connects"


@pytest.mark.usefixtures("receiver")
def test_doctor_warns_of_unreachable_receivers(
    lines: LineTail, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("PAGER_URL", f"http://127.0.0.1:{port}/t0ken-of-the-pager")
    found = lines()["notifiers"]
    assert found.startswith(f"warn pager: 127.0.0.1:{port} cannot be reached: Connection refused")


@pytest.mark.usefixtures("receiver")
@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("TEAM_URL", "wat://x", "team: Apprise does not understand the URL"),
        ("PAGER_SECRET", "short", "pager: PAGER_SECRET (notify.pager.secret): expected Base64"),
    ],
)
def test_doctor_fails_on_unusable_secrets(
    lines: LineTail, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, says: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert lines()["notifiers"].startswith(f"fail some cannot send anything -> {says}")
