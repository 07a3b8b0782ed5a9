"""The webhook route over real sockets."""

import contextlib
import hmac
import select
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bot.store import StoreFailure
from bot.web.health import Health
from bot.web.webhook import WebhookLimits
from tests.web.conftest import OLD_SECRET, SECRET, Site, signed
from tests.world.waiting import PATIENCE, eventually

MIB = 1024 * 1024


def kept(site: Site) -> list[str]:
    return [delivery.id for delivery in site.store.deliveries.waiting()]


@contextlib.contextmanager
def connected(site: Site) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", site.server.port), timeout=PATIENCE) as connection:
        yield connection


def head(**headers: str | int) -> bytes:
    """The head of a request to the webhook."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(
        ["POST /webhooks/github HTTP/1.1", "host: loopback", *lines, "", ""]
    ).encode()


def answer(connection: socket.socket) -> bytes:
    """Read a response whose body is one line."""
    received = b""
    while not received.partition(b"\r\n\r\n")[2].endswith(b"\n"):
        part = connection.recv(65536)
        if not part:
            break
        received += part
    return received


def test_a_verified_delivery_is_stored_before_the_response(site: Site) -> None:
    response = site.deliver(b'{"action": "labeled"}')
    assert response.status_code == 202
    (delivery,) = site.store.deliveries.waiting()
    assert (delivery.id, delivery.event, delivery.body) == (
        "d-1",
        "issues",
        b'{"action": "labeled"}',
    )


def test_a_repeated_delivery_is_stored_once(site: Site) -> None:
    assert site.deliver().status_code == 202
    assert site.deliver().status_code == 200
    assert kept(site) == ["d-1"]


def test_a_delivery_that_failed_to_process_is_accepted_again(site: Site) -> None:
    assert site.deliver(b"{").status_code == 202
    site.inbox.process()
    assert kept(site) == []
    assert site.deliver(b"{").status_code == 202
    assert kept(site) == ["d-1"]


def test_both_secrets_are_accepted_during_rotation(site: Site) -> None:
    assert site.deliver(secret=SECRET).status_code == 202
    assert site.deliver(secret=OLD_SECRET, x_github_delivery="d-2").status_code == 202
    assert site.deliver(secret="another", x_github_delivery="d-3").status_code == 401


@pytest.mark.parametrize(
    "signature",
    ["", "sha256=", "sha256=" + "0" * 64, "sha1=" + "0" * 40, "sha256=" + "é" * 64, "0" * 64],
)
def test_a_delivery_without_a_valid_signature_is_refused(site: Site, signature: str) -> None:
    response = site.deliver(b"[" * 100_000, x_hub_signature_256=signature)
    assert response.status_code == 401
    assert "signature" in response.text
    assert kept(site) == []


def test_a_signature_for_another_body_is_refused(site: Site) -> None:
    good = signed(b"{}")["x-hub-signature-256"]
    assert site.deliver(b"{ }", x_hub_signature_256=good).status_code == 401


def test_without_a_secret_everything_is_refused(make_site: Callable[..., Site]) -> None:
    site = make_site(secrets=())
    response = site.deliver(secret="")
    assert response.status_code == 401
    assert "MERGEWRIGHT_WEBHOOK_SECRET" in response.text


def test_an_empty_secret_is_ignored(make_site: Callable[..., Site]) -> None:
    site = make_site(secrets=(SECRET, ""))
    assert site.deliver(secret="").status_code == 401


@pytest.mark.parametrize("body", [b'{"action": "labe', b"[" * 100_000, b"\x00\xff", b""])
def test_any_verified_body_is_stored_unchanged(site: Site, body: bytes) -> None:
    assert site.deliver(body).status_code == 202
    assert site.store.deliveries.waiting()[0].body == body


def test_the_form_content_type_is_refused_with_a_remedy(site: Site) -> None:
    response = site.deliver(content_type="application/x-www-form-urlencoded")
    assert response.status_code == 415
    assert "application/json" in response.text


def test_a_content_type_may_name_its_charset(site: Site) -> None:
    assert site.deliver(content_type="Application/JSON; charset=utf-8").status_code == 202


@pytest.mark.parametrize("header", ["x_github_event", "x_github_delivery"])
@pytest.mark.parametrize("value", ["", "a b", "x" * 101, "é", "<b>"])
def test_a_missing_or_invalid_header_is_a_bad_request(site: Site, header: str, value: str) -> None:
    response = site.deliver(b"{}", secret=SECRET, **{header: value})
    assert response.status_code == 400
    assert header.replace("_", "-") in response.text.lower()
    assert kept(site) == []


def test_only_posts_are_deliveries(site: Site) -> None:
    response = site.http.get("/webhooks/github")
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"


def test_a_declared_length_over_the_limit_is_refused_unread(site: Site) -> None:
    with connected(site) as connection:
        connection.sendall(head(content_length=26 * MIB, **signed(b"")))
        assert answer(connection).startswith(b"HTTP/1.1 413 ")


def test_a_body_over_the_limit_is_refused_with_a_reason(site: Site) -> None:
    assert site.deliver(b"x" * 26 * MIB).status_code == 413


def test_a_chunked_body_over_the_limit_is_refused_while_it_is_read(site: Site) -> None:
    chunk = b"%x\r\n" % MIB + b"x" * MIB + b"\r\n"
    with connected(site) as connection:
        connection.sendall(head(transfer_encoding="chunked", **signed(b"")))
        for _ in range(26):
            connection.sendall(chunk)
        assert answer(connection).startswith(b"HTTP/1.1 413 ")
    assert kept(site) == []


def test_a_body_of_the_maximum_size_is_accepted(site: Site) -> None:
    assert site.deliver(b"x" * 25 * MIB).status_code == 202


def test_a_chunked_delivery_is_accepted(site: Site) -> None:
    with connected(site) as connection:
        connection.sendall(head(transfer_encoding="chunked", **signed(b"{}")))
        connection.sendall(b"1\r\n{\r\n")
        connection.sendall(b"1\r\n}\r\n0\r\n\r\n")
        assert answer(connection).startswith(b"HTTP/1.1 202 ")
    assert site.store.deliveries.waiting()[0].body == b"{}"


def test_unverified_bytes_are_capped_over_all_connections(make_site: Callable[..., Site]) -> None:
    site = make_site(limits=WebhookLimits(unverified_bytes=MIB))
    with connected(site) as first, connected(site) as second:
        body = b"x" * MIB
        first.sendall(head(content_length=MIB, **signed(body)) + body[:-1])
        second.sendall(head(content_length=MIB, **signed(body, delivery="d-2")) + body[:-1])
        # Either of the two may exceed the limit.
        answered, _, _ = select.select([first, second], [], [], PATIENCE)
        refused = answer(answered[0])
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after" in refused
        other, name = (first, "d-1") if answered[0] is second else (second, "d-2")
        other.sendall(body[-1:])
        assert answer(other).startswith(b"HTTP/1.1 202 ")
    assert kept(site) == [name]


@pytest.mark.parametrize("secret", [SECRET, "a wrong one"])
def test_unverified_bytes_are_released_after_every_outcome(
    make_site: Callable[..., Site], secret: str
) -> None:
    site = make_site(limits=WebhookLimits(unverified_bytes=3 * MIB))
    with connected(site) as hangs_up:
        hangs_up.sendall(head(content_length=2 * MIB, **signed(b"")) + b"x" * MIB)
    statuses = {
        site.deliver(b"x" * 2 * MIB, secret=secret, x_github_delivery=f"d-{n}").status_code
        for n in range(4)
    }
    assert statuses <= {202, 401}


def test_an_instance_on_standby_refuses_deliveries_with_its_reason(site: Site) -> None:
    site.health = Health(scheduler=True, standby_reason="another one leads")
    response = site.deliver()
    assert response.status_code == 503
    assert "another one leads" in response.text
    assert kept(site) == []


def test_a_store_that_fails_makes_github_show_a_failure(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise StoreFailure("no space")

    monkeypatch.setattr(site.store.deliveries, "add", full)
    response = site.deliver(b"the body")
    assert response.status_code == 503
    assert "retry-after" in response.headers
    assert "delivery d-1 could not be stored" in caplog.text
    assert "no space" not in response.text
    assert "the body" not in caplog.text


def test_concurrent_deliveries_are_all_stored(site: Site) -> None:
    def send(number: int) -> int:
        return site.deliver(x_github_delivery=f"d-{number}").status_code

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(send, range(200))) == {202}
    assert len(site.store.deliveries.waiting(limit=1000)) == 200


def test_a_delivery_whose_client_disconnects_is_stored(site: Site) -> None:
    body = b"{}"
    with connected(site) as connection:
        connection.sendall(head(content_length=len(body), **signed(body)) + body)
    eventually(lambda: kept(site) == ["d-1"], "it is stored")


def test_the_signature_is_of_the_raw_bytes(site: Site) -> None:
    body = '{"title": "ünïcödé 🚀"}'.encode()
    proof = hmac.digest(SECRET.encode(), body, "sha256").hex()
    assert site.deliver(body, x_hub_signature_256=f"sha256={proof}").status_code == 202
