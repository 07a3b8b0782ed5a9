"""Comments of ours that are found again: each ends with a key that people do not see."""

from collections.abc import Callable, Iterator
from urllib.parse import quote

from msgspec import Struct

from bot.github.calls import ApiClient
from bot.github.shapes import Login

KEY = "mergewright:key="


class ListedText(Struct, frozen=True):
    """A comment as REST lists it."""

    id: int
    user: Login | None
    body: str | None = None


class MarkedComments:
    """Finds our comments by their keys. May be used from any thread."""

    def __init__(self, calls: ApiClient, me: Callable[[], str]) -> None:
        self._calls = calls
        self._me = me

    def with_key(self, repo: str, path: str, key: str) -> Iterator[ListedText]:
        """The bot's own comments that carry the key. What others write counts for nothing."""
        return (written for written in self.own(repo, path) if has_marker(written.body, key))

    def own(self, repo: str, path: str) -> Iterator[ListedText]:
        """All comments of the bot's."""
        me = self._me()
        for written in self._calls.pages(repo, path, ListedText):
            if written.user and written.user.login == me:
                yield written


def has_marker(body: str | None, key: str) -> bool:
    """Whether a comment's text ends with this key."""
    return (body or "").rstrip().endswith(marker(key))


def marker(key: str) -> str:
    """What a comment with this key ends with."""
    # A key's `-->` would end the comment it is hidden in.
    return f"<!-- {KEY}{quote(key, safe=':/#@=,+.')} -->"


def with_marker(body: str, key: str) -> str:
    """A body with its key."""
    return f"{without_markers(body)}\n\n{marker(key)}"


def without_markers(text: str) -> str:
    """The text without anything that reads as a key of ours, and without what UTF-8 cannot hold."""
    harmless = text.replace(KEY, KEY.replace(":", "&#58;"))
    return harmless.encode("utf-8", "replace").decode()
