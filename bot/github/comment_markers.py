"""Marks each of the bot's comments with a hidden key, and finds comments by their key.

The marker is an HTML comment. Because of it, the bot does not post a comment twice after a crash.
"""

from collections.abc import Iterator
from urllib.parse import quote

from bot.github.api_client import ApiClient
from bot.github.rest import ListedText

KEY = "mergewright:key="


def own_comments(api: ApiClient, repo: str, path: str, key: str = "") -> Iterator[ListedText]:
    """Yield the comments by the bot's account at `path`; with a `key`, only those marked by it."""
    me = api.me()
    for written in api.pages(repo, path, ListedText):
        mine = written.user is not None and written.user.login == me
        if mine and (not key or has_marker(written.body, key)):
            yield written


def has_marker(body: str | None, key: str) -> bool:
    """Whether a text ends with the marker of this key. False for None."""
    return (body or "").rstrip().endswith(marker(key))


def marker(key: str) -> str:
    """Return the marker of a key: the HTML comment that ends the bot's comment."""
    # `-->` in a key would end the HTML comment.
    return f"<!-- {KEY}{quote(key, safe=':/#@=,+.')} -->"


def with_marker(body: str, key: str) -> str:
    """Return the text with the marker of the key at its end, and markers within it escaped."""
    return f"{without_markers(body)}\n\n{marker(key)}"


def without_markers(text: str) -> str:
    """Return the text with every marker escaped, and with lone surrogates replaced."""
    escaped = text.replace(KEY, KEY.replace(":", "&#58;"))
    return escaped.encode("utf-8", "replace").decode()
