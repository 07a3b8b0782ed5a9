"""Finds the bot's own comments again: each ends with a hidden key.

The key is an HTML comment, so that writing a comment twice can be avoided after a crash.
"""

from collections.abc import Iterator
from urllib.parse import quote

from bot.github.api_client import ApiClient
from bot.github.rest import ListedText

KEY = "mergewright:key="


def own_comments(api: ApiClient, repo: str, path: str, key: str = "") -> Iterator[ListedText]:
    """The bot's own comments, or those with this key; a copy by somebody else does not count."""
    me = api.me()
    for written in api.pages(repo, path, ListedText):
        mine = written.user is not None and written.user.login == me
        if mine and (not key or has_marker(written.body, key)):
            yield written


def has_marker(body: str | None, key: str) -> bool:
    """Whether a text ends with this key."""
    return (body or "").rstrip().endswith(marker(key))


def marker(key: str) -> str:
    """The end of a comment with this key."""
    # `-->` in a key would end the HTML comment.
    return f"<!-- {KEY}{quote(key, safe=':/#@=,+.')} -->"


def with_marker(body: str, key: str) -> str:
    """A text with its key."""
    return f"{without_markers(body)}\n\n{marker(key)}"


def without_markers(text: str) -> str:
    """The text without markers, and without characters that UTF-8 cannot encode."""
    escaped = text.replace(KEY, KEY.replace(":", "&#58;"))
    return escaped.encode("utf-8", "replace").decode()
