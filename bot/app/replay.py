"""What was, once more: the decisions of a session made again, and a webhook read again."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from bot.decide.policies import Policies
from bot.intake.inbox import Inbox
from bot.store import HistoryRow, RefreshRequest, ReplayableDecision, Store
from lifecycle.decide import decide

#: What the history itself says of a decision; the rest was kept beside the facts.
_TOLD = ("status", "reason", "because", "blockers")


class Difference(Struct, frozen=True, kw_only=True):
    """One field of a decision that does not come out as it was written down."""

    field: str
    then: Any
    now: Any


class Replayed(Struct, frozen=True, kw_only=True):
    """One decision of the history, made again."""

    row: HistoryRow
    differences: tuple[Difference, ...]  #: Empty: it comes out the same.


def replay(decisions: Iterable[ReplayableDecision]) -> Iterator[Replayed]:
    """Judge the same facts under the same policy at the same instant once more."""
    for kept in decisions:
        again = decide(kept.facts, kept.policy, kept.row.at)
        now = msgspec.json.decode(msgspec.json.encode(again))
        then = {**kept.decision, **{name: kept.row.data.get(name) for name in _TOLD}}
        differences = [
            Difference(field=name, then=value, now=now.get(name))
            for name, value in then.items()
            if now.get(name) != value
        ]
        # It tells the new ones alone; all of them are beside the facts.
        told, keys = kept.row.data.get("actions", []), [action.key for action in again.actions]
        if not set(told) <= set(keys):
            differences.append(Difference(field="actions told", then=told, now=keys))
        yield Replayed(row=kept.row, differences=tuple(differences))


class Recording(Struct, frozen=True, kw_only=True):
    """A webhook that somebody kept in a file."""

    event: str
    body: bytes


class _Sent(Struct):
    headers: dict[str, str] | None = None
    payload: dict[str, Any] | str | None = None
    body: dict[str, Any] | str | None = None


class _Record(_Sent):
    event: str = ""
    request: _Sent | None = None


class Effect(Struct, frozen=True, kw_only=True):
    """One thing a webhook would cause, and the session that it concerns."""

    what: str
    session: str  #: Empty: none that is known.


def recording(text: bytes, event: str) -> Recording:
    """A webhook from a file: its payload alone, or GitHub's own record of a delivery around it.

    `event` names it where the file does not. Raises `ValueError`, which says what is missing.
    """
    try:
        found = msgspec.json.decode(text, type=_Record)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"this is no payload and no record of a delivery ({error})") from error
    sent = found.request or found
    payload = sent.payload or sent.body
    headers = {name.lower(): value for name, value in (sent.headers or {}).items()}
    event = event or headers.get("x-github-event") or (found.event if payload else "")
    if not event:
        raise ValueError("it does not say which event it is: name it with --event")
    body = msgspec.json.encode(payload) if isinstance(payload, dict) else text
    return Recording(event=event, body=body)


def effects(
    store: Store, policies: Policies, webhook: Recording, app_slug: str = ""
) -> list[Effect]:
    """What a webhook would cause if it came now; nothing is written down.

    `app_slug`: what people call the bot besides its own name. Raises whatever a body that is no
    such event raises.
    """
    repositories = frozenset(policies.repositories.values())
    inbox = Inbox(store, repositories, lambda: None, policies.lists_bot, app_slug)
    refreshes, commands = inbox.meaning(webhook.event, webhook.body)
    effects = [
        Effect(
            what=f"look again at {refresh.repository} {refresh.subject}",
            session=_session_of(store, refresh) or "",
        )
        for refresh in refreshes
    ]
    for command in commands:
        pull = store.sessions.of_pull(command.repository, command.number)
        session = pull or store.sessions.of_issue(command.repository, command.number)
        what = f"@{command.actor} asks: {command.kind} {command.text}".rstrip()
        effects.append(Effect(what=what, session=session or ""))
    return effects


def _session_of(store: Store, refresh: RefreshRequest) -> str | None:
    kind, _, name = refresh.subject.partition(":")
    if kind == "issue":
        return store.sessions.of_issue(refresh.repository, int(name))
    if kind == "pull":
        return store.sessions.of_pull(refresh.repository, int(name))
    if kind == "branch":
        return store.sessions.of_branch(refresh.repository, name)
    if kind == "sha":
        return store.sessions.of_sha(refresh.repository, name)
    return None  # It is about a whole repository.
