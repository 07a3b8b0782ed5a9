"""Implements `mergewright replay`: repeats decisions, or shows what a webhook would cause."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from bot.cli import context
from bot.cli.options import PROBLEM, CliError
from bot.cli.screens import add, grid, report
from bot.decide.replay import ReplayedDecision, replay
from bot.intake.dry_run import Effect, effects, read_webhook
from bot.intake.inbox import Inbox
from bot.intake.salvage import UNDECODABLE
from bot.store import HistoryKind
from bot.text.deliveries import why_ignored
from lifecycle.model.text import counted, plain

_MOST = 2_000  #: Characters shown of a value; a message to an agent may contain whole logs.


def session(config: Path | None, session_id: str, *, as_json: bool) -> bool:
    """Replay a session's decisions, print the differences, and return whether there are none.

    Decisions whose facts have expired are skipped and counted in the output. Raises `CliError`.
    """
    with context.store(context.settings(config)) as store:
        name = context.session(store, session_id).id
        found = list(replay(store.decisions.replayable(name)))
        recorded = sum(row.kind is HistoryKind.DECISION for row in store.history.of(name, limit=-1))
    differing = [one for one in found if one.differences]
    report(
        {"session": name, "decisions": recorded, "replayed": len(found), "differ": differing},
        _decisions(name, found, differing, recorded - len(found)),
        as_json=as_json,
    )
    return not differing


def delivery(config: Path | None, file: Path, event: str, *, as_json: bool) -> None:
    """Print what the webhook in a file would cause. Raises `CliError`.

    `event` is the webhook's event; it may be empty if the file names it.
    """
    try:
        webhook = read_webhook(file.read_bytes(), event)
    except OSError as error:
        raise CliError(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise CliError(f"{file}: {error}") from None
    settings = context.settings(config)
    with context.store(settings) as store:
        try:
            policies = context.policies(settings, store)
            repositories = [project.repository for project in settings.projects.values()]
            slug = settings.github.app_slug
            inbox = Inbox(store, repositories, lambda: None, policies.is_listed, slug)
            found = effects(store, inbox, webhook)
            ignored = "" if found else inbox.why_ignored(webhook.event, webhook.body)
        except UNDECODABLE as error:
            message = f"{file}: not a payload of the event `{webhook.event}` ({error})"
            raise CliError(message, PROBLEM) from None
    value = {"event": webhook.event, "effects": found}
    report(value, _effects(webhook.event, found, why_ignored(ignored, "")), as_json=as_json)


def _decisions(
    session: str,
    found: Sequence[ReplayedDecision],
    differing: Sequence[ReplayedDecision],
    older: int,
) -> RenderableType:
    lines: list[RenderableType] = []
    for one in differing:
        table = grid()
        for difference in one.differences:
            add(table, difference.field, f"recorded {_json(difference.then)}")
            add(table, "", f"replayed {_json(difference.now)}")
        when = one.row.at.isoformat(sep=" ", timespec="seconds")
        lines += [Text(f"decision {one.row.seq} of {when} differs:", "bold"), table]
    verdict = (
        f"{len(differing)} {'differs' if len(differing) == 1 else 'differ'}"
        if differing
        else "no differences"
    )
    lines.append(Text(f"{session}: {counted(len(found), 'decision')} replayed, {verdict}"))
    if older:
        lines.append(
            Text(f"{counted(older, 'older decision')} cannot be replayed: the facts have expired")
        )
    return Group(*lines)


def _effects(event: str, found: Sequence[Effect], ignored: str) -> RenderableType:
    if not found:
        return Text(f"The webhook `{event}` would have no effect: {ignored}")
    table = grid()
    for effect in found:
        add(table, effect.session or "no session", effect.what)
    return Group(Text(f"The webhook `{event}` would cause:"), table)


def _json(value: Any) -> str:
    text = plain(msgspec.json.encode(value).decode())
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"
