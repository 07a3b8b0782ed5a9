"""What sandboxes show of this machine, and how they are given a run's own files."""

import os
from collections.abc import Iterable
from pathlib import Path

from runtimes.base import RuntimeFailure
from runtimes.files import write_private
from runtimes.isolation.base import Sandbox

#: The machine's settings that programs read; nothing else of /etc is visible.
ETC = (
    *("alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies"),
    *("fonts", "inputrc", "java-17-openjdk", "java-21-openjdk", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "localtime", "magic", "magic.mime", "mime.types", "pki/ca-trust"),
    *("pki/tls/certs", "profile", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone"),
)
#: Files of /etc that are made here, without the machine's users, hosts and name servers.
ETC_MADE = {
    "passwd": "agent:x:{user}:{user}:agent:{home}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "group": "agent:x:{user}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "resolv.conf": "",
}


def write_etc(folder: Path, user: int, home: str) -> None:
    """Write `ETC_MADE` for a program with this user."""
    for name, text in ETC_MADE.items():
        write_private(folder / name, text.format(user=user, home=home))


def mounts(cwd: Path, sandbox: Sandbox, further: Iterable[Path] = ()) -> dict[Path, bool]:
    """Return a program's own files, and whether they are writable, outer folders first.

    `further` are readable. Raises `RuntimeFailure`, also if `cwd` is not among them.
    """
    writable = dict.fromkeys((*sandbox.readable, *further), False)
    writable |= dict.fromkeys(sandbox.writable, True)
    for path in sandbox.writable:
        _check_place(path)
    if not any(cwd.is_relative_to(path) for path in writable):
        raise RuntimeFailure(f"{cwd} is not in the sandbox")
    return {path: writable[path] for path in sorted(writable, key=lambda path: path.parts)}


def _check_place(path: Path) -> None:
    """Refuse a folder that a link replaces, which would give the program another one."""
    if os.path.realpath(path) != str(path) or not path.exists():
        raise RuntimeFailure(
            f"{path} cannot be given to a program: it is missing, or a symbolic link leads to it;"
            " find out what removed or replaced it"
        )
