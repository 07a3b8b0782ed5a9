"""Masks secrets in output: known values, and anything in the form of a token.

This is applied to every request body sent to GitHub's API (`bot.github.transport`), every text
written to the database (`bot.store.opening`), the log, the archive, notifications, and the
transcripts and terminals shown.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bot.system.known_secrets import known_secrets
from bot.system.secret_forms import COMMON, GITHUB, pattern_of

T = TypeVar("T")

_LONGEST_TOKEN = 1024
_SHORTEST = 6  # Characters; a shorter secret would match parts of words.
_GONE = "[secret]"


class Redaction:
    """Masks secrets in texts and values. Thread-safe.

    Values are read string by string, and so is JSON inside a string; this way, no escape hides a
    secret and no replacement breaks the JSON.
    """

    def __init__(self, secrets: Iterable[str] = (), *, common_forms: bool = False) -> None:
        """Prepare to mask `secrets` of at least 6 characters, and all GitHub tokens.

        `common_forms` is for output that leaves the machine: it also masks the Base64 of `secrets`,
        and tokens and keys in the formats of other services.
        """
        # Longest first, so that a secret that contains another one is replaced as a whole.
        self._known = known_secrets(secrets, _SHORTEST, in_base64=common_forms)
        forms = (*GITHUB, *COMMON) if common_forms else GITHUB
        self._anchors = tuple(dict.fromkeys(one.anchor for one in self._known))
        self._anchor_bytes = tuple(anchor.encode() for anchor in self._anchors)
        prefixes = "|".join(one.prefix for one in forms)
        self._prefix, self._prefix_bytes = re.compile(prefixes), re.compile(prefixes.encode())
        self._pattern = pattern_of(forms)
        #: The most bytes of one secret, also in escaped form. Keys found by their format may be
        #: longer.
        self.longest = max([_LONGEST_TOKEN, *(one.longest for one in self._known)])

    def __call__(self, value: T) -> T:
        """Return a text, bytes or a JSON-encodable value with secrets masked."""
        if isinstance(value, bytes):
            return self.masked(value)  # type: ignore[return-value]
        if isinstance(value, str):
            return self._text(value)  # type: ignore[return-value]
        if not self._may_hold(msgspec.json.encode(value).decode()):
            return value
        return self._value(value)  # type: ignore[no-any-return]

    def finds(self, text: str) -> bool:
        """Whether a text contains one of the given secrets, even if escaped."""
        return any(
            next(secret.spans(text), None) for secret in self._known if secret.anchor in text
        )

    def masked(self, data: bytes) -> bytes:
        """Return the data with secrets replaced by stars, at the same length."""
        if not (
            any(anchor in data for anchor in self._anchor_bytes) or self._prefix_bytes.search(data)
        ):
            return data
        text = data.decode("utf-8", "surrogateescape")
        safe = self._replaced(text, _stars)
        return data if safe is text else safe.encode("utf-8", "surrogateescape")

    def _may_hold(self, text: str) -> bool:
        return any(anchor in text for anchor in self._anchors) or bool(self._prefix.search(text))

    def _value(self, value: Any) -> Any:
        """Return a value of any type with the secrets in its strings masked."""
        if type(value) is str:  # Not a member of a StrEnum.
            return self._text(value)
        if isinstance(value, bytes):
            return self.masked(value)
        if isinstance(value, Struct):
            before = {name: getattr(value, name) for name in value.__struct_fields__}
            after = {name: self._value(part) for name, part in before.items()}
            changed = {name: part for name, part in after.items() if part != before[name]}
            return replace(value, **changed) if changed else value
        if isinstance(value, Mapping):
            return {self._value(name): self._value(part) for name, part in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return type(value)(self._value(part) for part in value)
        return value

    def _text(self, text: str) -> str:
        if not self._may_hold(text):
            return text
        if text[:1] in ("{", "[", '"'):
            try:
                value = msgspec.json.decode(text)
                safe = self._value(value)
                return text if safe == value else msgspec.json.encode(safe).decode()
            except (msgspec.MsgspecError, RecursionError):
                pass  # It is not JSON.
        return self._replaced(text, lambda _: _GONE)

    def _replaced(self, text: str, instead: Callable[[str], str]) -> str:
        for secret in self._known:
            if secret.anchor in text:
                text = _without(text, secret.spans(text), instead)
        if self._prefix.search(text):
            text = _without(text, (one.span() for one in self._pattern.finditer(text)), instead)
        return text


def _stars(secret: str) -> str:
    return "*" * len(secret.encode("utf-8", "surrogateescape"))


def _without(text: str, spans: Iterable[tuple[int, int]], instead: Callable[[str], str]) -> str:
    parts, at = list[str](), 0
    for begin, end in sorted(spans):
        if end > at:
            first = max(begin, at)
            parts += [text[at:first], instead(text[first:end])]
            at = end
    return "".join([*parts, text[at:]]) if parts else text
