"""Replaces secrets in output: known values, and anything in the form of GitHub's tokens.

It is applied to every request body sent to GitHub (`bot.github.transport`), every text written to
the database (`bot.store.opening`), the log, the archive, and the transcripts and terminals shown.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import TypeVar
from urllib.parse import quote

import msgspec

T = TypeVar("T")

#: Installation tokens are created while the bot runs, so they are recognized by their form.
_FORMS = ("ghp_", "gho_", "ghr_", "ghs_", "ghu_", "github_pat_")
_TOKEN = re.compile(r"\b(?:gh[oprsu]_|github_pat_)[\w.-]{16,}")
_TOKEN_BYTES = re.compile(_TOKEN.pattern.encode())
_LONGEST_TOKEN = 1024
_SHORTEST = 6  # What is shorter is found in words.
_LINE = 20
_GONE = "[secret]"


class Redaction:
    """Takes secrets out of texts and values. May be used from any thread."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {form for secret in secrets for form in _forms(secret) if len(form) >= _SHORTEST}
        # Longest first, so that a secret that holds another one goes whole.
        self._known = sorted(known, key=len, reverse=True)
        #: The length of the longest secret in bytes.
        self.longest = max([_LONGEST_TOKEN, *(len(one.encode()) for one in known)])

    def __call__(self, value: T) -> T:
        """Return a text, bytes or JSON-encodable value without secrets."""
        if isinstance(value, bytes):
            return self.masked(value)  # type: ignore[return-value]
        if isinstance(value, str):
            return self._text(value)  # type: ignore[return-value]
        text = msgspec.json.encode(value).decode()
        safe = self._text(text)
        return value if safe is text else msgspec.json.decode(safe, type=type(value))

    def finds(self, text: str) -> bool:
        """Whether a text contains a known secret."""
        return any(secret in text for secret in self._known)

    def masked(self, data: bytes) -> bytes:
        """Return the data with secrets replaced by stars, at the same length."""
        for secret in map(str.encode, self._known):
            data = data.replace(secret, b"*" * len(secret))
        if not any(form.encode() in data for form in _FORMS):
            return data
        return _TOKEN_BYTES.sub(lambda found: b"*" * len(found[0]), data)

    def _text(self, text: str) -> str:
        for secret in self._known:
            if secret in text:
                text = text.replace(secret, _GONE)
        return _TOKEN.sub(_GONE, text) if any(form in text for form in _FORMS) else text


def _forms(secret: str) -> Iterator[str]:
    """Yield the forms of a secret in text, JSON and URLs, line by line for keys."""
    lines = [line for line in secret.splitlines() if len(line) >= _LINE and "-----" not in line]
    for one in lines if "\n" in secret.strip() else [secret]:
        yield from (one, json.dumps(one, ensure_ascii=False)[1:-1], quote(one, safe=""))
