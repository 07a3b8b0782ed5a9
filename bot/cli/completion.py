"""Completes session IDs and names at shells, from this machine's configuration and database.

The script for zsh evaluates its input, so only plain names are offered, and no text that others
wrote, such as titles. The names have no descriptions, because Typer renders these slowly.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import typer

if TYPE_CHECKING:
    from config.settings import Settings

_Names = Callable[["Settings"], Iterator[str]]
_Complete = Callable[[typer.Context, str], list[str]]

#: Texts that shells read as one word without quotes.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
#: How many session IDs are read; of these, those that match the typed text are offered.
_MOST = 200
#: How long to wait while another process locks the database, in seconds.
_BUSY_SECONDS = 0.05


def _completion(names: _Names) -> _Complete:
    """Return a function that offers the names that `names` reads from the settings.

    If the names cannot be read, the function offers nothing.
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            found = list(names(_settings(ctx.params)))
        except Exception:  # noqa: BLE001  # It would be printed into the line that is being typed.
            return []
        plain = (one for one in found if one.startswith(incomplete) and _PLAIN.fullmatch(one))
        return list(dict.fromkeys(plain))

    return complete


def _settings(params: dict[str, Any]) -> "Settings":
    from bot.setup.files import CONFIGURATION
    from config.load import load_settings

    return load_settings(Path(params.get("config") or CONFIGURATION))


def _sessions(settings: "Settings") -> Iterator[str]:
    """Yield the IDs of sessions that have not ended, then of ended ones, each newest first."""
    import sqlite3

    from config.settings import DATABASE

    # Not by `bot.store` and `bot.system.locations`, which take too long to import here.
    file = f"file:{quote(str(settings.data / DATABASE))}?mode=ro"
    order = "SELECT id FROM sessions ORDER BY ended IS NOT NULL, created DESC LIMIT ?"
    with closing(sqlite3.connect(file, timeout=_BUSY_SECONDS, uri=True)) as database:
        yield from (str(row[0]) for row in database.execute(order, (_MOST,)))


def _statuses(_: "Settings") -> Iterator[str]:
    from lifecycle.model.status import Status

    return map(str, Status)


session_ids = _completion(_sessions)
projects = _completion(lambda settings: iter(settings.projects))
agents = _completion(lambda settings: iter([*settings.agents, *settings.agent_types]))
agent_types = _completion(lambda settings: iter(settings.agent_types))
statuses = _completion(_statuses)
