"""Looks up the addresses of hosts, and tells public ones from private ones.

The name of an allowed host may resolve to an address of this machine or its network, so the proxy
checks the address. It connects to the checked address, because a second lookup could return another
one.
"""

import asyncio
import errno
import socket
from concurrent.futures import Executor
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

#: Networks that lead to private addresses (6to4, Teredo, ...) or to a cloud's own services.
_NOT_PUBLIC = tuple(
    ip_network(one)
    for one in ("2002::/16", "2001::/32", "::/96", "64:ff9b:1::/48", "fec0::/10", "168.63.129.16")
)
#: Addresses that contain an IPv4 address, for machines that only have IPv6 (RFC 6052).
_TRANSLATED = ip_network("64:ff9b::/96")


async def addresses_of(host: str, port: int, threads: Executor) -> list[str]:
    """Return the IP addresses of a name; empty if the lookup fails or finds none.

    Use `threads` for these lookups only. An agent chooses the name, so its name server may be slow,
    and lookups of the models' hosts must not wait for it.
    """
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        found = await asyncio.get_running_loop().run_in_executor(threads, look_up)
    except OSError:
        return []
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def is_public(address: str) -> bool:
    """Whether an address is on the public internet and does not belong to this machine.

    False for an IPv4 address in the form of an IPv6 address (`::ffff:...`).
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv6Address) and ip in _TRANSLATED:
        ip = IPv4Address(int(ip) & 0xFFFF_FFFF)
    if isinstance(ip, IPv6Address) and (ip.ipv4_mapped is not None or ip.scope_id):
        return False
    if not ip.is_global or ip.is_multicast or any(ip in one for one in _NOT_PUBLIC):
        return False
    return not _is_own(address)


def _is_own(address: str) -> bool:
    """Whether an address belongs to this machine, that is, whether a socket can be bound to it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        tried = socket.socket(family, socket.SOCK_DGRAM)
    except OSError as error:
        # Without IPv6 no such address belongs to this machine. Any other failure tells nothing.
        return error.errno not in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT)
    with tried:
        try:
            tried.bind((address, 0))
        except OSError:
            return False
    return True
