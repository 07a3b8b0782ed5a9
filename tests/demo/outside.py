"""The outside of the stand-in: HTTP clients, a webhook receiver, a checkout."""

import os
import subprocess
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from githubkit import GitHub

from tests.world.faulty_github import FaultyGitHub


@dataclass
class Client:
    """Plain HTTP as one account."""

    http: httpx.Client

    def __call__(self, method: str, path: str, **given: Any) -> httpx.Response:
        return self.http.request(method, path, **given)

    def graphql(self, query: str, **variables: Any) -> Any:
        given = {"query": query, "variables": variables}
        answer = self.http.post("../graphql", json=given)
        assert answer.status_code == 200, answer.text
        return answer.json()


def kit_for(github: FaultyGitHub, auth: Any) -> GitHub[Any]:
    return GitHub(auth, base_url=f"{github.url}api/v3/", auto_retry=False, http_cache=False)


@dataclass(frozen=True)
class Delivered:
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> str:
        return self.headers["X-GitHub-Event"]


@dataclass
class HookServer:
    """A webhook server that records its deliveries."""

    url: str = ""
    status: int = 202
    received: list[Delivered] = field(default_factory=list)

    def events(self) -> list[str]:
        return [each.event for each in self.received]


@dataclass
class Checkout:
    """A clone over HTTP, pushed to as one account."""

    path: Path
    url: str
    token: str

    def git(self, *args: str, fails: bool = False) -> str:
        """Run git; return its output, or its errors where it must fail."""
        secret = b64encode(f"x-access-token:{self.token}".encode()).decode()
        settings = {
            "http.extraHeader": f"Authorization: Basic {secret}" if self.token else "X-None: 1",
            "user.name": "Wright",
            "user.email": "wright@example.org",
        }
        flags = [flag for item in settings.items() for flag in ("-c", "=".join(item))]
        done = subprocess.run(
            ["git", *flags, *args],
            cwd=self.path,
            capture_output=True,
            text=True,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_TERMINAL_PROMPT": "0",
            },
        )
        assert bool(done.returncode) == fails, done.stderr
        return done.stderr if fails else done.stdout

    def clone(self) -> "Checkout":
        self.git("clone", "--quiet", self.url, ".")
        return self

    def commit(self, branch: str, **files: str) -> str:
        """Commit files on a branch; return the commit."""
        self.git("checkout", "--quiet", "-B", branch)
        for name, content in files.items():
            (self.path / name).write_text(content)
            self.git("add", name)
        self.git("commit", "--quiet", "-m", f"Change {', '.join(files)}")
        return self.git("rev-parse", "HEAD").strip()
