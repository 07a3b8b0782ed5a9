"""The examples of a service, a container and a proxy are complete and agree with the program."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import config
from bot.app import application
from bot.store import StoreDamaged
from bot.system import http_server
from bot.web.webhook import WebhookLimits
from config.load import settings_of

DEPLOY = Path(config.__file__).parent / "deploy"
ROOT = DEPLOY.parent.parent
NEW_KEY = "DelegateSubgroup"  #: systemd before 254 says that it ignores it.
LONGEST_STOP = application._STOP_SECONDS + http_server._STOP_SECONDS


def unit() -> dict[str, list[str]]:
    """The settings of the systemd unit by name."""
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / "mergewright.service").read_text("utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def steps() -> list[tuple[str, str]]:
    """The instructions of the Containerfile."""
    text = (DEPLOY / "Containerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def compose() -> Any:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "mergewright.service").read_text("utf-8")
    # The program and the user are not there on this machine.
    program = re.sub(r"/usr/local/bin/mergewright", "/bin/true", text)
    path = tmp_path / "mergewright.service"
    path.write_text(program.replace("User=mergewright", "User=root"))
    checked = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
    about_it = [line for line in checked.stderr.splitlines() if "mergewright.service" in line]
    assert [line for line in about_it if f"Unknown key '{NEW_KEY}'" not in line] == []


def test_the_unit_stops_restarts_and_keeps_agents_as_the_bot_needs() -> None:
    service = unit()
    assert int(service["TimeoutStopSec"][0]) > LONGEST_STOP
    assert str(StoreDamaged.EXIT_CODE) in service["RestartPreventExitStatus"][0].split()
    assert service["KillMode"] == ["process"]
    assert service["ExecReload"][0].endswith(" reload")


def test_bubblewrap_works_in_the_unit_and_can_limit_runs() -> None:
    service = unit()
    assert service["Delegate"] == ["yes"]
    assert service[NEW_KEY] == ["bot"]
    forbids = {"RestrictNamespaces", "SystemCallFilter", "PrivateUsers", "ProtectKernelTunables"}
    forbids |= {"ProtectProc", "ProcSubset", "NoNewPrivileges", "ProtectControlGroups"}
    assert forbids.isdisjoint(service)
    comments = (DEPLOY / "mergewright.service").read_text("utf-8")
    assert [name for name in forbids if name not in comments] == []


def test_bubblewrap_works_in_the_container() -> None:
    (packages,) = (rest for name, rest in steps() if name == "RUN" and "apt-get" in rest)
    assert {"bubblewrap", "git", "tmux"} <= set(packages.split())
    options = compose()["services"]["mergewright"]["security_opt"]
    assert set(options) == {f"{name}=unconfined" for name in ("seccomp", "apparmor", "systempaths")}
    usage = (DEPLOY / "Containerfile").read_text("utf-8")
    assert "--security-opt unmask=ALL --security-opt seccomp=unconfined" in usage


def test_the_container_copies_what_the_package_is_built_of() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    copied = [word for name, rest in steps() if name == "COPY" for word in rest.split()[:-1]]
    assert all((ROOT / word).exists() for word in copied)
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {*packages, "pyproject.toml", "requirements.txt"} <= set(copied)
    assert project["project"]["readme"] in copied
    (image,) = (rest for name, rest in steps() if name == "FROM")
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", image)


def test_the_compose_file_builds_that_container_and_gives_it_time_to_stop() -> None:
    services = compose()["services"]
    bot = services["mergewright"]
    root = (DEPLOY / bot["build"]["context"]).resolve()
    assert root == ROOT
    assert (root / bot["build"]["dockerfile"]).is_file()
    assert int(bot["stop_grace_period"].removesuffix("s")) > LONGEST_STOP
    variables = {name: rest for name, rest in steps() if name in ("ENV", "VOLUME")}
    assert variables["ENV"] == "MERGEWRIGHT_CONFIG=/config/mergewright.toml"
    mounted = {volume.split(":")[1] for volume in bot["volumes"]}
    assert mounted == {"/config", variables["VOLUME"]}
    assert "./Caddyfile:/etc/caddy/Caddyfile:ro" in services["caddy"]["volumes"]


def test_the_proxies_forward_the_largest_webhook_to_the_default_port_without_metrics() -> None:
    largest, port = WebhookLimits().body_bytes, settings_of("", "x").server.port
    caddy, nginx = (DEPLOY / name for name in ("Caddyfile", "nginx.conf"))
    assert f"max_size {largest}" in caddy.read_text("utf-8")
    assert f"client_max_body_size {largest};" in nginx.read_text("utf-8")
    for path in (caddy, nginx):
        text = path.read_text("utf-8")
        assert f"127.0.0.1:{port}" in text
        assert re.search(r"/metrics", text)
