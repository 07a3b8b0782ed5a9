"""Signed webhooks, checked as receivers check them."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from bot.notify.message import Notification, NotSent
from bot.notify.webhook import WebhookSender, signature
from bot.text.notifications import Words
from config.notifier_secrets import signing_keys
from tests.world.notification_receivers import HttpReceiver, Request, http_receiver

NOW = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
OLD, NEW = (b64encode(bytes([number]) * 32).decode() for number in (1, 2))


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with http_receiver() as receiver:
        yield receiver


def message() -> Notification:
    data = {"session": "widgets-12", "choices": ["Blä", "green"]}
    return Notification.of("session.needs_person", NOW, "action", Words("title", "text"), data)


def is_signed(request: Request, secret: str) -> bool:
    """Whether one of a request's signatures is by this secret."""
    head = request.headers
    signed = f"{head['webhook-id']}.{head['webhook-timestamp']}.".encode() + request.body
    made = b64encode(hmac.digest(b64decode(secret), signed, hashlib.sha256)).decode()
    return f"v1,{made}" in head["webhook-signature"].split(" ")


def test_the_specifications_example_is_signed_as_there() -> None:
    keys = signing_keys("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = signature(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_webhook_says_what_happened_and_when(receiver: HttpReceiver) -> None:
    sent = message()
    WebhookSender(f"{receiver.url}/hook", NEW, lambda: NOW).send(sent, repeated=False)
    (request,) = receiver.requests
    assert request.path == "/hook"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["webhook-id"] == sent.id
    assert request.headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    assert is_signed(request, NEW)
    assert not is_signed(request, OLD)
    assert request.json == {
        "type": "session.needs_person",
        "timestamp": "2030-01-02T03:04:05.678901Z",
        "data": {"priority": "action", "session": "widgets-12", "choices": ["Blä", "green"]},
    }


def test_a_repetition_has_the_same_id_and_body(receiver: HttpReceiver) -> None:
    times = iter([NOW, NOW.replace(hour=5)])
    sender, sent = WebhookSender(receiver.url, NEW, lambda: next(times)), message()
    for repeated in (False, True):
        sender.send(sent, repeated=repeated)
    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]
    assert is_signed(second, NEW)


def test_while_the_secret_is_replaced_both_sign(receiver: HttpReceiver) -> None:
    WebhookSender(receiver.url, f"{NEW} whsec_{OLD}", lambda: NOW).send(message(), repeated=False)
    (request,) = receiver.requests
    assert is_signed(request, NEW)
    assert is_signed(request, OLD)


@pytest.mark.parametrize("status", [301, 307, 400, 410, 429, 500])
def test_every_other_status_than_success_is_a_failure(receiver: HttpReceiver, status: int) -> None:
    receiver.status = status
    with http_receiver() as elsewhere:
        receiver.headers = {"location": elsewhere.url}
        with pytest.raises(NotSent, match=f"^the receiver answers {status}$"):
            WebhookSender(receiver.url, NEW, lambda: NOW).send(message(), repeated=False)
    assert elsewhere.requests == [], "redirects are not followed"


def test_a_receiver_that_never_answers_is_given_up(
    receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.notify.webhook._SECONDS", 0.05)
    receiver.answers.clear()
    with pytest.raises(NotSent, match="timed out") as failure:
        WebhookSender(receiver.url, NEW, lambda: NOW).send(message(), repeated=False)
    assert failure.value.perhaps


def test_a_message_to_a_receiver_that_is_not_there_has_not_arrived() -> None:
    with http_receiver() as gone:
        url = gone.url
    with pytest.raises(NotSent) as failure:
        WebhookSender(url, NEW, lambda: NOW).send(message(), repeated=False)
    assert not failure.value.perhaps


@pytest.mark.parametrize(
    "secret", ["", " ", "short", "whsec_c2hvcnQ=", "no base 64 at all!", OLD[:-1]]
)
def test_what_is_no_secret_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match=r"24 to 64 bytes|not Base64"):
        signing_keys(secret)
