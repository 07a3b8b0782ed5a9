"""Defines who sends a request, and what each route requires of them."""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum, auto
from typing import Any, Final

from litestar.connection import ASGIConnection
from litestar.datastructures import State
from msgspec import Struct

from lifecycle.model.roles import Role

Connection = ASGIConnection[Any, Any, Any, State]


class Visitor(Struct, frozen=True, kw_only=True):
    """Who sent a request."""

    login: str = ""  #: On GitHub; if empty, somebody with the page token, who may do everything.
    user: int = 0  #: GitHub's ID of the account.
    most: Role = Role.ADMIN  #: The highest role that the visitor's personal token allows, if any.
    expires: datetime | None = None  #: Of a personal token.
    #: Whether the request has a bearer token. A cookie does not count, because browsers also add it
    #: to requests that other sites cause.
    bears: bool = False
    sign_in: str = ""  #: The hash of the first cookie of the sign-in; empty for a token.


class Where(Enum):
    """In which projects a visitor needs a role."""

    NOWHERE = auto()  #: Everybody may use the route.
    SESSION = auto()  #: A role in the project of the session in the path.
    ANYWHERE = auto()  #: A role in any project. The visitor's roles decide what the route shows.
    EVERYWHERE = auto()  #: A role in all projects: the route concerns the whole bot.


class Needs(Struct, frozen=True):
    """What a route requires of a visitor. Nobody may use a route whose options lack a `Needs`."""

    where: Where
    role: Role = Role.NONE


#: The option of a route's handler that says what it requires.
NEEDS: Final = "needs"


def public() -> Mapping[str, Needs]:
    """Return the options of a route that everybody may use."""
    return {NEEDS: Needs(Where.NOWHERE)}


def in_session(role: Role) -> Mapping[str, Needs]:
    """Return the options of a route that requires this role in the project of its session."""
    return {NEEDS: Needs(Where.SESSION, role)}


def anywhere(role: Role) -> Mapping[str, Needs]:
    """Return the options of a route that requires this role in at least one project."""
    return {NEEDS: Needs(Where.ANYWHERE, role)}


def everywhere(role: Role) -> Mapping[str, Needs]:
    """Return the options of a route that requires this role in all projects."""
    return {NEEDS: Needs(Where.EVERYWHERE, role)}
