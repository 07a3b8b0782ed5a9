"""GraphQL over HTTP: parse, price, execute, and answer with GitHub's errors."""

from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLResolveInfo,
    GraphQLSchema,
    OperationDefinitionNode,
    build_schema,
    execute_sync,
    parse,
    validate,
)

from bot.demo.github.graphql.connections import Json, QueryError
from bot.demo.github.graphql.conversations import viewer
from bot.demo.github.graphql.cost import Cost
from bot.demo.github.graphql.mutations import MUTATIONS
from bot.demo.github.graphql.views import VIEWS, resolve
from bot.demo.github.http import Answer, Problem, Request
from bot.demo.github.repository import Forge, Repository
from bot.demo.github.rest.endpoint import authenticate
from bot.demo.github.shapes.base import time_of
from bot.demo.github.traffic import Traffic

_DOCS = "https://docs.github.com/graphql"
_NO_ONE = "This endpoint requires you to be authenticated."
_LIMITED = {"type": "RATE_LIMITED", "message": "API rate limit already exceeded for user."}


class GraphQL:
    def __init__(self, world: Forge, traffic: Traffic) -> None:
        self.world = world
        self.traffic = traffic
        self._schema = _schema()

    def answer(self, request: Request) -> tuple[Answer, str]:
        """Return the response to a request, and the name of its operation from `_named`.

        The name is empty if the document is invalid, or if it was not parsed because the request
        was refused.
        """
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "X-GitHub-Media-Type": "github.v4; format=json",
            "X-GitHub-Request-Id": self.world.identity("Q")["node_id"],
        }
        body: Json
        operation, points = "", 1
        try:
            authenticate(request)
            if request.token is None:
                raise Problem(401, _NO_ONE, docs=_DOCS)
            if self.traffic.refuses(request.login, "graphql"):
                body = {"errors": [_LIMITED]}
                points = 0
            else:
                with self.world.lock:
                    body, operation, points = self._run(request)
            answer = Answer(body=body)
        except Problem as problem:
            answer = Answer(status=problem.status, body=problem.body)
        left = self.traffic.spend(request.login, "graphql", points)
        limits = {f"X-RateLimit-{name.title()}": str(value) for name, value in left.items()}
        answer.headers = {**headers, **limits, "X-RateLimit-Resource": "graphql"}
        return answer, operation

    def _run(self, request: Request) -> tuple[Json, str, int]:
        given = request.json
        variables = given.get("variables") or {}
        document, wrong = _read(given.get("query") or "")
        if wrong:
            return {"errors": [_error(error) for error in wrong]}, "", 1
        chosen = next(
            part for part in document.definitions if isinstance(part, OperationDefinitionNode)
        )
        fragments = {
            part.name.value: part
            for part in document.definitions
            if isinstance(part, FragmentDefinitionNode)
        }
        cost = Cost(self._schema, fragments, variables)
        cost.count(chosen)
        operation = _named(chosen)
        if cost.errors:
            return {"errors": cost.errors}, operation, cost.points
        result = execute_sync(
            self._schema,
            document,
            root_value=self._root(request, cost),
            context_value=request,
            field_resolver=resolve,
            variable_values=variables,
            operation_name=given.get("operationName"),
        )
        body: Json = {"data": result.data}
        if result.errors:
            body["errors"] = [_error(error) for error in result.errors]
        return body, operation, cost.points

    def _root(self, request: Request, cost: Cost) -> Json:
        assert request.token is not None

        def repository(info: GraphQLResolveInfo, owner: str, name: str, **_: Any) -> Repository:
            asked = f"{owner}/{name}".lower()
            repo = self.world.repositories.get(asked) or self.world.moved.get(asked)
            if repo is None or not repo.allows(request.login, "read"):
                message = f"Could not resolve to a Repository with the name '{owner}/{name}'."
                raise QueryError("NOT_FOUND", message)
            return repo

        def node(info: GraphQLResolveInfo, id: str) -> Any:
            if type(self.world.nodes.get(id)) not in VIEWS:
                message = f"Could not resolve to a node with the global id of '{id}'"
                raise QueryError("NOT_FOUND", message)
            return self.world.nodes[id]

        def limits(info: GraphQLResolveInfo, **_: Any) -> Json:
            left = self.traffic.spend(request.login, "graphql", 0)
            used = left["used"] + cost.points
            return {
                "cost": cost.points,
                "nodeCount": cost.nodes,
                "limit": left["limit"],
                "used": used,
                "remaining": max(0, left["limit"] - used),
                "resetAt": time_of(left["reset"]),
            }

        return {
            "viewer": viewer(request.token.user, request),
            "repository": repository,
            "node": node,
            "nodes": lambda info, ids: [node(info, one) for one in ids],
            "rateLimit": limits,
            **MUTATIONS,
        }


@cache
def _schema() -> GraphQLSchema:
    return build_schema(files("bot.demo.github.graphql").joinpath("schema.graphql").read_text())


@lru_cache(maxsize=256)
def _read(query: str) -> tuple[DocumentNode, list[GraphQLError]]:
    """Parse and validate a document; return it with its errors. Cached, as documents recur."""
    try:
        document = parse(query)
    except GraphQLError as error:
        return DocumentNode(definitions=()), [error]
    return document, validate(_schema(), document)


def _named(operation: OperationDefinitionNode) -> str:
    """Return the kind of an operation and its top-level fields, e.g. `mutation addComment`."""
    fields = [
        chosen.name.value
        for chosen in operation.selection_set.selections
        if isinstance(chosen, FieldNode)
    ]
    return " ".join([operation.operation.value, *fields])


def _error(error: GraphQLError) -> Json:
    body: Json = {"message": error.message}
    if isinstance(error.original_error, QueryError):
        body = {"type": error.original_error.type, **body}
    if error.path:
        body["path"] = error.path
    if error.locations:
        body["locations"] = [{"line": at.line, "column": at.column} for at in error.locations]
    return body
