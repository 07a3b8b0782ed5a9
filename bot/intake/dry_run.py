"""Determines the effects of a stored webhook, or of one in a file, and records nothing."""

from typing import Any

import msgspec
from msgspec import Struct

from bot.intake.authorize import session_for
from bot.intake.inbox import Inbox
from bot.intake.salvage import UNDECODABLE
from bot.store import Delivery, Store
from bot.text.deliveries import refresh_words, why_ignored


class WebhookFile(Struct, frozen=True, kw_only=True):
    """A webhook that was read from a file or from the store."""

    event: str
    body: bytes


class _Sent(Struct):
    headers: dict[str, str] | None = None
    payload: dict[str, Any] | str | None = None
    body: dict[str, Any] | str | None = None


class _Record(_Sent):
    event: str = ""
    request: _Sent | None = None


class Effect(Struct, frozen=True):
    """A refresh or command that a webhook would cause."""

    what: str  #: The effect, in words.
    session: str  #: The id of the session that it concerns; empty if none is known.


class DryRun(Struct, frozen=True, kw_only=True):
    """The effects that a stored webhook would have now, or the reason why it has none."""

    effects: tuple[Effect, ...] = ()
    ignored: str = ""  #: Why there are no effects; empty if there are some or an `error`.
    error: str = ""  #: Why the webhook cannot be decoded; if empty, it can.


def read_webhook(text: bytes, event: str) -> WebhookFile:
    """Parse a payload, or GitHub's record of a delivery, which contains the payload.

    If `event` is empty, it is taken from the file; otherwise it overrides the file's event. The
    format of a record is described at
    https://docs.github.com/en/rest/repos/webhooks#get-a-delivery-for-a-repository-webhook

    Raises `ValueError`, whose message says what is wrong or missing.
    """
    try:
        found = msgspec.json.decode(text, type=_Record)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"this is neither a payload nor a recorded delivery ({error})") from error
    sent = found.request or found
    payload = sent.payload or sent.body
    headers = {name.lower(): value for name, value in (sent.headers or {}).items()}
    event = event or headers.get("x-github-event") or (found.event if payload else "")
    if not event:
        raise ValueError("the file does not name its event: use --event")
    body = msgspec.json.encode(payload) if isinstance(payload, dict) else text
    return WebhookFile(event=event, body=body)


def dry_run(store: Store, inbox: Inbox, delivery: Delivery, repository: str) -> DryRun:
    """Return the effects that a stored webhook would have now, or why it has none.

    `repository` is the repository that the webhook names, or empty; the reason may mention it.
    """
    webhook = WebhookFile(event=delivery.event, body=delivery.body)
    try:
        if found := effects(store, inbox, webhook):
            return DryRun(effects=tuple(found))
        reason = inbox.why_ignored(webhook.event, webhook.body)
    except UNDECODABLE as error:
        return DryRun(error=f"{type(error).__name__}: {error}")
    return DryRun(ignored=why_ignored(reason, repository))


def effects(store: Store, inbox: Inbox, webhook: WebhookFile) -> list[Effect]:
    """Return the refreshes and commands that a webhook would cause now.

    Raises the exceptions of `parse_event` if the body is not a payload of the event.
    """
    refreshes, commands = inbox.interpret(webhook.event, webhook.body)
    looks = [
        Effect(
            refresh_words(refresh.repository, refresh.subject),
            store.sessions.of_subject(refresh.repository, refresh.subject) or "",
        )
        for refresh in refreshes
    ]
    asks = [
        Effect(
            f"@{command.actor} asks: {command.kind} {command.text}".rstrip(),
            session.id if (session := session_for(store, command)) else "",
        )
        for command in commands
    ]
    return [*looks, *asks]
