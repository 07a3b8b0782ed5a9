"""Recognises tokens and keys by their format if the bot does not know their values.

The prefixes are those that the providers document and for which secret scanners look:
https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/
https://docs.github.com/en/code-security/secret-scanning/introduction/supported-secret-scanning-patterns
"""

import re
from collections.abc import Iterable
from typing import NamedTuple


class SecretForm(NamedTuple):
    """The form of one kind of secret: a pattern for a quick test, and that of the whole secret."""

    prefix: str  #: A short pattern for a quick test: every such secret contains a match of it.
    pattern: str  #: The pattern of the whole secret.
    bounded: bool = True  #: Whether the secret begins only where a word begins.


#: What may precede a word: a character that is no part of a word, an escape (`\n`, `\u001b`, `%0A`,
#: also escaped twice), or the end of a terminal's colour sequence.
_BEGIN = (
    r"(?:(?<![A-Za-z0-9_])|(?<=\\[abfnrtv0])|(?<=5[Cc][abfnrtv0])|(?<=u[0-9A-Fa-f]{4})"
    r"|(?<=\\x[0-9A-Fa-f]{2})|(?<=%[0-9A-Fa-f]{2})|(?<=%25[0-9A-Fa-f]{2})"
    r"|(?<=%2525[0-9A-Fa-f]{2})|(?<=[\[;0-9][A-Za-z]))"
)
_GITHUB = "gh[oprsu]_"
#: GitHub's tokens. Installation tokens are created while the bot runs, so their values are unknown
#: at its start.
GITHUB = (
    SecretForm(f"{_GITHUB}|github_pat_", r"(?:gh[oprsu]_|github_pat_)[\w.-]{16,}"),
    SecretForm(_GITHUB, r"gh[oprsu]_[A-Za-z0-9]{36}(?![A-Za-z0-9])", bounded=False),
    SecretForm(
        "github_pat_",
        r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}(?![A-Za-z0-9])",
        bounded=False,
    ),
)
_KEY_BEGINS = r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
#: Secrets of other services.
COMMON = (
    SecretForm("sk-ant-", r"sk-ant-[\w-]{20,}"),
    SecretForm("sk-", r"sk-(?:(?:proj|svcacct|admin)-[\w-]{20,}|[A-Za-z0-9]{32,})"),
    SecretForm("A[BCKS][CI]A", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    SecretForm("xox|xapp-", r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}"),
    SecretForm("hooks[.]slack", r"hooks\.slack\.com/services/[\w/-]{20,}"),
    # Within a word only headers of up to 1,000 characters: a word may have many beginnings.
    SecretForm(
        "eyJ",
        r"(?:(?<![\w-])eyJ[\w-]{10,}+|eyJ[\w-]{10,1000}+)\.eyJ[\w-]{10,}+\.[\w-]{10,}",
    ),
    SecretForm("AIza", r"AIza[\w-]{35}"),
    SecretForm("glpat-", r"glpat-[\w-]{20,}"),
    SecretForm("npm_", r"npm_[A-Za-z0-9]{36}\b"),
    SecretForm("pypi-AgE", r"pypi-AgE[\w-]{50,}"),
    SecretForm("[sr]k_live_", r"[sr]k_live_[A-Za-z0-9]{20,}"),
    SecretForm("SG[.]", r"SG\.[\w-]{22}\.[\w-]{43}\b"),
    SecretForm("AccountKey=", r"AccountKey=[A-Za-z0-9+/]{86}=="),
    SecretForm(
        "PRIVATE KEY",
        rf"{_KEY_BEGINS}(?:[\s\S]{{0,20000}}?-----END [A-Z0-9 ]{{0,40}}-----"
        r"|(?:\\*[nr]|[A-Za-z0-9+/=\s])*)",
        bounded=False,
    ),
)


def pattern_of(forms: Iterable[SecretForm]) -> re.Pattern[str]:
    """Return one pattern that matches all these forms."""
    return re.compile("|".join(f"{_BEGIN if one.bounded else ''}{one.pattern}" for one in forms))


_ANY = pattern_of((*GITHUB, *COMMON))
_ANY_PREFIX = re.compile("|".join(one.prefix for one in (*GITHUB, *COMMON)))
#: Part of the example keys in providers' documentation.
_EXAMPLE = "EXAMPLE"


def looks_like_secret(text: str) -> bool:
    """Whether a text contains something like a token or key, except the providers' examples."""
    if not _ANY_PREFIX.search(text):
        return False
    return any(_EXAMPLE not in found[0] for found in _ANY.finditer(text))
