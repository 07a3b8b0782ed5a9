"""Gives git the password of a remote through a socket of its own.

Every user can read a process's arguments, and every process of the same user its environment and
private files. Data in a socket cannot be read through `/proc`. Git's credential helper reads the
password from that socket.
https://git-scm.com/docs/gitcredentials#_custom_helpers
"""

import shlex
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import urlsplit

#: The credential helper. Git runs it with `get`, `store` or `erase`. Only `get` starts Python,
#: which takes more time to start than git.
_HELPER = '!f() { test "$1" != get || exec %s; }; f'
#: Prints the user name and password, which it reads from the socket with the given descriptor.
_PRINT = """import os, sys
while piece := os.read(int(sys.argv[1]), 4096):
    os.write(1, piece)"""
#: The user name. With a token, GitHub accepts any user name.
_USER = "x-access-token"


class GitLogin(NamedTuple):
    """The password for the server of a URL."""

    url: str  #: Of the remote.
    password: str  #: If empty, git gets no password.


@contextmanager
def offered(login: GitLogin) -> Iterator[tuple[Mapping[str, str], tuple[int, ...]]]:
    """Yield the settings with which git asks for the password, and descriptors it must inherit.

    Git gets the password once, and only for the server of the URL. Without a password, or if the
    URL is not an HTTP URL, both are empty.
    """
    server = urlsplit(login.url)
    if not login.password or server.scheme not in ("http", "https"):
        yield {}, ()
        return
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(f"username={_USER}\npassword={login.password}\n".encode())
        ours.shutdown(socket.SHUT_WR)
        # Neither `-I -S` nor the program imports more than Python needs to start.
        words = (sys.executable, "-I", "-S", "-c", _PRINT, str(theirs.fileno()))
        place = f"{server.scheme}://{server.netloc.rpartition('@')[2]}"
        settings = {
            f"credential.{place}.helper": _HELPER % shlex.join(words),
            "http.proactiveAuth": "basic",  # Since git 2.46, as requests without a login are few.
        }
        yield settings, (theirs.fileno(),)
