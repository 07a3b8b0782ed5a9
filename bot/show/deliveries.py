"""Webhook deliveries, each with its effects."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from bot.show.session_detail import HistoryEntry, history_entry
from bot.store import DeliveryEffect, DeliveryRecord, Store
from bot.text import page_text
from bot.text.deliveries import command_words, refresh_words, why_ignored

#: The most subsequent events that are shown, and the most sessions with such events.
_EVENTS, _SESSIONS = 20, 5


class OutcomeEntry(Struct, frozen=True, kw_only=True):
    """One effect of a delivery."""

    text: Annotated[str, Meta(description="What it is, in words.")]
    session: Annotated[str, Meta(description="The session that it concerns; if empty, none yet.")]


class DeliveryEntry(Struct, frozen=True, kw_only=True):
    """A delivery in a list."""

    id: Annotated[str, Meta(description="GitHub's ID, from the header `X-GitHub-Delivery`.")]
    event: Annotated[str, Meta(examples=["issue_comment"])]
    at: datetime
    state: Annotated[str, Meta(description="`waiting`, `done`, `failed` or `ignored`.")]
    repository: Annotated[
        str, Meta(description="The repository that it names; empty if it names none or several.")
    ]
    text: Annotated[str, Meta(description="Why it failed or was ignored; empty otherwise.")]
    outcomes: tuple[OutcomeEntry, ...]
    done_at: Annotated[datetime | None, Meta(description="When it was processed.")]


class DeliveryDetail(Struct, frozen=True, kw_only=True):
    """A delivery with what happened after it in the sessions that it concerns."""

    delivery: DeliveryEntry
    next: Annotated[
        tuple[HistoryEntry, ...],
        Meta(
            description="What happened after this delivery in the sessions that it concerns: at"
            " most 20 events, oldest first."
        ),
    ]


def delivery_entries(store: Store, records: Iterable[DeliveryRecord]) -> list[DeliveryEntry]:
    """Return deliveries with the sessions that they concern. Reads the sessions in one query."""
    rows = list(records)
    named = [(each.repository, each.subject) for one in rows for each in one.effects]
    sessions = store.sessions.of_subjects(named) if named else {}

    def outcome(effect: DeliveryEffect) -> OutcomeEntry:
        words = (
            command_words(effect.actor, effect.command, effect.subject)
            if effect.command
            else refresh_words(effect.repository, effect.subject)
        )
        session = sessions.get((effect.repository, effect.subject), "")
        return OutcomeEntry(text=page_text.line(words), session=session)

    return [
        DeliveryEntry(
            id=one.id,
            event=one.event,
            at=one.at,
            state=_state(one),
            repository=page_text.line(one.repository),
            text=page_text.line(_text(one)),
            outcomes=tuple(map(outcome, one.effects)),
            done_at=one.done_at,
        )
        for one in rows
    ]


def delivery_detail(store: Store, record: DeliveryRecord) -> DeliveryDetail:
    """Return a delivery with what happened after it in its sessions."""
    (entry,) = delivery_entries(store, [record])
    sessions = list(dict.fromkeys(one.session for one in entry.outcomes if one.session))
    events = store.history.since(sessions[:_SESSIONS], record.at, _EVENTS) if sessions else []
    return DeliveryDetail(delivery=entry, next=tuple(map(history_entry, events)))


def _state(one: DeliveryRecord) -> str:
    if one.state == "new":
        return "waiting"
    return "ignored" if one.ignored else one.state


def _text(one: DeliveryRecord) -> str:
    if one.state == "failed":
        return one.error
    return why_ignored(one.ignored, one.repository) if one.ignored else ""
