"""Defines messages as they are stored, and the interface that sends them."""

from datetime import datetime
from typing import Any, Protocol
from uuid import uuid4

import msgspec
from msgspec import Struct, field

from bot.text.notifications import Words


class NotSent(Exception):
    """A message was not delivered. The text says why, without secrets."""

    def __init__(self, why: str, *, perhaps: bool = False) -> None:
        """`perhaps` says that the message may have arrived nevertheless, as after a time-out."""
        super().__init__(why)
        self.perhaps = perhaps


class Notification(Struct, frozen=True, kw_only=True):
    """A message for one notifier. It is the same at every attempt."""

    type: str  #: The event's name in webhooks, such as `session.needs_person`.
    at: datetime  #: When the session ended, the digest was due, or the bot found the cause.
    priority: str
    title: str
    text: str
    data: dict[str, Any]  #: What the text says, for programs.
    #: Receivers recognise a repetition by this id.
    id: str = field(default_factory=lambda: f"msg_{uuid4().hex}")

    @classmethod
    def of(
        cls, type: str, at: datetime, priority: str, words: Words, data: object
    ) -> "Notification":
        """Return a new message. `data`, a struct or mapping, is converted to JSON types."""
        return cls(
            type=type,
            at=at,
            priority=priority,
            title=words.title,
            text=words.text,
            data={"priority": priority, **msgspec.to_builtins(data)},
        )

    def encoded(self) -> str:
        """Return the message as JSON for the database."""
        return msgspec.json.encode(self).decode()


decode_notification = msgspec.json.Decoder(Notification).decode


class Sender(Protocol):
    """Sends messages to one receiver."""

    def send(self, message: Notification, *, repeated: bool) -> None:
        """Send a message; return once the receiver has accepted it. Raises `NotSent`.

        `repeated` says that the receiver may have the message already, because an earlier attempt
        was interrupted or timed out.
        """

    def address(self) -> tuple[str, int] | None:
        """Return the receiver's host and port for a test connection; None unless both are known.

        Raises `NotSent` if the URL cannot be used.
        """
