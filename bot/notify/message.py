"""A message as it is stored, and how a notifier sends one."""

from datetime import datetime
from typing import Any, Protocol
from uuid import uuid4

import msgspec
from msgspec import Struct, field

from bot.text.notifications import Words


class NotSent(Exception):
    """A message was not delivered; the text says why, and contains no URL."""


class Notification(Struct, frozen=True, kw_only=True):
    """A message for one notifier, the same at every attempt."""

    type: str  #: The event, as webhooks name it: `session.needs_person`.
    at: datetime  #: When its cause was seen.
    priority: str
    title: str
    text: str
    data: dict[str, Any]  #: The same as the text, for programs.
    #: By which receivers recognise a repetition.
    id: str = field(default_factory=lambda: f"msg_{uuid4().hex}")

    @classmethod
    def of(
        cls, type: str, at: datetime, priority: str, words: Words, data: object
    ) -> "Notification":
        """Return a new message. `data` is a struct or a mapping of what it is about."""
        return cls(
            type=type,
            at=at,
            priority=priority,
            title=words.title,
            text=words.text,
            data={"priority": priority, **msgspec.to_builtins(data)},
        )

    def encoded(self) -> str:
        """Return the message as the database holds it."""
        return msgspec.json.encode(self).decode()


decode_notification = msgspec.json.Decoder(Notification).decode


class Sender(Protocol):
    """Sends messages to one receiver."""

    def send(self, message: Notification, *, repeated: bool) -> None:
        """Send a message; return once the receiver has it. Raises `NotSent`.

        `repeated`: whether an earlier attempt was interrupted, after which it may have arrived.
        """

    def address(self) -> tuple[str, int] | None:
        """Return host and port of the receiver, to be tried; None if the URL does not tell.

        Raises `NotSent` if the URL cannot be used.
        """
