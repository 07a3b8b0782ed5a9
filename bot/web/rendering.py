"""Renders the templates of the pages, with all values escaped."""

import re
from collections.abc import Callable, Mapping, Sequence
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
from bot.text.next_action import BUTTONS
from bot.web.reach import Reach
from lifecycle.model.names import FREEZES
from lifecycle.model.status import Status, status_words
from lifecycle.model.text import counted
from lifecycle.read.sentences import person

#: The CSS class of each status.
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
_HEALTH: Final = "/health"
#: The pages in the navigation: the key of the keyboard shortcut, the path and the title.
PAGES: Final[Sequence[tuple[str, str, str]]] = (
    ("b", "/", "Sessions"),
    ("a", "/agents", "Agents"),
    ("p", "/projects", "Projects"),
    ("c", "/costs", "Costs"),
    ("d", "/deliveries", "Deliveries"),
    ("h", _HEALTH, "Health"),
    ("i", "/api", "API"),
)
_CODE = re.compile("`([^`]+)`")


@cache
def templates() -> Callable[..., str]:
    """Return a function that takes a template's file name and values, and renders the template."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,  # A running server keeps the templates that belong to its code.
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        time=_time,
        tone=TONES.__getitem__,
        board_url=_board_url,
        url=_url,
        stop=BUTTONS["stop"],
        freezes=FREEZES,
    )
    environment.filters.update(
        sentence=_sentence,
        marked=_marked,
        counted=counted,
        words=status_words,
        activity=page_text.activity_words,
        merge=page_text.merge_words,
        review=page_text.review_words,
        person=person,
        outcome=page_text.outcome_words,
        short=_short,
        usd=_usd,
        number=_number,
        lasting=_lasting,
    )

    def render(name: str, **values: object) -> str:
        return environment.get_template(name).render(values)

    return render


def navigation(reach: Reach) -> Sequence[tuple[str, str, str]]:
    """Return those of `PAGES` that a visitor may open.

    The page of the bot's health is only for visitors who see all projects.
    """
    return PAGES if reach.everywhere() else [one for one in PAGES if one[1] != _HEALTH]


def _time(at: datetime) -> Markup:
    """Return a `time` element. page.js replaces its text by the age and keeps that up to date."""
    shown = Markup('<time datetime="{}">{}</time>')
    return shown.format(at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M UTC"))


def _sentence(text: str) -> Markup:
    """Return a phrase as a sentence in HTML. Text between backticks becomes code."""
    return _marked(page_text.sentence(text))


def _marked(text: str) -> Markup:
    """Return a text as HTML. As on GitHub, text between backticks becomes code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - it was escaped


def _short(sha: str) -> str:
    """Return the first seven digits of a commit."""
    return sha[:7]


def _usd(dollars: float) -> str:
    """Return an amount in dollars, such as `$1,234.50`."""
    return f"${dollars:,.2f}"


def _number(count: float) -> str:
    """Return a number without decimals, such as `1,234`."""
    return f"{count:,.0f}"


def _lasting(seconds: float) -> str:
    """Return a duration in its largest unit up to hours, such as `1.5 hours` or `40 s`."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} hours"


def _url(path: str, **fields: object) -> str:
    """Return a path with a query of those fields that are not empty; `from_` is named `from`."""
    wanted = {name.rstrip("_"): value for name, value in fields.items() if value}
    return f"{path}?{urlencode(wanted)}" if wanted else path


def _board_url(filter: BoardFilter, **changes: str) -> str:
    """Return the URL of the board for a filter with some fields changed.

    It leads to the first page of the sessions, unless `changes` has a cursor as `after`.
    """
    fields = {**msgspec.structs.asdict(filter), "after": "", **changes}
    if fields["sort"] == DEFAULT_SORT:
        fields["sort"] = ""
    return _url("/", **fields)
