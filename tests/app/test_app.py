"""The bot as a whole: lease, standby, full disks, shutdown."""

import hmac
import logging
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from bot.app import application as app_module
from bot.app import wiring as parts_module
from bot.app.application import App
from bot.app.workers import Job, Ticker
from bot.model_proxy.prices import Prices
from bot.store import StoreFailure, StoreFull
from bot.system.clock import SteadyClock
from config.load import Secrets
from config.settings import (
    AgentTypeSettings,
    GitHubSettings,
    ModelPrice,
    ProjectSettings,
    RuntimeSettings,
    ServerSettings,
    Settings,
)
from config.tables import TimingSettings
from tests.world.waiting import PATIENCE, eventually

SECRETS = Secrets(token="the-token", webhook_secret="the-secret")


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A GitHub that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def settings(silent: socket.socket) -> Iterator[Settings]:
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/api/v3/"
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        yield Settings(
            server=ServerSettings(port=0, data=str(Path(folder) / "data")),
            github=GitHubSettings(api_url=url),
            projects={"widgets": ProjectSettings(repository="acme/widgets")},
            runtime=RuntimeSettings(isolation="none"),
            timing=TimingSettings(lease_seconds=0.6, sweep_seconds=0.1),
        )


def acts(app: App) -> bool:
    return not app.health().standby_reason


def acting(settings: Settings) -> App:
    """Start a bot, and wait until it acts."""
    app = App(settings, SECRETS)
    app.start()
    eventually(app.wiring.leader_lease.may_act, "the bot acts")
    return app


@pytest.mark.parametrize(("events", "seconds"), [("webhooks", 300.0), ("polling", 30.0)])
def test_resync_and_redelivery_run_at_their_intervals(
    settings: Settings, events: Any, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    often: dict[str, float] = {}

    def ticker(*jobs: Job) -> Ticker:
        often.update((job.name, job.every_seconds) for job in jobs)
        return Ticker(*jobs)

    monkeypatch.setattr(app_module, "Ticker", ticker)
    app = App(replace(settings, github=replace(settings.github, events=events)), SECRETS)
    app.stop()
    assert (often["resync"], often["redeliver"]) == (seconds, 900.0)


def test_prices_come_from_the_configuration(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables: list[object] = []

    def prices(table: dict[str, ModelPrice]) -> Prices:
        tables.append(table)
        return Prices(table)

    monkeypatch.setattr(parts_module, "Prices", prices)
    table = {"model": ModelPrice(input=1.0, output=2.0, as_of=date(2026, 11, 21))}
    App(replace(settings, prices=table), SECRETS).stop()
    assert tables == [table]


def test_a_hanging_github_affects_neither_the_lease_nor_the_shutdown(
    settings: Settings, silent: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "_STOP_SECONDS", 0.1)
    app = App(settings, SECRETS)
    app.start()
    connection, _ = silent.accept()
    with connection:
        first = app.wiring.store.lease.holder()
        assert first is not None
        eventually(
            lambda: (app.wiring.store.lease.holder() or first)[1] > first[1], "the lease is renewed"
        )
        assert acts(app)
        assert not app.wiring.leader_lease.lost
        assert app.stop() is False


def test_a_bot_with_a_full_disk_acts_again_once_there_is_space(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    monkeypatch.setattr(app_module, "_STOP_SECONDS", 0.1)
    app = acting(settings)

    def full(*_: Any) -> None:
        raise StoreFull("no space is left")

    with monkeypatch.context() as patch:
        patch.setattr(app.wiring.store.lease, "acquire", full)
        eventually(lambda: not app.wiring.leader_lease.may_act(), "the lease has run out")
    eventually(app.wiring.leader_lease.may_act, "the bot acts again")
    assert not app.wiring.leader_lease.lost
    app.stop()
    assert not app.wiring.leader_lease.may_act()


def test_a_bot_that_starts_with_a_full_disk_begins_once_there_is_space(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    monkeypatch.setattr(app_module, "_STOP_SECONDS", 0.1)
    app = App(settings, SECRETS)
    reset_due, failed = app.wiring.store.outbox.reset_due, list[datetime]()

    def full_once(now: datetime) -> None:
        if not failed:
            failed.append(now)
            raise StoreFull("no space is left")
        reset_due(now)

    monkeypatch.setattr(app.wiring.store.outbox, "reset_due", full_once)
    app.start()
    eventually(lambda: acts(app) and app.health().scheduler, "the bot begins")
    assert failed
    app.stop()


def test_a_standby_bot_reads_and_decides_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "_STOP_SECONDS", 0.1)
    keyed = replace(settings, agent_types={"a": AgentTypeSettings(program="shell", key="KEY")})
    first, second = App(keyed, SECRETS), App(keyed, SECRETS)
    looked: list[str] = []
    for worker in second._workers:
        monkeypatch.setattr(worker, "_work", lambda name=worker.name: looked.append(name))
    first.start()
    eventually(first.wiring.leader_lease.may_act, "the first acts")
    second.start()
    eventually(lambda: "another bot" in second.health().standby_reason, "the second is on standby")
    second._on_delivered()
    second._beat()
    assert looked == []
    eventually(lambda: first.wiring.model_proxy.url, "its model proxy listens")
    assert not second.wiring.model_proxy.url
    first.stop()
    eventually(lambda: len(set(looked)) == len(second._workers), "the second looks at everything")
    assert second.wiring.model_proxy.url == first.wiring.model_proxy.url
    second.stop()


def test_a_port_that_another_program_took_is_an_incident(settings: Settings) -> None:
    first = acting(settings)
    eventually(lambda: first.wiring.model_proxy.url, "its model proxy listens")
    port = int(first.wiring.model_proxy.url.rpartition(":")[2])
    first.stop()
    with socket.create_server(("127.0.0.1", port)):
        second = acting(settings)
        incidents = second.wiring.store.incidents
        eventually(lambda: incidents.recent() and not incidents.current(), "it is over")
        (incident,) = incidents.recent()
        second.stop()
    assert incident.key == "proxy-port"
    assert f"port {port}: another program" in incident.text


def test_a_bot_that_lost_its_lease_stops(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "_STOP_SECONDS", 0.1)
    app = acting(settings)
    monkeypatch.setattr(app.wiring.store.lease, "acquire", lambda *_: None)
    app.wait()
    assert app.wiring.leader_lease.lost
    assert not app.wiring.leader_lease.may_act()
    app.stop()


def test_a_signal_stops_the_bot_even_if_it_wakes_no_thread(settings: Settings) -> None:
    app = App(settings, SECRETS)
    before = signal.signal(signal.SIGUSR1, lambda *_: app.end())

    def signals() -> None:
        eventually(lambda: app._stopping._cond._waiters, "the main thread sleeps")  # type: ignore[attr-defined]
        # The kernel delivers it to this thread; Python handles it in the main thread.
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    sender, rescue = threading.Thread(target=signals), threading.Timer(PATIENCE, app._stopping.set)
    sender.start()
    rescue.start()
    app.wait()
    rescue.cancel()
    sender.join()
    signal.signal(signal.SIGUSR1, before)
    assert not app._stopping.is_set()
    app.stop()


def test_a_bot_stops_as_soon_as_its_database_turns_out_to_be_damaged(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    monkeypatch.setattr(app_module, "_STOP_SECONDS", 0.1)
    app = acting(settings)
    path = app.wiring.store.path
    for file in (path.with_name(f"{path.name}-wal"), path):
        file.write_bytes(bytes(file.stat().st_size))
    rescue = threading.Timer(PATIENCE, app._stopping.set)
    rescue.start()
    app.wait()
    rescue.cancel()
    assert "restore it from a backup" in app.wiring.store.damage
    address = f"http://127.0.0.1:{app.server.port}"
    answer = httpx.get(f"{address}/readyz")
    assert answer.status_code == 503
    assert "restore it from a backup" in answer.json()["standby_reason"]
    body = b"{}"
    signature = hmac.new(b"the-secret", body, "sha256").hexdigest()
    headers = {
        "content-type": "application/json",
        "x-github-event": "issues",
        "x-github-delivery": "1",
        "x-hub-signature-256": f"sha256={signature}",
    }
    answer = httpx.post(f"{address}/webhooks/github", content=body, headers=headers)
    assert (answer.status_code, "restore it" in answer.text) == (503, True)
    with suppress(StoreFailure):
        app.stop()


def test_a_jump_of_the_machines_clock_is_an_incident_until_it_is_right_again(
    settings: Settings,
) -> None:
    ahead = timedelta()
    clock = SteadyClock(lambda: datetime.now(UTC) + ahead)
    app = App(settings, SECRETS, clock=clock)
    app.start()
    eventually(app.wiring.leader_lease.may_act, "the bot acts")
    incidents = app.wiring.store.incidents
    ahead = timedelta(hours=1)
    (incident,) = eventually(incidents.current, "the jump is shown")
    assert incident.key == "clock"
    assert "ahead of the bot's own clock" in incident.text
    assert app.wiring.leader_lease.may_act()
    ahead = timedelta()
    eventually(lambda: not incidents.current(), "it is over")
    app.stop()


def test_a_bot_whose_looks_at_agents_fail_is_not_ready(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App(settings, SECRETS)
    assert app.health().sweep_age is None

    def fails(self: object) -> int:
        raise RuntimeError("a look fails")

    with monkeypatch.context() as patched:
        patched.setattr("bot.observe.agents.AgentObserver.sweep", fails)
        app._swept = time.monotonic() - 100
        with pytest.raises(RuntimeError):
            app._sweep_agents()
        assert (app.health().sweep_age or 0) >= 100
        assert app.health().sweep_late
    app._sweep_agents()
    assert not app.health().sweep_late
    app.server.stop()
    app.wiring.store.close()
    app.wiring.github.close()
