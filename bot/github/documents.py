"""The GraphQL documents: a file in `queries/` for each need, with the fragments they share."""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

_FRAGMENT = re.compile(r"^fragment (\w+) on .*?^}\n", re.MULTILINE | re.DOTALL)
_SPREAD = re.compile(r"\.\.\.(\w+)")
_GLANCES = """query Glances($owner: String!, $name: String!) {{
  rateLimit {{ ...Points }}
  repository(owner: $owner, name: $name) {{
    {asked}
  }}
}}
"""


def names() -> list[str]:
    """Every document that has a file of its own."""
    found = (file.name for file in files("bot.github").joinpath("queries").iterdir())
    return sorted(name.removesuffix(".graphql") for name in found if name != "fragments.graphql")


@cache
def document(name: str) -> str:
    """`queries/NAME.graphql` with the shared fragments it uses; GitHub refuses any other."""
    return _whole(_text(name))


def glances(issues: Iterable[int], pulls: Iterable[int]) -> str:
    """Asks how each of these issues and pull requests stands, by the alias `n` and its number."""
    asked = [
        *(f"n{number}: issue(number: {number}) {{ ...IssueGlance }}" for number in issues),
        *(f"n{number}: pullRequest(number: {number}) {{ ...PullGlance }}" for number in pulls),
    ]
    return _whole(_GLANCES.format(asked="\n    ".join(asked)))


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
