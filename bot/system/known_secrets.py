"""Finds known secrets in a text, even if they are escaped once or repeatedly, or in Base64."""

import html
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import Final

#: How many nested escapes are undone, such as JSON in JSON in a URL.
_MOST_ESCAPES: Final = 4
#: How many unescaped forms of one place are tried, which limits the time for a hostile text.
_MOST_READINGS: Final = 50
#: The most characters of one escaped character, as in `\\\\ud83d\\\\ude00`.
_EXPANSION: Final = 24
_LINE: Final = 20  #: The shortest line of a key that is searched for, in characters.
_SHORTEST_BASE64: Final = 12

#: The characters that no escape changes.
_UNESCAPED = re.compile(r"[A-Za-z0-9_]+")
_SIMPLE: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v", "a": "\a"}
_SURROGATES = r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})"
_BACKSLASH = re.compile(
    rf"{_SURROGATES}|\\u([0-9a-f]{{4}})|\\x([0-9a-f]{{2}})|\\U([0-9a-f]{{8}})|\\([^ux])",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_PLUS = re.compile(r"\+")


def _backslash(found: re.Match[str]) -> str:
    high, low, *codes, sign = found.groups()
    if high:
        return (bytes.fromhex(high) + bytes.fromhex(low)).decode("utf-16-be", "replace")
    code = next(filter(None, codes), None)
    if code:
        return chr(int(code, 16)) if int(code, 16) < 0x110000 else "\ufffd"
    return _SIMPLE.get(sign, sign)


def _percent(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace")


#: The escapes, each with the function that undoes it; HTML forms encode spaces as `+`.
_UNESCAPES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (_BACKSLASH, _backslash),
    (_PERCENT, _percent),
    (_ENTITY, lambda found: html.unescape(found[0])),
    (_PLUS, lambda _: " "),
)

#: An unescaped text, and the positions in the original text at which its characters begin. A last
#: position says where the last character ends.
_Mapped = tuple[str, list[int]]


class KnownSecret:
    """One secret, which is found in texts even if it is escaped."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        #: The secret's longest part that no escape changes. A text without this part does not
        #: contain the secret.
        self.anchor = max(_UNESCAPED.findall(secret), key=len, default="")
        #: The most bytes that the secret takes in escaped form.
        self.longest = len(secret.encode()) * (_EXPANSION if self.anchor != secret else 1)

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield begin and end of each occurrence of the secret in a text, even if escaped.

        A secret that has no letter, digit or underscore is found only unescaped. Occurrences come
        unsorted, and may come twice.
        """
        yield from _occurrences(self.secret, text)
        if self.anchor in ("", self.secret):
            return
        around = len(self.secret) * _EXPANSION
        done = 0
        for begin, end in _occurrences(self.anchor, text):
            if begin < done:
                continue
            first, last = max(0, begin - around), min(len(text), end + around)
            for start, stop in self._escaped(text[first:last]):
                yield first + start, first + stop
            done = end + around // 2

    def _escaped(self, text: str) -> Iterator[tuple[int, int]]:
        waiting: list[tuple[_Mapped, int]] = [((text, list(range(len(text) + 1))), 0)]
        seen = {text}
        while waiting and len(seen) < _MOST_READINGS:
            mapped, depth = waiting.pop()
            for pattern, unescape in _UNESCAPES:
                found = _unescaped(mapped, pattern, unescape)
                if found[0] in seen:
                    continue
                seen.add(found[0])
                for begin, end in _occurrences(self.secret, found[0]):
                    yield found[1][begin], found[1][end]
                if depth + 1 < _MOST_ESCAPES:
                    waiting.append((found, depth + 1))


def known_secrets(secrets: Iterable[str], shortest: int, *, in_base64: bool) -> list[KnownSecret]:
    """Return the secrets to search for, longest first.

    Of a secret with several lines, such as a key, each line of 20 characters or more is searched
    for, unless it has `-----`. With `in_base64`, the Base64 of each is added. Secrets of fewer than
    `shortest` characters are omitted.
    """
    plain = [form for secret in secrets for form in _lines(secret) if len(form) >= shortest]
    encoded = [form for one in plain for form in _in_base64(one.encode())] if in_base64 else []
    forms = dict.fromkeys([*plain, *encoded])
    return [KnownSecret(form) for form in sorted(forms, key=len, reverse=True)]


def _lines(secret: str) -> list[str]:
    lines = [line for line in secret.splitlines() if len(line) >= _LINE and "-----" not in line]
    return lines if "\n" in secret.strip() else [secret]


def _in_base64(secret: bytes) -> Iterator[str]:
    """Yield the pieces of Base64 that show that an encoded text contains the secret.

    There is a piece for each alphabet and each position of the secret in a group of 3 bytes,
    without the characters that also depend on other bytes. Short pieces are omitted.
    """
    for encode in (b64encode, urlsafe_b64encode):
        for before in range(3):
            text = encode(b"\0" * before + secret).decode()
            begin, cut = (0, 2, 3)[before], (0, 3, 2)[(before + len(secret)) % 3]
            inner = text[begin : len(text) - cut]
            if len(inner) >= _SHORTEST_BASE64:
                yield inner


def _occurrences(part: str, text: str) -> Iterator[tuple[int, int]]:
    at = text.find(part)
    while at >= 0:
        yield at, at + len(part)
        at = text.find(part, at + len(part))


def _unescaped(
    mapped: _Mapped, pattern: re.Pattern[str], unescape: Callable[[re.Match[str]], str]
) -> _Mapped:
    """Return the text with one kind of escape undone."""
    text, places = mapped
    parts, positions, at = list[str](), list[int](), 0
    for found in pattern.finditer(text):
        plain = unescape(found)
        parts += [text[at : found.start()], plain]
        positions += places[at : found.start()]
        positions += [places[found.start()]] * len(plain)
        at = found.end()
    if not at:
        return mapped
    return "".join([*parts, text[at:]]), [*positions, *places[at:]]
