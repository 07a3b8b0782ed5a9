"""Parses requests to a proxy: the requested server, and the run token."""

import base64
import binascii
import re
from http import HTTPStatus
from typing import Self

from msgspec import Struct

#: A host's name. Its last part begins with a letter, so that no notation of an address matches.
_NAME = re.compile(r"(?=.{1,253}$)(?:[a-z0-9_-]{1,63}\.)+[a-z][a-z0-9-]{0,62}")
#: Only characters of names and addresses, because people see the refused hosts.
_AUTHORITY = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{1,5}))?")
_REQUEST = re.compile(r"([A-Z]{1,16}) ([!-~]+) HTTP/1\.[01]")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
#: Headers for the proxy, which are not forwarded to the server.
_FOR_PROXY = ("proxy-authorization", "proxy-connection", "connection", "keep-alive")
HTTP, HTTPS = 80, 443


class ProxyRefusal(Exception):
    """The proxy refuses a request; the message is sent to the program."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class ProxyRequest(Struct, frozen=True, kw_only=True):
    """A request to connect with a server (`CONNECT`), or to forward plain HTTP to it."""

    #: A name or an IP address, with brackets if IPv6, in lowercase and without a final dot.
    host: str
    port: int
    token: str  #: The run token, not verified yet; empty if there are no readable credentials.
    forwarded: bytes = b""  #: The head to send to the server; empty for `CONNECT`.

    @property
    def is_name(self) -> bool:
        """Whether the host is a name with a dot, which can be looked up, and not an IP address."""
        return _NAME.fullmatch(self.host) is not None

    @classmethod
    def of(cls, head: bytes) -> Self:
        """Parse the head of a request, without the empty line at its end. Raises `ProxyRefusal`."""
        first, *rest = head.decode("latin-1").split("\r\n")
        line, headers = _REQUEST.fullmatch(first), [_HEADER.fullmatch(one) for one in rest]
        if line is None or None in headers:
            raise _invalid("request")
        pairs = [(one[1].lower(), one[2].strip()) for one in headers if one]
        method, target = line.groups()
        if method == "CONNECT":
            host, port = _server(target, 0)
            return cls(host=host, port=port, token=_token(pairs))
        authority, _, path = target[len("http://") :].partition("/")
        host, port = _server(authority, HTTP)
        own = [pair for pair in pairs if pair[0] not in (*_FOR_PROXY, "host")]
        # One request per connection: a second one could be for another server.
        sent = [("host", authority), *own, ("connection", "close")]
        lines = [f"{method} /{path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent)]
        forwarded = "\r\n".join([*lines, "", ""]).encode("latin-1")
        return cls(host=host, port=port, token=_token(pairs), forwarded=forwarded)

    def allowed_by(self, network: str | tuple[str, ...]) -> bool:
        """Whether a project's setting `network` allows this host and port.

        The setting is "open", which allows all hosts at the usual port (443 for `CONNECT`, else
        80), or a list of host patterns. A pattern that names no port allows the usual one.
        """
        usual = HTTP if self.forwarded else HTTPS
        if isinstance(network, str):
            return network == "open" and self.port == usual
        return any(self._fits(*pattern.lower().partition(":")[::2], usual) for pattern in network)

    def _fits(self, host: str, port: str, usual: int) -> bool:
        names = self.host.endswith(host[1:]) if host.startswith("*.") else self.host == host
        return names and self.port == (int(port) if port else usual)


def _server(authority: str, default: int) -> tuple[str, int]:
    found = _AUTHORITY.fullmatch(authority)
    port = int(found[2] or default) if found else 0
    if found is None or not 0 < port < 1 << 16:
        raise _invalid("address")
    return found[1].lower().removesuffix("."), port


def _token(headers: list[tuple[str, str]]) -> str:
    """Return the run token `USER.PASSWORD`; empty if there are no valid credentials.

    Raises `ProxyRefusal` if there are several headers with credentials.
    """
    shown = [value for name, value in headers if name == "proxy-authorization"]
    if len(shown) > 1:
        raise _invalid("Proxy-Authorization")
    scheme, _, encoded = shown[0].partition(" ") if shown else ("", "", "")
    if scheme.lower() != "basic":
        return ""
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return ""
    return f"{user}.{password}"


def _invalid(what: str) -> ProxyRefusal:
    return ProxyRefusal(HTTPStatus.BAD_REQUEST, f"invalid {what}")
