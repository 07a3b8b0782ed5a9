"""The contract of every kind of notifier, with receivers of real HTTP and real mail."""

import logging
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from bot.demo.bot_process import free_port
from bot.notify.message import Notification, NotSent, Sender
from bot.notify.senders import NotifierUnavailable, sender_of
from bot.system.log import NOISY
from bot.text.notifications import Words
from config.tables import NotifierSettings
from tests.world.notification_receivers import (
    HttpReceiver,
    SmtpReceiver,
    http_receiver,
    smtp_receiver,
)

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
TOKEN, PASSWORD = "t0ken-of-the-receiver", "hunter2-of-the-mailbox"
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Route(NamedTuple):
    """A way to a receiver."""

    sender: Sender
    received: Callable[[], list[str]]  #: Everything a receiver got, a text for each message.
    refuse: Callable[[], None]  #: Have it take nothing.
    port: int


def sender(kind: str, url: str) -> Sender:
    settings = NotifierSettings(
        kind=kind,  # type: ignore[arg-type]
        url="URL",
        secret="SECRET" if kind == "webhook" else "",
    )
    return sender_of("team", settings, {"URL": url, "SECRET": KEY}, lambda: NOW)


def over_http(receiver: HttpReceiver, kind: str, url: str) -> Route:
    def received() -> list[str]:
        return [request.body.decode() for request in receiver.requests]

    def refuse() -> None:
        receiver.status = 503

    return Route(sender(kind, url), received, refuse, receiver.port)


def over_mail(receiver: SmtpReceiver) -> Route:
    def received() -> list[str]:
        return [f"{mail['subject']}\n{mail.get_content()}" for mail in receiver.mails]

    def refuse() -> None:
        receiver.refuses = True

    url = f"mailto://bot:{PASSWORD}@127.0.0.1:{receiver.port}/?mode=insecure"
    url += "&from=bot@example.org&to=team@example.org"
    return Route(sender("apprise", url), received, refuse, receiver.port)


@pytest.fixture(params=["webhook", "json", "ntfy", "mail"])
def route(request: pytest.FixtureRequest) -> Iterator[Route]:
    if request.param == "mail":
        with smtp_receiver() as mailbox:
            yield over_mail(mailbox)
        return
    with http_receiver() as receiver:
        at = f"127.0.0.1:{receiver.port}/{TOKEN}"
        if request.param == "webhook":
            yield over_http(receiver, "webhook", f"http://{at}")
        else:
            yield over_http(receiver, "apprise", f"{request.param}://{at}")


def message(text: str = "It asks: blue or green?", priority: str = "action") -> Notification:
    words = Words("widgets-12 needs you", f"{text}\n\nAnswer: https://bot.example/")
    return Notification.of("session.needs_person", NOW, priority, words, {"text": words.text})


@pytest.mark.parametrize("priority", ["info", "warning", "action", "urgent"])
def test_a_message_arrives_whole(route: Route, priority: str) -> None:
    route.sender.send(message("It asks: blue or <b>green</b>?\n1. Blä", priority), repeated=False)
    (got,) = route.received()
    got = got.replace("\\n", "\n").replace("\\u00e4", "ä")
    assert "It asks: blue or <b>green</b>?\n1. Blä\n\nAnswer: https://bot.example/" in got


def test_a_receiver_that_refuses_is_reported_without_the_url(route: Route) -> None:
    route.refuse()
    with pytest.raises(NotSent) as failure:
        route.sender.send(message(), repeated=False)
    assert str(failure.value)
    assert TOKEN not in str(failure.value)
    assert PASSWORD not in str(failure.value)
    assert route.received() == []


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("webhook", f"http://{{}}/{TOKEN}"),
        ("apprise", f"json://{{}}/{TOKEN}"),
        ("apprise", f"mailto://bot:{PASSWORD}@{{}}/?mode=insecure&to=team@example.org"),
    ],
)
def test_a_receiver_that_is_not_there_is_reported_without_the_url(kind: str, url: str) -> None:
    gone = sender(kind, url.format(f"127.0.0.1:{free_port()}"))
    with pytest.raises(NotSent) as failure:
        gone.send(message(), repeated=False)
    assert str(failure.value)
    assert TOKEN not in str(failure.value)
    assert PASSWORD not in str(failure.value)


def test_several_threads_send_at_once(route: Route) -> None:
    texts = [f"number {number}." for number in range(8)]
    threads = [
        threading.Thread(
            target=route.sender.send, args=(message(text),), kwargs={"repeated": False}
        )
        for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    got = route.received()
    assert len(got) == len(texts)
    assert all(any(text in one for one in got) for text in texts)


def test_the_receivers_address_is_known(route: Route) -> None:
    assert route.sender.address() == ("127.0.0.1", route.port)


@pytest.mark.parametrize("host", ["-ü-.x", "xn--a.invalid"])
def test_a_url_without_a_valid_host_is_refused(host: str) -> None:
    unusable = sender("webhook", f"https://{host}/")
    with pytest.raises(NotSent):
        unusable.address()
    with pytest.raises(NotSent):
        unusable.send(message(), repeated=False)


class Kept(logging.Handler):
    """Keeps what the bot's log would get."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def test_nothing_is_printed_or_logged(
    route: Route,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    # pytest's own log would also have the lines that are kept from the bot's.
    kept = Kept()
    monkeypatch.setattr(logging.getLogger(), "handlers", [kept])
    for library, level in NOISY.items():
        caplog.set_level(level, library)
    caplog.set_level(logging.DEBUG)
    route.sender.send(message(), repeated=False)
    route.refuse()
    with pytest.raises(NotSent):
        route.sender.send(message(), repeated=False)
    assert (kept.lines, capfd.readouterr()) == ([], ("", ""))


@pytest.mark.parametrize("url", ["ntfy:/x", "nothing", "wat://host/path"])
def test_a_url_that_apprise_does_not_know_is_reported(url: str) -> None:
    unknown = sender("apprise", url)
    for do in (unknown.address, lambda: unknown.send(message(), repeated=False)):
        with pytest.raises(NotSent, match="Apprise does not understand the URL"):
            do()


def test_services_in_the_cloud_have_no_address_to_try() -> None:
    assert sender("apprise", "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js").address() is None


def test_a_repetition_says_that_it_may_be_one_where_no_receiver_can_tell() -> None:
    with http_receiver() as receiver:
        over_http(receiver, "apprise", f"json://127.0.0.1:{receiver.port}").sender.send(
            message(), repeated=True
        )
    (request,) = receiver.requests
    assert request.json["message"].startswith("(You may have this message already")


def test_the_missing_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.notify.apprise_sender.find_spec", lambda _: None)
    with pytest.raises(NotifierUnavailable, match=r"notify\.team .*'mergewright\[notify\]'"):
        sender("apprise", "json://127.0.0.1")
