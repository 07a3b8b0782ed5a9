"""Cursor pagination, and GraphQL errors that have a type."""

import base64
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]


class QueryError(Exception):
    """An error in GitHub's own words, with its `type`."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(message)
        self.type = type


def connection(items: Iterable[Any], arguments: Json) -> Json:
    """Return the page of `items` that the arguments first, last, after and before select."""
    everything = list(items)
    start = _position(arguments["after"]) + 1 if arguments.get("after") else 0
    end = _position(arguments["before"]) if arguments.get("before") else len(everything)
    begin, stop = start, end
    if (first := arguments.get("first")) is not None:
        stop = min(stop, begin + first)
    if (last := arguments.get("last")) is not None:
        begin = max(begin, stop - last)
    nodes = everything[begin:stop]
    cursors = [_cursor(begin + n) for n in range(len(nodes))]
    return {
        "totalCount": len(everything),
        "nodes": nodes,
        "edges": [{"cursor": c, "node": node} for c, node in zip(cursors, nodes, strict=True)],
        "pageInfo": {
            "startCursor": cursors[0] if cursors else None,
            "endCursor": cursors[-1] if cursors else None,
            "hasNextPage": stop < len(everything),
            "hasPreviousPage": begin > 0,
        },
    }


def _cursor(position: int) -> str:
    return base64.b64encode(f"cursor:v2:{position}".encode()).decode()


def _position(cursor: str) -> int:
    try:
        return int(base64.b64decode(cursor).decode().rpartition(":")[2])
    except ValueError:
        message = f"`{cursor}` does not appear to be a valid cursor."
        raise QueryError("INVALID_CURSOR_ARGUMENTS", message) from None
