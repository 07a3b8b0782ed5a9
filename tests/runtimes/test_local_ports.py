"""Ports of this machine that are allotted to sessions."""

import errno
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runtimes.base import RuntimeFailure
from runtimes.isolation.base import PROXY_PORT
from runtimes.local_ports import LocalPorts, port_variables

FIRST, LAST = 28_100, 28_199
_IPV6 = Path("/proc/net/if_inet6")  # One line for each address of this machine.
LOOPBACK = ["127.0.0.1"]
if _IPV6.exists() and f"{1:032x}" in _IPV6.read_text().split():
    LOOPBACK.append("::1")


def test_no_two_sessions_have_the_same_port(tmp_path: Path) -> None:
    def allotted(number: int) -> set[int]:
        return {*LocalPorts(tmp_path).allot(f"widgets-{number}", 3, FIRST, LAST)}

    with ThreadPoolExecutor(4) as threads:
        found = [*threads.map(allotted, range(20))]
    assert [len(one) for one in found] == [3] * 20
    assert len(set.union(*found)) == 60


def test_a_session_keeps_its_ports_until_it_is_released(tmp_path: Path) -> None:
    before = LocalPorts(tmp_path).allot("widgets-1", 2, FIRST, LAST)
    ports = LocalPorts(tmp_path)
    assert ports.allot("widgets-1", 2, FIRST, LAST) == before
    other = ports.allot("widgets-2", 2, FIRST, LAST)
    ports.release("widgets-1")
    assert ports.allot("widgets-3", 4, FIRST, LAST)[:2] == before
    assert ports.allot("widgets-2", 2, FIRST, LAST) == other


@pytest.mark.parametrize("loopback", LOOPBACK)
def test_a_port_at_which_another_program_listens_is_passed_over(
    tmp_path: Path, loopback: str
) -> None:
    family = socket.AF_INET6 if ":" in loopback else socket.AF_INET
    with socket.create_server((loopback, 0), family=family) as listener:
        taken = listener.getsockname()[1]
        with pytest.raises(RuntimeFailure, match="fewer than 1 ports are free"):
            LocalPorts(tmp_path).allot("widgets-1", 1, taken, taken)


@pytest.mark.parametrize("why", [errno.EAFNOSUPPORT, errno.EACCES])
def test_a_machine_that_forbids_ipv6_has_free_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: int
) -> None:
    real = socket.socket

    def without_ipv6(family: int = socket.AF_INET, *more: Any) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(why, "no IPv6")
        return real(family, *more)

    monkeypatch.setattr(socket, "socket", without_ipv6)
    assert len(LocalPorts(tmp_path).allot("widgets-1", 2, FIRST, LAST)) == 2


def test_a_session_for_which_too_few_ports_are_free_takes_none(tmp_path: Path) -> None:
    ports = LocalPorts(tmp_path)
    with pytest.raises(RuntimeFailure, match="fewer than 101 ports are free"):
        ports.allot("widgets-1", 101, FIRST, LAST)
    some = ports.allot("widgets-1", 1, FIRST, LAST)
    assert {*ports.allot("widgets-2", 10, FIRST, LAST)}.isdisjoint(some)
    ports.release("widgets-1")
    assert ports.allot("widgets-3", 1, FIRST, LAST) == some


def test_the_port_of_the_proxy_in_a_sandbox_is_never_allotted(tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailure, match="set a larger `port-range`"):
        LocalPorts(tmp_path).allot("widgets-1", 1, PROXY_PORT, PROXY_PORT)


def test_each_port_has_a_variable() -> None:
    variables = {"MERGEWRIGHT_PORT_1": "28100", "MERGEWRIGHT_PORT_2": "28105"}
    assert port_variables([28100, 28105]) == variables
