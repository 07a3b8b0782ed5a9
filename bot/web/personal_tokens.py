"""People's tokens for programs.

Each acts for its person, within its scope, until it expires or is revoked.
"""

import hashlib
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Final

from bot.store import NewToken, PersonalToken, Store, StoreFailure, TokenScope
from bot.text import page_text
from bot.web.visitor import Visitor
from lifecycle.model.roles import Role

#: How a token begins, so that people and scanners of secrets recognise it.
PREFIX: Final = "mwp_"
#: What a token of a scope may do at most.
ROLES: Final[Mapping[TokenScope, Role]] = {
    TokenScope.READ: Role.READ,
    TokenScope.MESSAGE: Role.TRIAGE,
    TokenScope.STEER: Role.WRITE,
    TokenScope.ADMIN: Role.ADMIN,
}
#: The use of a token is noted at most once in this time.
_NOTED = timedelta(minutes=1)


class PersonalTokens:
    """Makes and recognises tokens. Only their hashes are stored."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(
        self, login: str, user: int, name: str, scope: TokenScope, days: float
    ) -> tuple[str, PersonalToken]:
        """Create a token for `login`, and return the token and what is stored about it.

        The token cannot be read later, because only its hash is stored. `user` is GitHub's numeric
        ID of the account.
        """
        token, now = f"{PREFIX}{secrets.token_urlsafe(32)}", self._store.clock()
        made = self._store.personal_tokens.add(
            NewToken(
                hash=_hash(token),
                login=login,
                user=user,
                name=name,
                scope=scope,
                created=now,
                expires=now + timedelta(days=days),
            )
        )
        return token, made

    def of(self, visitor: Visitor) -> list[PersonalToken]:
        """Return the visitor's personal tokens, expired or not.

        If the visitor used the token MERGEWRIGHT_PAGE_TOKEN, which belongs to no account, returns
        the personal tokens of all people.
        """
        return self._store.personal_tokens.of(visitor.login)

    def revoke(self, id: int, visitor: Visitor) -> None:
        """Revoke the person's token with this ID, if there is one.

        A visitor with the page token may revoke anybody's.
        """
        self._store.personal_tokens.revoke(id, visitor.login)

    def find(self, token: str) -> Visitor | None:
        """Return the visitor for whom a token acts; None if it is unknown, revoked or expired.

        Notes the use of the token. The number of guesses needs no limit, because a token has 256
        random bits.
        """
        found, now = self._store.personal_tokens.get(_hash(token)), self._store.clock()
        if found is None or found.expires <= now:
            return None
        if found.used is None or now - found.used >= _NOTED:
            with suppress(StoreFailure):  # The disk is full, or another bot leads.
                self._store.personal_tokens.use(found.id, now)
        return Visitor(
            login=found.login,
            user=found.user,
            most=ROLES[found.scope],
            expires=found.expires,
            bears=True,
        )


def checked(name: str, days: float, most: float) -> str:
    """Return a new token's name in its stored form, if the name and the lifetime are allowed.

    Otherwise raises `ValueError`, whose message says what was expected. `days` is the lifetime, and
    `most` is the longest allowed lifetime in days.
    """
    line = page_text.line(name).strip()
    if not line:
        raise ValueError("a token needs a name, such as that of the program that uses it")
    if not 0 < days <= most:
        raise ValueError(f"expected more than 0 and at most {most:g} days (sign-in.token-days)")
    return line


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
