"""`mergewright reload`: a running bot takes a changed configuration, or says why it does not."""

import hmac
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from bot.app.reloading import changed
from bot.store import CLEANUP, Store, StoreFailure, this_process
from bot.system.clock import utc_now
from config.load import settings_of
from tests.cli.conftest import CommandLine, Deployment
from tests.cli.results import MERGEWRIGHT
from tests.world.trace_receiver import trace_receiver
from tests.world.waiting import PATIENCE, eventually

SECRET = "x" * 20


def a_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.fixture
def bot(deployment: Deployment) -> Iterator[subprocess.Popen[str]]:
    """`mergewright serve` as a process that leads; GitHub cannot be reached."""
    text = deployment.file.read_text().replace("[server]", f"[server]\nport = {a_free_port()}")
    nowhere = "http://127.0.0.1:9/"
    github = f'[github]\napi-url = "{nowhere}"\ngit-url = "{nowhere}"\n'
    github += '[runtime]\nisolation = "none"\n'
    deployment.file.write_text(f"{text}\n{github}")
    secrets = {"MERGEWRIGHT_GITHUB_TOKEN": "hunter2hunter2", "MERGEWRIGHT_WEBHOOK_SECRET": SECRET}
    with subprocess.Popen(
        [MERGEWRIGHT, "serve", "--config", deployment.file],
        env=os.environ | secrets,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            eventually(lambda: leads(deployment), "the bot leads")
            yield process
        finally:
            process.kill()


def leads(deployment: Deployment) -> bool:
    try:
        with closing(Store.reading(deployment.paths.database)) as opened:
            return opened.lease.holder() is not None
    except StoreFailure:  # It is being created.
        return False


def test_a_running_bot_takes_a_changed_configuration_or_keeps_the_old_one(
    mergewright: CommandLine, deployment: Deployment, bot: subprocess.Popen[str]
) -> None:
    before = deployment.file.read_text()
    assert mergewright("reload").out == "Nothing has changed.\n"
    deployment.file.write_text(f'{before}\n[policy]\nmode = "observe"\n')
    assert mergewright("reload").out == "Reloaded: policy.mode.\n"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        deployment.file.write_text(
            before.replace("[server]\nport = ", f"[server]\nport = {port} #")
        )
        refused = mergewright("reload")
    assert refused.code == 1
    assert f"not reloaded: cannot listen on 127.0.0.1, port {port}" in refused.err
    deployment.file.write_text(before)
    assert mergewright("reload").out == "Reloaded: policy.mode.\n"
    bot.send_signal(signal.SIGTERM)
    assert bot.wait(PATIENCE) == 0


def test_traces_can_be_switched_on_while_the_bot_runs(
    mergewright: CommandLine, deployment: Deployment, bot: subprocess.Popen[str]
) -> None:
    before = deployment.file.read_text()
    with trace_receiver() as receiver:
        deployment.file.write_text(f'{before}\n[tracing]\nendpoint = "{receiver.url}"\n')
        assert mergewright("reload").out == "Reloaded: tracing.endpoint.\n"
        url = settings_of(deployment.file.read_text(), "x").public_url
        signature = hmac.new(SECRET.encode(), b"{}", "sha256").hexdigest()
        headers = {
            "x-github-event": "ping",
            "x-github-delivery": "a-ping",
            "content-type": "application/json",
        }
        headers["x-hub-signature-256"] = f"sha256={signature}"
        sent = httpx.post(f"{url}webhooks/github", content=b"{}", headers=headers)
        assert sent.status_code == 202, sent.text
        (traced,) = eventually(lambda: receiver.named("delivery"), "the trace")
        assert traced.attributes["mergewright.delivery"] == "a-ping"
        bot.send_signal(signal.SIGTERM)
        assert bot.wait(PATIENCE) == 0


def test_without_a_bot_there_is_nothing_to_reload(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_session()
    result = mergewright("reload")
    assert result.code == 1
    assert "no bot is running" in result.err


def test_a_cleanup_is_not_taken_for_a_bot(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cleanup holds the lease of the bot, but the signal that reloads a bot would kill a cleanup.

    A cleanup does not apply commands such as that of `mergewright pause`.
    """
    signalled: list[int] = []
    monkeypatch.setattr("os.kill", lambda process, _: signalled.append(process))
    monkeypatch.setattr("bot.cli.reload._WAIT_SECONDS", 0)
    deployment.has_session()
    with closing(Store(deployment.paths.database)) as store:
        assert store.lease.acquire(f"{this_process()}{CLEANUP}", utc_now(), 60)
        assert "no bot is running" in mergewright("reload").err
        assert "no bot is running" in " ".join(mergewright("pause", "widgets-12").out.split())
    assert signalled == []


def test_a_bot_elsewhere_is_not_taken_for_a_process_of_this_machine(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On this machine, the process ID of a remote bot may belong to another program.

    The signal that `mergewright reload` sends would end that program.
    """
    signalled: list[int] = []
    monkeypatch.setattr("os.kill", lambda process, _: signalled.append(process))
    deployment.has_session()
    _, boot, process, start = this_process().split(":")
    with closing(Store(deployment.paths.database)) as store:
        assert store.lease.acquire(f"elsewhere/1:{boot}:{process}:{start}:1", utc_now(), 60)
        refused = mergewright("reload")
    says = f"the bot (process {process} on elsewhere) cannot be notified: it has ended, or runs on"
    assert (refused.code, says in refused.err, signalled) == (1, True, [])


def test_changes_are_named_as_in_the_file() -> None:
    shell = '[agent-types.shell]\nprogram = "shell"\n'
    one = '[projects.w]\nrepository = "a/w"\nagent = "shell"\n'
    before = settings_of(shell + one, "x")
    after = settings_of(
        f'{shell}{one}people = ["bo"]\n' + one.replace("w", "v") + "[limits]\nsessions = 2\n", "x"
    )
    assert changed(before, before) == ()
    assert changed(before, after) == ("limits.sessions", "projects.v", "projects.w.people")
