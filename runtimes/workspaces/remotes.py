"""Runs git commands that connect to another repository, such as `fetch` and `push`."""

import re
from pathlib import Path
from urllib.parse import urlsplit

from runtimes.workspaces.git import NETWORK_SECONDS, GitFailure, git, redact
from runtimes.workspaces.git_login import GitLogin


def with_remote(repository: Path, url: str, password: str, *args: str) -> str:
    """Run a git command that connects to `url` by the URL's protocol only, and return its output.

    `password` is for the server of `url` and may be empty. Raises `GitFailure`, which names the
    URL.
    """
    scheme = urlsplit(url).scheme
    # `user@host:path` is git's short form of an SSH URL.
    protocol = scheme or ("ssh" if re.match(r"[^/]+:", url) else "file")
    login = GitLogin(url, password)
    try:
        return git(repository, *args, login=login, protocol=protocol, seconds=NETWORK_SECONDS)
    except GitFailure as failure:
        failure.command += f" {redact(url)}"
        raise
