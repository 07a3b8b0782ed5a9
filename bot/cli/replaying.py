"""What `mergewright replay` does and says."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from bot.app.replay import Effect, Recording, Replayed, effects, recording, replay
from bot.cli import context
from bot.cli.refused import PROBLEM, CliError
from bot.cli.screens import add, grid, show, show_json
from bot.decide.policies import Policies
from bot.store import HistoryKind
from lifecycle.model.text import plain

_MOST = 2_000  #: Characters of a value that are shown; a message to an agent may hold whole logs.


def session(config: Path | None, session_id: str, *, as_json: bool) -> bool:
    """Make a session's decisions again and say how they come out; whether all do as before."""
    with context.store(context.settings(config)) as store:
        name = context.session(store, session_id).id
        found = list(replay(store.judgements.of(name)))
        told = sum(row.kind is HistoryKind.DECISION for row in store.history.of(name, limit=-1))
    differing = [one for one in found if one.differences]
    if as_json:
        show_json({"session": name, "decisions": told, "replayed": len(found), "differ": differing})
    else:
        show(_decisions(name, found, differing, told - len(found)))
    return not differing


def delivery(config: Path | None, file: Path, event: str, *, as_json: bool) -> None:
    """Say what a recorded webhook would cause. Raises `CliError`."""
    webhook = _recorded(file, event)
    settings = context.settings(config)
    with context.store(settings) as store:
        try:
            policies = Policies(store, settings.projects, settings.policy)
            found = effects(store, policies, webhook, settings.github.app_slug)
        except (msgspec.DecodeError, RecursionError) as error:
            said = f"{file}: this is no payload of `{webhook.event}` ({error})"
            raise CliError(said, PROBLEM) from None
    if as_json:
        show_json({"event": webhook.event, "effects": found})
    else:
        show(_effects(webhook.event, found))


def _recorded(file: Path, event: str) -> Recording:
    try:
        return recording(file.read_bytes(), event)
    except OSError as error:
        raise CliError(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise CliError(f"{file}: {error}") from None


def _decisions(
    session: str, found: Sequence[Replayed], differing: Sequence[Replayed], older: int
) -> RenderableType:
    lines: list[RenderableType] = []
    for one in differing:
        table = grid()
        for difference in one.differences:
            add(table, difference.field, f"then {_json(difference.then)}")
            add(table, "", f"now  {_json(difference.now)}")
        when = one.row.at.isoformat(sep=" ", timespec="seconds")
        lines += [Text(f"decision {one.row.seq} of {when} comes out otherwise:", "bold"), table]
    verdict = f"{len(differing)} come out otherwise" if differing else "all come out the same"
    lines.append(Text(f"{session}: {len(found)} decisions made again, {verdict}"))
    if older:
        lines.append(Text(f"{older} more cannot be: what they were made from is not kept"))
    return Group(*lines)


def _effects(event: str, found: Sequence[Effect]) -> RenderableType:
    if not found:
        return Text(f"{event} would cause nothing: it is about no repository or person here")
    table = grid()
    for effect in found:
        add(table, effect.session or "no session", effect.what)
    return Group(Text(f"{event} would cause:"), table)


def _json(value: Any) -> str:
    text = plain(msgspec.json.encode(value).decode())
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"
