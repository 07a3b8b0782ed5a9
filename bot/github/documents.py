"""The GraphQL documents: a file in `queries/` for each need, with the fragments they share."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

_FRAGMENT = re.compile(r"^fragment (\w+) on .*?^}\n", re.MULTILINE | re.DOTALL)
_SPREAD = re.compile(r"\.\.\.(\w+)")
_BATCH = """query {name}($owner: String!, $name: String!) {{
  rateLimit {{ ...Points }}
  repository(owner: $owner, name: $name) {{
    {asked}
  }}
}}
"""
_OLDEST_FIRST = "states: [OPEN], first: 100, orderBy: { field: CREATED_AT, direction: ASC }"


def names() -> list[str]:
    """Every document that has a file of its own."""
    found = (file.name for file in files("bot.github").joinpath("queries").iterdir())
    return sorted(name.removesuffix(".graphql") for name in found if name != "fragments.graphql")


@cache
def load_query(name: str) -> str:
    """`queries/NAME.graphql` with the shared fragments it uses; GitHub refuses any other."""
    return _whole(_text(name))


def fingerprints(issues: Iterable[int], pulls: Iterable[int]) -> str:
    """Asks how each of these issues and pull requests stands, by the alias `n` and its number."""
    asked = [
        *(f"n{number}: issue(number: {number}) {{ ...IssueFingerprint }}" for number in issues),
        *(f"n{number}: pullRequest(number: {number}) {{ ...PullFingerprint }}" for number in pulls),
    ]
    return _batch("Fingerprints", asked)


def labelled_issues(words: Mapping[str, str | None]) -> str:
    """Asks for the open issues that wear each word, from its cursor on, as `l0`, `l1` and so on.

    A word is a label, or `@login` for those that are assigned to somebody. One list for each: what
    GitHub makes of several labels in one is nowhere said.
    """
    lists = enumerate(words.items())
    return _batch("Labelled", (f"l{at}: {_issues(word, after)}" for at, (word, after) in lists))


def _issues(word: str, after: str | None) -> str:
    """One list of issues. What JSON makes of a text, GraphQL reads as that text."""
    assigned = word.startswith("@")
    text = json.dumps(word.removeprefix("@"), ensure_ascii=False)
    worn = f"filterBy: {{ assignee: {text} }}" if assigned else f"labels: [{text}]"
    return f"issues({worn}, after: {json.dumps(after)}, {_OLDEST_FIRST}) {{ ...Numbers }}"


def _batch(name: str, asked: Iterable[str]) -> str:
    return _whole(_BATCH.format(name=name, asked="\n    ".join(asked)))


def _whole(text: str) -> str:
    shared = _shared()
    used: dict[str, str] = {}
    waiting = _SPREAD.findall(text)
    while waiting:
        name = waiting.pop()
        if name in shared and name not in used:
            used[name] = shared[name]
            waiting += _SPREAD.findall(shared[name])
    return "\n".join([text, *used.values()])


@cache
def _shared() -> dict[str, str]:
    return {found[1]: found[0] for found in _FRAGMENT.finditer(_text("fragments"))}


def _text(name: str) -> str:
    return files("bot.github").joinpath(f"queries/{name}.graphql").read_text(encoding="utf-8")
