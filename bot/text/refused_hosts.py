"""Describes the hosts to which the proxy refused to connect a session, and how to allow them."""

import re
from collections.abc import Iterable

#: Host names that the setting `network` can allow; it cannot allow IP addresses.
_NAME = re.compile(r"(?:[a-z0-9_-]+\.)+[a-z][a-z0-9-]*")
_USUAL_PORTS = (80, 443)


def refused_host(host: str, port: int, times: int, project: str, *, public: bool) -> str:
    """Say which host was refused, how often, and what to do.

    An empty `host` stands for several other hosts, which get no remedy. `public` is False for a
    host that the project allows but that has no public IP address.
    """
    often = "once" if times == 1 else f"{times} times"
    if not host:
        return f"refused: other hosts, which this list does not name, {often}"
    what = f"refused: {host}:{port}, {often}"
    if not public:
        return f"{what}; it has no public address, so it cannot be allowed"
    if not _NAME.fullmatch(host):
        return f"{what}; only names with a domain can be allowed, such as files.example.org"
    remedy = f'allow it: add "{_pattern(host, port)}" to `network` in [projects.{project}]'
    only = (
        ""
        if port in _USUAL_PORTS
        else '; the setting must be a list, because "open" allows only the ports 80 and 443'
    )
    return f"{what}; {remedy}{only}"


def network_line(network: tuple[str, ...], refused: Iterable[tuple[str, int]]) -> str:
    """Return the setting `network` as TOML, extended by the refused hosts with a domain name."""
    added = [_pattern(host, port) for host, port in refused if _NAME.fullmatch(host)]
    words = (f'"{word}"' for word in dict.fromkeys((*network, *added)))
    return f"network = [{', '.join(words)}]"


def _pattern(host: str, port: int) -> str:
    return host if port in _USUAL_PORTS else f"{host}:{port}"
