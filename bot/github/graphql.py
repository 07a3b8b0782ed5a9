"""Builds GraphQL queries from the files in `queries/`, and defines the envelope of responses."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from msgspec import Raw, Struct

from bot.github.errors import GraphQLError
from bot.github.snapshots import PointBudget

_FRAGMENT = re.compile(r"^fragment (\w+) on .*?^}\n", re.MULTILINE | re.DOTALL)
_SPREAD = re.compile(r"\.\.\.(\w+)")
_BATCH = """query {name}($owner: String!, $name: String!) {{
  rateLimit {{ ...Points }}
  repository(owner: $owner, name: $name) {{
    {fields}
  }}
}}
"""
_OLDEST_FIRST = "states: [OPEN], first: 100, orderBy: { field: CREATED_AT, direction: ASC }"


class Envelope(Struct, frozen=True):
    """The top level of every response; `data` is JSON that is not decoded yet."""

    data: Raw = Raw(b"null")
    errors: tuple[GraphQLError, ...] | None = None


class _Price(Struct, frozen=True, rename="camel"):
    rate_limit: PointBudget | None = None


class PricedResponse(Struct, frozen=True):
    """The field `rateLimit` of a response; null if not queried, or on a server without limits."""

    data: _Price | None = None


@cache
def load_query(name: str) -> str:
    """Return `queries/NAME.graphql` with the fragments that it uses. GitHub refuses unused ones."""
    return _with_fragments(_text(name))


def fingerprints(issues: Iterable[int], pulls: Iterable[int]) -> str:
    """Return a query for fingerprints; the alias `n12` is issue or pull request 12."""
    fields = [
        *(f"n{number}: issue(number: {number}) {{ ...IssueFingerprint }}" for number in issues),
        *(f"n{number}: pullRequest(number: {number}) {{ ...PullFingerprint }}" for number in pulls),
    ]
    return _batch("Fingerprints", fields)


def branches(pulls: Iterable[int]) -> str:
    """Return a query for the head branches of pull requests; the alias `n12` is pull request 12."""
    fields = [f"n{number}: pullRequest(number: {number}) {{ headRefName }}" for number in pulls]
    return _batch("Branches", fields)


def labelled_issues(cursors: Mapping[str, str | None]) -> str:
    """Return a query for open issues by label or assignee (`@login`), with aliases from `l0` on.

    `cursors` maps each label or assignee to the cursor at which its list continues, or None for the
    beginning. Each label has a list of its own, because GitHub does not document how one list would
    combine several labels.
    """
    lists = enumerate(cursors.items())
    return _batch("Labelled", (f"l{at}: {_issues(word, after)}" for at, (word, after) in lists))


def _issues(word: str, after: str | None) -> str:
    # A JSON string is a GraphQL string too.
    text = json.dumps(word.removeprefix("@"), ensure_ascii=False)
    by = f"filterBy: {{ assignee: {text} }}" if word.startswith("@") else f"labels: [{text}]"
    return f"issues({by}, after: {json.dumps(after)}, {_OLDEST_FIRST}) {{ ...Numbers }}"


def _batch(name: str, fields: Iterable[str]) -> str:
    return _with_fragments(_BATCH.format(name=name, fields="\n    ".join(fields)))


def _with_fragments(text: str) -> str:
    shared = _fragments()
    used: dict[str, str] = {}
    waiting = _SPREAD.findall(text)
    while waiting:
        name = waiting.pop()
        if name in shared and name not in used:
            used[name] = shared[name]
            waiting += _SPREAD.findall(shared[name])
    return "\n".join([text, *used.values()])


@cache
def _fragments() -> dict[str, str]:
    return {found[1]: found[0] for found in _FRAGMENT.finditer(_text("fragments"))}


def _text(name: str) -> str:
    return files("bot.github").joinpath(f"queries/{name}.graphql").read_text(encoding="utf-8")
