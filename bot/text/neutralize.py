"""Neutralizes text of agents and programs, so that GitHub does not act on it.

Mentions, closing keywords, commands and skip instructions keep their appearance but lose their
effect. This applies to code, too, because other bots and commit messages do not parse Markdown.
Sources: "Linking a pull request to an issue"
(https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue)
and "Skipping workflow runs"
(https://docs.github.com/en/actions/how-tos/manage-workflow-runs/skip-workflow-runs).
"""

import re

from lifecycle.model.text import plain

_ZERO_WIDTH = "\u200b"
_LINE_LIMIT = 200  #: In characters.

#: A slash command of any bot in the repository: `/mergewright merge`, `/lgtm`. Other bots strip
#: blanks of any kind, such as no-break spaces, from lines.
_COMMAND = re.compile(r"^(?:[^\S\n]|[>*\u200b-])*+/(?=[A-Za-z])", re.MULTILINE)
_MENTION = re.compile(r"@(?=[A-Za-z0-9])")
#: GitHub decodes `&#64;` to `@` and `&#35;` to `#` before it looks for mentions and references.
_ENTITY = re.compile(r"&(?=#?\w{1,31};)")
# There may be a colon, blanks and any markup, also tags and comments, between the keyword and the
# reference to an issue. Lengths are capped, so that hostile text takes linear time.
_CLOSING = re.compile(
    r"(?<![A-Za-z0-9])(close[sd]?|fix(?:e[sd])?|resolve[sd]?)"
    r"(?=(?:\s++|<[^<>]{0,1000}+>|[^A-Za-z0-9#\[]){0,50}+"
    r"(?:\[|#\d|[\w.-]{1,40}/[\w.-]{1,100}#\d|gh-\d|https?://|www\.))",
    re.IGNORECASE,
)
_SKIP = re.compile(
    r"\[(?=(?:skip|no) ci\]|ci skip\]|skip actions\]|actions skip\])|\bskip(?=-checks:)",
    re.IGNORECASE,
)
#: The start of a tag or hidden comment, and the middle of a link or picture.
_MARKUP = re.compile(r"<(?=[A-Za-z/!?])|\](?=[(\[:])")


def neutralize(text: str) -> str:
    """Return text that looks the same, in which mentions, commands and the like have no effect.

    Numbers of issues (`#12`) and Markdown keep their effect. Control characters other than
    newlines and tabs are removed.
    """
    text = plain(text)
    for effective in (_COMMAND, _MENTION, _ENTITY, _CLOSING, _SKIP):
        text = effective.sub(rf"\g<0>{_ZERO_WIDTH}", text)
    return text


def without_markup(text: str) -> str:
    """Return text for our sentences, in which HTML tags and Markdown's links have no effect.

    They are shown as text, and so are images. Bare URLs stay links.
    """
    return _MARKUP.sub(rf"\g<0>{_ZERO_WIDTH}", text)


def has_closing_keyword(text: str) -> bool:
    """Whether GitHub might close an issue because of this text; True in doubt, as for `fix [x]`."""
    return _CLOSING.search(text) is not None


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters. A shortened text ends with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def one_line(text: str) -> str:
    """Return neutralized text as one line of at most 200 characters."""
    return cut(" ".join(neutralize(text[: 2 * _LINE_LIMIT]).split()), _LINE_LIMIT)
