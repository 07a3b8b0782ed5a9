"""Sends messages with the library Apprise: to chats, mail and phones, each given by a URL.

https://github.com/caronc/apprise: pure Python, two-clause BSD license. It is an optional extra,
because few people need it, and loading its 180 services takes half a second and 20 MB of memory,
besides 14 MB on disk. It is loaded at its first use. Each message gets an Apprise object of its
own, so threads share only Apprise's registry of services. Apprise sets the time limits, which
differ between services.
"""

import logging
from importlib.util import find_spec
from typing import Any

from bot.notify.message import Notification, NotSent
from bot.system.redaction import Redaction
from bot.text.notifications import perhaps_repeated
from config.notifier_secrets import secrets_in

#: For each priority, Apprise's type of message, which sets the colour.
_COLOURS = {"urgent": "failure", "action": "warning", "warning": "warning", "info": "info"}


def is_installed() -> bool:
    """Whether the library Apprise is installed."""
    return find_spec("apprise") is not None


class AppriseSender:
    """Sends to one URL.

    A repeated message says so in its text, because receivers cannot recognise repetitions.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._redact = Redaction(secrets_in(url))  # Some errors name what a token is for.

    def send(self, message: Notification, *, repeated: bool) -> None:
        """Send a message. `repeated` is as in `Sender.send`. Raises `NotSent`."""
        library, service = self._service()
        sender = library.Apprise()
        sender.add(service)
        result = sender.notify(
            title=message.title,
            body=perhaps_repeated(message.text) if repeated else message.text,
            body_format=library.NotifyFormat.TEXT,
            notify_type=_COLOURS[message.priority],
        )
        if not result:
            said = [log.message for one in result for attempt in one for log in attempt.logs]
            why = "; ".join(dict.fromkeys(said)) or "the receiver did not accept it"
            raise NotSent(self._redact(why))

    def address(self) -> tuple[str, int] | None:
        """Return the host and port for a test connection; None unless both are known.

        They are known for mail, and if the URL has both. Raises `NotSent`.
        """
        _, service = self._service()
        host, port = getattr(service, "smtp_host", "") or service.host, service.port
        return (host, port) if host and port else None

    def _service(self) -> tuple[Any, Any]:
        """Return the module `apprise` and its object for the URL. Raises `NotSent`."""
        logger = logging.getLogger("apprise")
        # Its log lines contain URLs, so they are not logged by the bot.
        logger.propagate = False
        logger.setLevel(logging.WARNING)
        import apprise

        asset = apprise.AppriseAsset(
            app_id="Mergewright",
            app_desc="Mergewright",
            async_mode=False,
            storage_mode=apprise.PersistentStoreMode.MEMORY,
        )
        service = apprise.Apprise.instantiate(self._url, asset=asset)
        if service is None:
            raise NotSent(
                "Apprise does not understand the URL: compare it with Apprise's list of services"
            )
        return apprise, service
