"""Tests of running git: time-outs, credentials, limits of output, error messages."""

import os
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from runtimes.workspaces.git import GitFailure, git, redact
from runtimes.workspaces.git_login import GitLogin, offered
from runtimes.workspaces.mirror import Mirror


@pytest.fixture
def refusing(request: pytest.FixtureRequest) -> Iterator[tuple[str, list[str]]]:
    """A server that refuses every request and records `Authorization` headers.

    If it refuses with 403, a request without a login gets 401, as from GitHub.
    """
    sent: list[str] = []
    status = getattr(request, "param", 403)

    class Refuse(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent.append(self.headers.get("Authorization", ""))
            anonymous = status == 403 and not sent[-1]
            self.send_response(401 if anonymous else status)
            self.send_header("WWW-Authenticate", 'Basic realm="GitHub"')
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Tests are silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Refuse) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/o/widgets.git", sent
        server.shutdown()
        thread.join()


def test_the_password_is_sent_to_its_own_server_and_a_refusal_names_the_token(
    refusing: tuple[str, list[str]], tmp_path: Path, mirror: Mirror
) -> None:
    url, sent = refusing
    mirror = Mirror(tmp_path / "mirror.git", url, lambda: "s3cret")
    with pytest.raises(GitFailure, match="check the token") as failure:
        mirror.refresh()
    login = b64encode(b"x-access-token:s3cret").decode()
    assert sent[-1] == f"Basic {login}"
    assert "s3cret" not in str(failure.value)
    elsewhere = Mirror(tmp_path / "other.git", url.replace("127.0.0.1", "localhost"))
    elsewhere.password = lambda: ""
    with pytest.raises(GitFailure):
        elsewhere.refresh()
    assert sent[-1] == ""


def test_git_starts_python_only_to_get_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A push runs the credential helper twice, the second time to store what it got."""
    starts, python = tmp_path / "starts", tmp_path / "a python"
    python.write_text(f'#!/bin/sh\necho x >> {starts}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(python))
    said = "protocol=https\nhost=github.example\n"
    with offered(GitLogin("https://github.example/o/widgets.git", "s3cret")) as (settings, sockets):
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]

        def credential(action: str, words: str) -> str:
            return subprocess.run(
                ["git", *options, "credential", action],
                input=f"{words}\n",
                capture_output=True,
                check=True,
                text=True,
                pass_fds=sockets,
            ).stdout

        got = credential("fill", said)
        assert got == f"{said}username=x-access-token\npassword=s3cret\n"
        assert credential("approve", got) == credential("reject", got) == ""
    assert starts.read_text() == "x\n"


@pytest.mark.parametrize(
    ("refusing", "outage"), [(403, False), (404, False), (502, True)], indirect=["refusing"]
)
def test_a_server_error_counts_as_an_outage(
    refusing: tuple[str, list[str]], outage: bool, tmp_path: Path, mirror: Mirror
) -> None:
    with pytest.raises(GitFailure) as failure:
        Mirror(tmp_path / "mirror.git", refusing[0], lambda: "").refresh()
    assert failure.value.outage is outage


def test_a_refused_connection_is_an_outage_and_a_missing_branch_is_not(
    tmp_path: Path, mirror: Mirror
) -> None:
    with pytest.raises(GitFailure, match="check the network") as failure:
        Mirror(tmp_path / "mirror.git", "http://127.0.0.1:9/o/widgets.git", lambda: "").refresh()
    assert failure.value.outage
    with pytest.raises(GitFailure) as failure:
        git(tmp_path / "mirror.git", "rev-parse", "--verify", "refs/heads/none")
    assert not failure.value.outage


def lives(pid: int) -> bool:
    try:
        return Path("/proc", str(pid), "stat").read_text().split()[2] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_git_that_times_out_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/child\nwait\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    with pytest.raises(GitFailure, match="did not end within"):
        git(tmp_path, "fetch", seconds=1.0)
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 10
    while lives(child):
        assert time.monotonic() < deadline, "git left a child"
        time.sleep(0.005)


def test_a_missing_git_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitFailure, match="git is missing; install git"):
        git(tmp_path, "status")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(GitFailure, match="no such folder"):
        git(tmp_path / "gone", "status")


def test_only_the_given_transport_is_allowed(mirror: Mirror, github: Path) -> None:
    with pytest.raises(GitFailure, match="transport 'file' not allowed"):
        git(mirror.path, "fetch", str(github))


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("https://user:pass@host/x", "https://***@host/x"),
        ("https://ghs_token@host/x", "https://***@host/x"),
        ("Authorization: Basic abc", "Authorization: Basic ***"),
        ("authorization: bearer abc def", "authorization: bearer *** def"),
        ("git@host:o/r is fine", "git@host:o/r is fine"),
    ],
)
def test_credentials_are_removed_from_gits_messages(text: str, clean: str) -> None:
    assert redact(text) == clean


def test_endless_output_is_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexec yes\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    with pytest.raises(GitFailure, match="it printed more than") as failed:
        git(tmp_path, "status")
    assert failed.value.too_much


def test_output_is_cut_at_its_limit(tmp_path: Path) -> None:
    with pytest.raises(GitFailure) as failed:
        git(tmp_path, "version", into=tmp_path / "out", most=5)
    assert failed.value.too_much
    assert (tmp_path / "out").read_bytes() == b"git v"


def test_a_full_disk_is_not_taken_for_too_much_output(tmp_path: Path) -> None:
    with pytest.raises(GitFailure, match="No space left") as failed:
        git(tmp_path, "version", into=Path("/dev/full"), most=1000)
    assert not failed.value.too_much
    assert failed.value.remedy == "free disk space there, then try again"


def test_output_is_read_until_a_deadline_however_much_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nwhile :; do echo x; done\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    with pytest.raises(GitFailure, match="did not end within"):
        git(tmp_path, "status", seconds=1.0)
