"""Determines which files are visible in a sandbox: some of this machine, and those of the run."""

import os
from collections.abc import Iterable
from pathlib import Path

from runtimes.base import RuntimeFailure
from runtimes.isolation.base import Sandbox

#: Files and folders of /etc that are visible in sandboxes: settings that programs read.
ETC = (
    *("alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies"),
    *("fonts", "inputrc", "java-17-openjdk", "java-21-openjdk", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "localtime", "magic", "magic.mime", "mime.types", "pki/ca-trust"),
    *("pki/tls/certs", "profile", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone"),
)
#: Contents of files of /etc that hide the machine's users, hosts and name servers.
ETC_MADE = {
    "passwd": "agent:x:{user}:{user}:agent:{home}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "group": "agent:x:{user}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "resolv.conf": "",
}


def made_etc(user: int, home: str) -> dict[str, str]:
    """Return the files of `ETC_MADE` by name; `user` is a user ID, `home` its HOME."""
    return {name: text.format(user=user, home=home) for name, text in ETC_MADE.items()}


def mounts(cwd: Path, sandbox: Sandbox, further: Iterable[Path] = ()) -> dict[Path, bool]:
    """Return the paths of `sandbox` and `further`, outer folders first, and which are writable.

    The paths are absolute, without "..". Those of `further` are read-only. The system's paths, such
    as /usr, are not among them. Raises `RuntimeFailure` if `cwd` is in none of the paths, or a
    writable one is missing or leads through a symbolic link.
    """
    readable = (Path(os.path.normpath(path)) for path in (*sandbox.readable, *further))
    writable = dict.fromkeys(readable, False)
    writable |= dict.fromkeys(sandbox.writable, True)
    for path in sandbox.writable:
        _check_place(path)
    if not any(cwd.is_relative_to(path) for path in writable):
        raise RuntimeFailure(f"{cwd} is not in the sandbox")
    return {path: writable[path] for path in sorted(writable, key=lambda path: path.parts)}


def _check_place(path: Path) -> None:
    """Raise `RuntimeFailure` for a path that is missing or leads through a symbolic link."""
    if os.path.realpath(path) != str(path) or not path.exists():
        raise RuntimeFailure(
            f"{path} cannot be given to a program: it is missing, or a symbolic link leads to it;"
            " find out what removed or replaced it"
        )
