"""Writes the messages of merge commits from a project's templates and the merged commits."""

import re
from collections.abc import Iterable
from typing import Final

from bot.text.neutralize import cut, has_closing_keyword, neutralize, one_line

# In characters; longer bodies are of no use to readers.
_BODY_LIMIT, _MOST_TRAILERS = 20_000, 50
_PLACEHOLDER = re.compile(r"\{(title|number|issue|commits|body)\}")
#: Credit and sign-off: https://docs.github.com/en/pull-requests/committing-changes-to-your-project/creating-and-editing-commits/creating-a-commit-with-multiple-authors
# Agents write the lines: blanks are taken at once (`*+`), since trying all ways to divide them
# between the groups takes hours, in which no other thread runs.
_TRAILER = re.compile(
    r"^(co-authored-by|signed-off-by):[ \t]*+([^<>@#/\n]{1,100})"
    r"<([\w.+\-\[\]]{1,100}@[\w.-]{1,100})>[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_NAMES: Final = {"co-authored-by": "Co-authored-by", "signed-off-by": "Signed-off-by"}
#: The bot's own lines at the start of a description.
_OWN_LINES = re.compile(r"\A(?:Closes #\d+\s+)?Written by the agent [^\n]*\n*")
#: Hidden comments. One without an end extends to the end of the text, so that matching takes
#: linear time.
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def merge_title(template: str, title: str, number: int, issue: int) -> str:
    """Return the first line of a merge commit's message, of at most 200 characters.

    The template may use `{title}`, `{number}` (of the pull request) and `{issue}`, which is empty
    if there is none.
    """
    values = {"title": one_line(title), "number": str(number), "issue": str(issue or "")}
    return one_line(_filled(template, values))


def merge_message(
    template: str,
    *,
    title: str,
    number: int,
    issue: int,
    subjects: Iterable[str] = (),
    body: str = "",
    trailers: Iterable[str] = (),
) -> str:
    """Return the body of a merge commit's message.

    If there is an issue, `Closes #...` follows the template's text. The lines `trailers` are the
    last paragraph. Besides the names in `merge_title`, the template may use `{commits}`, the
    commits' subjects as a list, and `{body}`, the pull request's description without hidden
    comments and the bot's own lines.
    """
    described = _HIDDEN.sub("", _OWN_LINES.sub("", body.replace("\r\n", "\n")))
    values = {
        "title": one_line(title),
        "number": str(number),
        "issue": str(issue or ""),
        "commits": "\n".join(f"* {one_line(subject)}" for subject in subjects),
        "body": neutralize(cut(described, _BODY_LIMIT)).strip(),
    }
    text = cut(_filled(template, values).strip(), _BODY_LIMIT)
    closes = f"Closes #{issue}" if issue else ""
    return "\n\n".join(filter(None, (text, closes, "\n".join(trailers))))


def trailers(messages: Iterable[str], authors: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the `Co-authored-by` and `Signed-off-by` lines of messages, then those for authors.

    Each author (`NAME <EMAIL>`) is credited as a co-author. An address gets one line of each kind.
    Returns at most 50 lines. Omits lines that lack a name or an address, and lines whose name has a
    mention, a command or a closing keyword.
    """
    found: dict[tuple[str, str], str] = {}
    credited = (f"Co-authored-by: {author}" for author in authors)
    for text in (*messages, *credited):
        for kind, padded, email in _TRAILER.findall(text):
            name = padded.rstrip(" \t")
            if name.isprintable() and not has_closing_keyword(f"{name} {email}"):
                line = f"{_NAMES[kind.lower()]}: {name} <{email}>"
                found.setdefault((kind.lower(), email.lower()), line)
    return tuple(found.values())[:_MOST_TRAILERS]


def _filled(template: str, values: dict[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), template)
