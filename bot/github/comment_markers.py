"""Finds the bot's own comments again: each ends with a hidden key.

The key is an HTML comment, so that writing a comment twice can be avoided after a crash.
"""

from collections.abc import Callable, Iterator
from urllib.parse import quote

from bot.github.api_client import ApiClient
from bot.github.rest import ListedText

KEY = "mergewright:key="


class MarkedComments:
    """Finds the bot's comments by their keys. Thread-safe."""

    def __init__(self, api: ApiClient, me: Callable[[], str]) -> None:
        self._api = api
        self._me = me

    def with_key(self, repo: str, path: str, key: str) -> Iterator[ListedText]:
        """The bot's own comments with this key; a copy by somebody else does not count."""
        return (written for written in self.own(repo, path) if has_marker(written.body, key))

    def own(self, repo: str, path: str) -> Iterator[ListedText]:
        """All comments of the bot."""
        me = self._me()
        for written in self._api.pages(repo, path, ListedText):
            if written.user and written.user.login == me:
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
    harmless = text.replace(KEY, KEY.replace(":", "&#58;"))
    return harmless.encode("utf-8", "replace").decode()
