"""The bot is killed while it sends a message: none is lost, and a repetition is recognised."""

import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.system.crash_points import CrashPoint
from tests.harness.fixtures import Scenario
from tests.notify.conftest import Desk
from tests.world.notification_receivers import HttpReceiver, http_receiver

SECRET = b64encode(b"s" * 32).decode()


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with http_receiver() as receiver:
        yield receiver


@pytest.fixture
def database(tmp_path: Path, scenario: Scenario) -> Path:
    """The path of a database with two sessions that need people. No process has it open."""
    desk = Desk(scenario)
    for number in (12, 13):
        desk.needs(scenario.session(number))
    scenario.store.close()
    return tmp_path / "mergewright.db"


def runs(database: Path, kind: str, url: str, point: str = "") -> int:
    """Run a bot until it has sent everything, or is killed; returns its exit status."""
    command = [sys.executable, "-m", "tests.notify.crashing_notifier", str(database), kind, url]
    done = subprocess.run([*command, SECRET, *([point] if point else [])], timeout=120)
    return done.returncode


@pytest.mark.parametrize("point", [CrashPoint.TAKEN, CrashPoint.DONE, CrashPoint.MARKED])
def test_a_webhook_arrives_once_by_its_id(
    database: Path, receiver: HttpReceiver, point: CrashPoint
) -> None:
    assert runs(database, "webhook", receiver.url, point) == -signal.SIGKILL
    assert runs(database, "webhook", receiver.url, point) == -signal.SIGKILL
    assert runs(database, "webhook", receiver.url) == 0
    assert runs(database, "webhook", receiver.url) == 0
    by_id = {request.headers["webhook-id"]: request for request in receiver.requests}
    sessions = sorted(request.json["data"]["session"] for request in by_id.values())
    assert sessions == ["widgets-12", "widgets-13"]
    # Only what was sent and not recorded is repeated.
    repeated = len(receiver.requests) - len(by_id)
    assert repeated == (2 if point is CrashPoint.DONE else 0)
    assert len({request.body for request in receiver.requests}) == 2


def test_elsewhere_a_repetition_says_that_it_may_be_one(
    database: Path, receiver: HttpReceiver
) -> None:
    url = receiver.url.replace("http://", "json://")
    assert runs(database, "apprise", url, CrashPoint.DONE) == -signal.SIGKILL
    assert runs(database, "apprise", url) == 0
    texts = [request.json["message"] for request in receiver.requests]
    warned = [text.startswith("(You may have this message already") for text in texts]
    assert warned == [False, True, False]
    assert texts[1].endswith(texts[0])


def test_a_bot_that_was_killed_before_it_sent_anything_sends_everything(
    database: Path, receiver: HttpReceiver
) -> None:
    receiver.status = 503
    receiver.answers.clear()
    command = [sys.executable, "-m", "tests.notify.crashing_notifier", str(database), "webhook"]
    with subprocess.Popen([*command, receiver.url, SECRET]) as bot:
        assert receiver.asked.wait(60)
        bot.kill()
    receiver.status = 200
    receiver.answers.set()
    assert runs(database, "webhook", receiver.url) == 0
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 2
