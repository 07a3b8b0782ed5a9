"""Which hosts a project's setting `network` allows, and which addresses are public."""

import asyncio
import errno
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from bot.model_proxy.addresses import addresses_of, is_public
from bot.model_proxy.proxy_requests import ProxyRequest


@pytest.mark.parametrize(
    ("network", "target", "allowed"),
    [
        ((), "CONNECT index.example:443", False),
        (("index.example",), "CONNECT index.example:443", True),
        (("index.example",), "GET http://index.example/", True),
        (("index.example",), "CONNECT index.example:80", False),
        (("index.example",), "GET http://index.example:8080/", False),
        (("index.example:8443",), "CONNECT index.example:8443", True),
        (("index.example:8443",), "CONNECT index.example:443", False),
        (("*.a.org",), "CONNECT x.y.a.org:443", True),
        (("*.a.org",), "CONNECT a.org:443", False),
        (("*.a.org",), "CONNECT xa.org:443", False),
        ("open", "CONNECT any.example:443", True),
        ("open", "GET http://any.example/", True),
        ("open", "CONNECT any.example:25", False),
    ],
)
def test_a_pattern_allows_a_host_at_its_usual_ports_or_the_one_it_names(
    network: str | tuple[str, ...], target: str, allowed: bool
) -> None:
    assert ProxyRequest.of(f"{target} HTTP/1.1".encode()).allowed_by(network) is allowed


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1"),
        *("169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1"),
        *("168.63.129.16", "198.18.0.1", "240.0.0.1", "::1", "::", "fe80::1", "fe80::1%1"),
        *("fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "2002:7f00:1::"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2001:0:7f00:1::", "::127.0.0.1"),
        *("fec0::1", "64:ff9b:1::7f00:1", "localhost", ""),
    ],
)
def test_addresses_of_this_machine_and_its_network_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
def test_other_addresses_are_public(address: str) -> None:
    assert is_public(address)


def test_an_address_is_judged_on_a_machine_without_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(code, "no socket")

    monkeypatch.setattr(socket, "socket", fails)
    code = errno.EAFNOSUPPORT
    assert is_public("2606:4700::1111")
    code = errno.EMFILE
    assert not is_public("2606:4700::1111"), "it may be this machine's own"


def test_a_name_has_addresses_unless_it_cannot_be_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    with ThreadPoolExecutor(1) as threads:
        assert "127.0.0.1" in asyncio.run(addresses_of("localhost", 443, threads))
        monkeypatch.setattr(socket, "getaddrinfo", fails)
        assert asyncio.run(addresses_of("localhost", 443, threads)) == []


def test_an_address_of_this_machine_is_not_public(monkeypatch: pytest.MonkeyPatch) -> None:
    class Socket(socket.socket):
        def bind(self, address: object) -> None:
            assert address == ("8.8.8.8", 0)

    monkeypatch.setattr(socket, "socket", Socket)
    assert not is_public("8.8.8.8")
