"""The bot as a whole: it keeps its place, stands by without acting, and ends whatever hangs."""

import logging
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot import app as app_module
from bot.app import App
from bot.store import StoreFull
from config.load import Secrets
from config.settings import GitHub, Project, Runtime, Server, Settings, Timing
from tests.world.waiting import eventually

SECRETS = Secrets(token="the-token", webhook_secret="the-secret")


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A GitHub that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def settings(silent: socket.socket) -> Iterator[Settings]:
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/api/v3/"
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        yield Settings(
            server=Server(port=0, data=str(Path(folder) / "data")),
            github=GitHub(api_url=url),
            projects={"widgets": Project(repository="acme/widgets")},
            runtime=Runtime(sandbox="none"),
            timing=Timing(lease_seconds=0.6, sweep_seconds=0.1),
        )


def acts(app: App) -> bool:
    return not app.health().standing_by


def test_a_github_that_hangs_costs_neither_the_lease_nor_an_orderly_end(
    settings: Settings, silent: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "_STOP_SECONDS", 0.1)
    app = App(settings, SECRETS)
    app.start()
    connection, _ = silent.accept()
    with connection:
        first = app.store.leader()
        assert first is not None
        eventually(lambda: (app.store.leader() or first)[1] > first[1], "the lease is renewed")
        assert acts(app)
        assert not app.lost
        assert app.stop() is False


def test_a_bot_whose_disk_is_full_acts_again_when_it_is_not(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    monkeypatch.setattr(app_module, "_STOP_SECONDS", 0.1)
    app = App(settings, SECRETS)
    app.start()
    eventually(app._may_act, "the bot acts")

    def full(*_: Any) -> None:
        raise StoreFull("no space is left")

    with monkeypatch.context() as patch:
        patch.setattr(app.store, "lead", full)
        eventually(lambda: not app._may_act(), "the lease has run out")
    eventually(app._may_act, "the bot acts again")
    assert not app.lost
    app.stop()
    assert not app._may_act()


def test_a_bot_that_stands_by_reads_and_judges_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "_STOP_SECONDS", 0.1)
    first, second = App(settings, SECRETS), App(settings, SECRETS)
    looked: list[str] = []
    for lane in second._lanes:
        monkeypatch.setattr(lane, "_work", lambda name=lane.name: looked.append(name))
    first.start()
    eventually(first._may_act, "the first acts")
    second.start()
    eventually(lambda: "another bot" in second.health().standing_by, "the second stands by")
    second._delivered()
    second._beat()
    assert looked == []
    first.stop()
    eventually(lambda: len(set(looked)) == len(second._lanes), "the second looks at everything")
    second.stop()


def test_a_bot_whose_place_was_taken_ends(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "_STOP_SECONDS", 0.1)
    app = App(settings, SECRETS)
    app.start()
    eventually(app._may_act, "the bot acts")
    monkeypatch.setattr(app.store, "lead", lambda *_: None)
    app.wait()
    assert app.lost
    assert not app._may_act()
    app.stop()
