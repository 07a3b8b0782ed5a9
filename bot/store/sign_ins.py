"""Signed-in browsers, and people's tokens for programs.

Only hashes of cookies and tokens are stored.
"""

import sqlite3
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.rows import RowDecoder, columns

_ADD = """INSERT INTO sign_ins (hash, first, login, user, created, seen, renews, used)
    VALUES (:hash, :hash, :login, :user, :now, :now, :renews, 1)"""
ONE = "SELECT first, login, user, created, seen, renews, used, ends FROM sign_ins WHERE hash = ?"
_SEEN = "UPDATE sign_ins SET seen = :now, used = 1 WHERE hash = :hash"
_REPLACED = """UPDATE sign_ins SET ends = :ends
    WHERE first = (SELECT first FROM sign_ins WHERE hash = :hash) AND hash <> :hash
        AND used = 1 AND ends IS NULL"""
# Of requests that arrive together one gets the next cookie.
_RENEWED = """UPDATE sign_ins SET renews = :renews
    WHERE hash = :hash AND renews <= :now AND ends IS NULL"""
_ADD_NEXT = """INSERT INTO sign_ins (hash, first, login, user, created, seen, renews, used)
    SELECT :next, first, login, user, created, :now, :renews, 0 FROM sign_ins WHERE hash = :hash"""
_END = "DELETE FROM sign_ins WHERE first = (SELECT first FROM sign_ins WHERE hash = ?)"
_END_ALL = "DELETE FROM sign_ins WHERE lower(login) = lower(?)"
_END_OLD = "DELETE FROM sign_ins WHERE created < ? OR seen < ?"

_COLUMNS = "id, login, user, name, scope, created, expires, used FROM personal_tokens"
BY_HASH = f"SELECT {_COLUMNS} WHERE hash = ?"
ALL = f"SELECT {_COLUMNS} ORDER BY id"
OF = f"SELECT {_COLUMNS} WHERE lower(login) = lower(?) ORDER BY id"
_CREATE = """INSERT INTO personal_tokens (hash, login, user, name, scope, created, expires)
    VALUES (:hash, :login, :user, :name, :scope, :created, :expires)
    RETURNING id, login, user, name, scope, created, expires, used"""
_USE = "UPDATE personal_tokens SET used = ? WHERE id = ?"
_REVOKE = "DELETE FROM personal_tokens WHERE id = ? AND (? = '' OR lower(login) = lower(?))"
_REVOKE_OLD = "DELETE FROM personal_tokens WHERE expires < ?"


class SignedIn(Struct, frozen=True, kw_only=True):
    """A cookie of a signed-in browser. The browser gets a new one from time to time."""

    first: str  #: The hash of the browser's first cookie, the same in all its cookies.
    login: str  #: If empty, the browser signed in with the page token.
    user: int  #: GitHub's ID of the account; 0 with the page token.
    created: datetime
    seen: datetime  #: When it last sent a request, to the minute.
    renews: datetime  #: When the next cookie is due.
    used: bool  #: Whether a request was sent with this cookie.
    ends: datetime | None = None  #: When it becomes invalid; None until its successor is used.


class TokenScope(StrEnum):
    """The most that a personal token may do. Each scope includes those before it."""

    READ = "read"
    MESSAGE = "message"
    STEER = "steer"
    ADMIN = "admin"


class NewToken(Struct, frozen=True, kw_only=True):
    """A personal token to be added."""

    hash: str
    login: str
    user: int
    name: str  #: What its owner calls it.
    scope: TokenScope
    created: datetime
    expires: datetime


class PersonalToken(Struct, frozen=True, kw_only=True):
    """A person's token for programs."""

    id: int
    login: str
    user: int
    name: str
    scope: TokenScope
    created: datetime
    expires: datetime
    used: datetime | None = None  #: When it was last used, to the minute.


_signed_in = RowDecoder(SignedIn, "sign_ins", "first")
_token = RowDecoder(PersonalToken, "personal_tokens", "id")


class SignInsTable(StoreTable):
    """Signed-in browsers, by the hash of their cookie."""

    def get(self, hash: str) -> SignedIn | None:
        """Return the sign-in of a cookie, even if its `ends` has passed; None if it is unknown."""
        row = self._first(ONE, (hash,))
        return None if row is None else _signed_in(row)

    def add(self, hash: str, login: str, user: int, now: datetime, renews: datetime) -> None:
        """Add a sign-in. Its next cookie is due at `renews`."""
        times = {"now": now.timestamp(), "renews": renews.timestamp()}
        self._execute(_ADD, {"hash": hash, "login": login, "user": user, **times})

    def see(self, hash: str, now: datetime) -> None:
        """Note that a browser sent a request."""
        self._execute(_SEEN, {"hash": hash, "now": now.timestamp()})

    def take(self, hash: str, now: datetime, ends: datetime) -> None:
        """Note the first request with a cookie. Earlier cookies of its browser expire at `ends`."""
        values = {"hash": hash, "now": now.timestamp(), "ends": ends.timestamp()}

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_REPLACED, values)
            connection.execute(_SEEN, values)

        self._db.write(work)

    def renew(self, hash: str, next_hash: str, now: datetime, renews: datetime) -> bool:
        """Add the cookie that replaces `hash`. Returns False, with nothing added, if none is due.

        The new cookie is itself due to be replaced at `renews`.
        """
        times = {"now": now.timestamp(), "renews": renews.timestamp()}
        values = {"hash": hash, "next": next_hash, **times}

        def work(connection: sqlite3.Connection) -> bool:
            if not connection.execute(_RENEWED, values).rowcount:
                return False
            return connection.execute(_ADD_NEXT, values).rowcount == 1

        return self._db.write(work)

    def end(self, hash: str) -> None:
        """Sign a browser out, with all of its cookies."""
        self._execute(_END, (hash,))

    def end_all(self, login: str) -> bool:
        """Sign a person out of all browsers; return False if no browser was signed in."""
        return self._execute(_END_ALL, (login,)) > 0

    def delete_old(self, created: datetime, seen: datetime) -> None:
        """Delete sign-ins that began before `created`, or were not used since `seen`."""
        self._execute(_END_OLD, (created.timestamp(), seen.timestamp()))


class PersonalTokensTable(StoreTable):
    """Personal tokens."""

    def get(self, hash: str) -> PersonalToken | None:
        """Return the token with a hash, expired or not; None if there is none."""
        row = self._first(BY_HASH, (hash,))
        return None if row is None else _token(row)

    def of(self, login: str) -> list[PersonalToken]:
        """Return the tokens of a person, expired or not; of all people if `login` is empty."""
        return list(map(_token, self._all(OF, (login,)) if login else self._all(ALL)))

    def add(self, token: NewToken) -> PersonalToken:
        """Add a token, and delete those that have expired."""

        def work(connection: sqlite3.Connection) -> PersonalToken:
            connection.execute(_REVOKE_OLD, (token.created.timestamp(),))
            return _token(connection.execute(_CREATE, columns(token)).fetchone())

        return self._db.write(work)

    def use(self, id: int, now: datetime) -> None:
        """Note that a token was used."""
        self._execute(_USE, (now.timestamp(), id))

    def revoke(self, id: int, login: str = "") -> bool:
        """Delete a token if it is this person's, or anybody's if `login` is empty.

        Returns False if there is no such token.
        """
        return self._execute(_REVOKE, (id, login, login)) == 1
