"""Renders the templates of the pages, with everything escaped."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bot.show.board import DEFAULT_SORT, BoardFilter
from bot.text import page_text
from lifecycle.model.status import Status

#: The CSS classes of statuses.
TONES: Final[Mapping[str, str]] = {
    Status.QUEUED: "calm",
    Status.SPAWNING: "busy",
    Status.WORKING: "busy",
    Status.PR_OPEN: "busy",
    Status.REVIEW_PENDING: "busy",
    Status.CI_FAILED: "bad",
    Status.CHANGES_REQUESTED: "warn",
    Status.APPROVED: "good",
    Status.MERGEABLE: "good",
    Status.NEEDS_INPUT: "warn",
    Status.STUCK: "bad",
    Status.PAUSED: "warn",
    Status.MERGED: "landed",
    Status.DONE: "landed",
    Status.ERRORED: "bad",
    Status.KILLED: "calm",
    Status.TERMINATED: "calm",
    Status.CLEANUP: "calm",
}
#: The pages that every page links to: the key of their shortcut, the address and the title.
PAGES: Final = (
    ("b", "/", "Sessions"),
    ("a", "/agents", "Agents"),
    ("p", "/projects", "Projects"),
    ("c", "/costs", "Costs"),
    ("d", "/deliveries", "Deliveries"),
    ("h", "/health", "Health"),
    ("i", "/api", "API"),
)
_CODE = re.compile("`([^`]+)`")


@cache
def templates() -> Callable[..., str]:
    """Return a function that renders a template by its name, with everything escaped."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,  # A running server keeps the templates that belong to its code.
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        time=_time, tone=TONES.__getitem__, board_url=_board_url, url=_url, pages=PAGES
    )
    environment.filters.update(
        sentence=_sentence,
        marked=_marked,
        counted=_counted,
        words=page_text.status_words,
        short=_short,
        usd=_usd,
        number=_number,
    )

    def render(name: str, **values: object) -> str:
        return environment.get_template(name).render(values)

    return render


def _time(at: datetime) -> Markup:
    """A time element; page.js replaces its text by the age and keeps it up to date."""
    shown = Markup('<time datetime="{}">{}</time>')
    return shown.format(at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M UTC"))


def _sentence(text: str) -> Markup:
    """A phrase as a sentence."""
    return _marked(page_text.sentence(text))


def _marked(text: str) -> Markup:
    """A text in which backticks become code, as in comments on GitHub."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - it was escaped


def _counted(count: int, noun: str) -> str:
    """A count with its noun in singular or plural."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _short(sha: str) -> str:
    """A commit as people write it."""
    return sha[:7]


def _usd(dollars: float) -> str:
    """An amount with its currency."""
    return f"${dollars:,.2f}"


def _number(count: float) -> str:
    """A whole number with its thousands apart."""
    return f"{count:,.0f}"


def _url(path: str, **fields: object) -> str:
    """An address with those fields in its query that are not empty."""
    wanted = {name.rstrip("_"): value for name, value in fields.items() if value}
    return f"{path}?{urlencode(wanted)}" if wanted else path


def _board_url(filter: BoardFilter, **changes: str) -> str:
    """The address of the board with this filter, but for some fields. It begins at a first page."""
    fields = {**msgspec.structs.asdict(filter), "after": "", **changes}
    if fields["sort"] == DEFAULT_SORT:
        fields["sort"] = ""
    return _url("/", **fields)
