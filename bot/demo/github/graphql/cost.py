"""Computes the cost of a document by GitHub's formula, and whether it exceeds the limits.

GitHub's published rule: for each connection, count the requests that it takes if every connection
around it is full; the cost is their sum divided by 100, and at least 1. A document may request at
most 500,000 nodes. Every connection needs `first` or `last`, between 1 and 100.
"""

from dataclasses import dataclass, field
from typing import Any

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
    get_named_type,
)

_MOST_NODES = 500_000
_MOST_AT_ONCE = 100


@dataclass
class Cost:
    """The cost of a document. `errors` are in GitHub's format."""

    schema: GraphQLSchema
    fragments: dict[str, FragmentDefinitionNode]
    variables: dict[str, Any]
    requests: int = 0
    nodes: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)

    @property
    def points(self) -> int:
        return max(1, round(self.requests / 100))

    def count(self, operation: OperationDefinitionNode) -> None:
        root = self.schema.get_root_type(operation.operation)
        self._walk(operation.selection_set, root, 1, [operation.operation.value])
        if self.nodes > _MOST_NODES:
            message = (
                f"This query requests up to {self.nodes:,} possible nodes which exceeds the "
                f"maximum limit of {_MOST_NODES:,}."
            )
            self.errors.append({"type": "MAX_NODE_LIMIT_EXCEEDED", "message": message})

    def _walk(self, chosen: SelectionSetNode, parent: Any, times: int, path: list[str]) -> None:
        for node in chosen.selections:
            if isinstance(node, FragmentSpreadNode):
                fragment = self.fragments[node.name.value]
                on = self.schema.get_type(fragment.type_condition.name.value)
                self._walk(fragment.selection_set, on, times, path)
            elif isinstance(node, InlineFragmentNode):
                condition = node.type_condition
                on = self.schema.get_type(condition.name.value) if condition else parent
                self._walk(node.selection_set, on, times, path)
            elif isinstance(node, FieldNode) and node.selection_set:
                known = parent.fields[node.name.value]
                below = get_named_type(known.type)
                size = 1
                if isinstance(below, GraphQLObjectType) and below.name.endswith("Connection"):
                    size = self._connection(node, times, [*path, node.name.value])
                self._walk(node.selection_set, below, times * size, [*path, node.name.value])

    def _connection(self, node: FieldNode, times: int, path: list[str]) -> int:
        """Count a connection that is requested `times` times; return how many items it may have."""
        self.requests += times
        bounds = {
            argument.name.value: self._value(argument.value)
            for argument in node.arguments
            if argument.name.value in ("first", "last")
        }
        bounds = {name: value for name, value in bounds.items() if value is not None}
        name = node.name.value
        if not bounds:
            chosen = {one.to_dict().get("name", {}).get("value") for one in _fields(node)}
            if chosen <= {"totalCount", "__typename"}:
                return 1
            self._refuse(
                node,
                path,
                "MISSING_PAGINATION_BOUNDARIES",
                f"You must provide a `first` or `last` value to properly paginate the `{name}` "
                "connection.",
            )
            return 1
        which, size = next(iter(bounds.items()))
        if size > _MOST_AT_ONCE:
            self._refuse(
                node,
                path,
                "EXCESSIVE_PAGINATION",
                f"Requesting {size} records on the `{name}` connection exceeds the `{which}` "
                f"limit of {_MOST_AT_ONCE} records.",
            )
        self.nodes += times * size
        return int(size)

    def _value(self, value: object) -> Any:
        if isinstance(value, VariableNode):
            return self.variables.get(value.name.value)
        return int(value.value) if isinstance(value, IntValueNode) else None

    def _refuse(self, node: FieldNode, path: list[str], kind: str, message: str) -> None:
        where = node.loc.start_token if node.loc else None
        locations = [{"line": where.line, "column": where.column}] if where else []
        refused = {"type": kind, "path": path, "locations": locations, "message": message}
        self.errors.append(refused)


def _fields(node: FieldNode) -> tuple[Any, ...]:
    return node.selection_set.selections if node.selection_set else ()
