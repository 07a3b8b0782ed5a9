"""Creates a notifier's sender, according to its setting `kind`."""

import sys
from collections.abc import Callable, Mapping
from datetime import datetime

from bot.notify import apprise_sender
from bot.notify.apprise_sender import AppriseSender
from bot.notify.message import Sender
from bot.notify.webhook import WebhookSender
from config.tables import NotifierSettings


class NotifierUnavailable(Exception):
    """A configured notifier cannot send; the message says what to do."""


def sender_of(
    name: str,
    settings: NotifierSettings,
    secrets: Mapping[str, str],
    clock: Callable[[], datetime],
) -> Sender:
    """Return the sender of a notifier. `secrets` has the values of environment variables by name.

    Raises `NotifierUnavailable`.
    """
    if settings.kind == "webhook":
        return WebhookSender(secrets[settings.url], secrets[settings.secret], clock)
    if not apprise_sender.is_installed():
        raise NotifierUnavailable(
            f"notify.{name} needs a part that is not installed: {sys.executable} -m pip install"
            " 'mergewright[notify]'"
        )
    return AppriseSender(secrets[settings.url])
