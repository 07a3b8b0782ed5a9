"""Refused hosts, each with its remedy."""

import pytest

from bot.text.refused_hosts import network_line, refused_host

NAMED = "only names with a domain can be allowed, such as files.example.org"


@pytest.mark.parametrize(
    ("where", "times", "says"),
    [
        (("a.example", 443), 3, '3 times; allow it: add "a.example" to `network`'),
        (("a.example", 80), 1, 'once; allow it: add "a.example" to `network`'),
        (("a.example", 22), 2, '2 times; allow it: add "a.example:22" to `network`'),
        *(((host, 443), 1, f"once; {NAMED}") for host in ("127.0.0.1", "[::1]", "localhost")),
        (("0x7f.1", 443), 1, f"once; {NAMED}"),
    ],
)
def test_a_refused_host_has_its_remedy(where: tuple[str, int], times: int, says: str) -> None:
    host, port = where
    end = " in [projects.widgets]" if "allow it" in says else ""
    if port == 22:
        end += '; the setting must be a list, because "open" allows only the ports 80 and 443'
    shown = refused_host(host, port, times, "widgets", public=True)
    assert shown == f"refused: {host}:{port}, {says}{end}"


def test_a_host_without_a_public_address_cannot_be_allowed() -> None:
    shown = refused_host("a.example", 443, 1, "widgets", public=False)
    assert shown.endswith("443, once; it has no public address, so it cannot be allowed")


def test_other_hosts_are_counted_together() -> None:
    shown = refused_host("", 0, 9, "widgets", public=True)
    assert shown == "refused: other hosts, which this list does not name, 9 times"


def test_a_line_allows_what_was_refused_beside_what_was_allowed() -> None:
    refused = [("a.example", 443), ("b.example", 22), ("known.example", 80), ("127.0.0.1", 443)]
    line = network_line(("known.example",), refused)
    assert line == 'network = ["known.example", "a.example", "b.example:22"]'
