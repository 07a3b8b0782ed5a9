"""Checks and masks notifiers' secrets: URLs that contain tokens, and keys that sign webhooks."""

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

from config.tables import NotifierSettings

#: The prefix of a webhook's secret in the notation of Standard Webhooks.
_PREFIX = "whsec_"
#: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
_LEAST_BYTES, _MOST_BYTES = 24, 64
#: Separates the parts of a URL. A part counts as a token if it has at least 12 characters, with
#: letters and digits, and is no host.
_SEPARATORS = re.compile(r"[/:@?&=#,;\s]+")
_TOKEN = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w.~+%-]{12,}")
_HOST = re.compile(r"(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}|[\d.]+")


def signing_keys(secret: str) -> tuple[bytes, ...]:
    """Return the keys in a webhook's secret: one, or the new and the old one during a rotation.

    Each is Base64 of 24 to 64 bytes, with or without the prefix `whsec_`; spaces separate them.
    Raises `ValueError` for any other text.
    """
    keys = tuple(_key(one.removeprefix(_PREFIX)) for one in secret.split())
    if not keys or not all(_LEAST_BYTES <= len(key) <= _MOST_BYTES for key in keys):
        raise ValueError("no key of 24 to 64 bytes")
    return keys


def _key(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("not Base64") from error


def signing_forms(secret: str) -> Iterator[str]:
    """Yield the texts to mask for a webhook's secret: each key with its prefix and without."""
    for one in secret.split():
        yield one
        yield one.removeprefix(_PREFIX)


def secrets_in(url: str) -> Iterator[str]:
    """Yield the texts to mask for a notifier's URL: the URL, its password, and apparent tokens.

    A token may be in any part: `slack://TOKEN/TOKEN/TOKEN`, `tgram://TOKEN/CHAT`.
    """
    yield url
    try:
        password = urlsplit(url).password
    except ValueError:
        password = None
    if password:
        yield from (password, unquote(password))
    for part in _SEPARATORS.split(url):
        if _TOKEN.fullmatch(part) and not _HOST.fullmatch(part):
            yield from (part, unquote(part))


def unfit_secrets(
    notifiers: Mapping[str, NotifierSettings], secrets: Mapping[str, str]
) -> Iterator[str]:
    """Yield a line for each unusable URL or signing secret of a webhook, with its remedy.

    `secrets` maps environment variables to their values. Missing ones are ignored, and so are all
    notifiers of other kinds.
    """
    for name, one in notifiers.items():
        url, secret = secrets.get(one.url, ""), secrets.get(one.secret, "")
        if url and one.kind == "webhook" and not _is_webhook(url):
            yield f"{one.url} (notify.{name}.url): expected an http or https URL"
        if secret and one.kind == "webhook":
            try:
                signing_keys(secret)
            except ValueError:
                yield (
                    f"{one.secret} (notify.{name}.secret): expected Base64 of 24 to 64 bytes;"
                    " make one with: openssl rand -base64 32"
                )


def _is_webhook(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # An invalid port or an unmatched bracket.
        return False
