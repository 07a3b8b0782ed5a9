"""The outside of GraphQL's answers, around what was asked for."""

from collections.abc import Mapping

from msgspec import Raw, Struct

from bot.github.responses import GraphQLError
from bot.github.snapshots import PointBudget

#: Fields that need rights the bot can do without: where they are refused, they read as null.
OPTIONAL = {"branchProtectionRule", "rules"}
UNREADABLE = {"FORBIDDEN", "INSUFFICIENT_SCOPES", "NOT_FOUND"}


class Envelope(Struct, frozen=True):
    """The outside of every answer of GraphQL."""

    data: Raw = Raw(b"null")
    errors: tuple[GraphQLError, ...] | None = None


class QueryPrice(Struct, frozen=True, rename="camel"):
    """What most queries ask for beside all else; null where the server has no limit."""

    rate_limit: PointBudget | None = None


class PricedResponse(Struct, frozen=True):
    """An answer of GraphQL, as far as it tells its price."""

    data: QueryPrice | None = None


class GraphQLResponse(Struct, frozen=True):
    """What GraphQL answered."""

    data: Raw
    problems: tuple[GraphQLError, ...]
    headers: Mapping[str, str]


class AliasedData(Struct, frozen=True):
    """What each alias stands for, in the repository that was asked for."""

    repository: dict[str, Raw]


def is_optional(problem: GraphQLError) -> bool:
    """Whether it concerns nothing but a field that may be left out."""
    return problem.type in UNREADABLE and not OPTIONAL.isdisjoint(problem.path or ())


def is_missing(problem: GraphQLError) -> bool:
    """Whether the thing asked for is missing in a repository that is there and may be seen."""
    path = problem.path or ()
    return problem.type == "NOT_FOUND" and len(path) == 2 and path[0] == "repository"
