"""Gives git the password of a remote through a socket of its own.

Arguments and the environment of a process can be read by every process of the same user, files by
more. What is on a socket cannot be opened through `/proc`. As git's credential helper this file is
a script of its own, for the standard library alone: `git_login.py DESCRIPTOR get`.
https://git-scm.com/docs/gitcredentials#_custom_helpers
"""

import os
import shlex
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

#: GitHub takes any name beside a token.
_USER = "x-access-token"


class GitLogin(NamedTuple):
    """The password for the server of a URL."""

    url: str
    password: str  #: Empty: none.


@contextmanager
def offered(login: GitLogin) -> Iterator[tuple[Mapping[str, str], tuple[int, ...]]]:
    """Git's settings with which it asks for the password, and the descriptors it must inherit.

    It gets the password once, and for no other server than that of the URL.
    """
    server = urlsplit(login.url)
    if not login.password or server.scheme not in ("http", "https"):
        yield {}, ()
        return
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(f"username={_USER}\npassword={login.password}\n".encode())
        ours.shutdown(socket.SHUT_WR)
        words = (sys.executable, "-I", "-S", __file__, str(theirs.fileno()))
        place = f"{server.scheme}://{server.netloc.rpartition('@')[2]}"
        settings = {
            f"credential.{place}.helper": f"!{shlex.join(words)}",
            "http.proactiveAuth": "basic",  # Since git 2.46, as requests without a login are few.
        }
        yield settings, (theirs.fileno(),)


def _print_login(descriptor: int) -> None:
    """Print what is on the socket, for git."""
    while piece := os.read(descriptor, 4096):
        os.write(sys.stdout.fileno(), piece)


if __name__ == "__main__" and sys.argv[2:] == ["get"]:
    _print_login(int(sys.argv[1]))
