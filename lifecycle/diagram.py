"""The documentation's tables and picture, drawn from the tables that decide."""

from collections.abc import Iterator

from lifecycle.reactions import QUIET, REACTIONS
from lifecycle.rules import RULES
from lifecycle.signals import OVER
from lifecycle.status import TERMINAL, Status

_ORDER = {rule.status: place for place, rule in reversed(list(enumerate(RULES)))}


def status_table() -> str:
    """Every status in the order it is read: when it is said, and what follows."""
    lines = ["| status | when | then |", "|---|---|---|"]
    for rule in RULES:
        then = [row.name.replace("_", " ") for row in REACTIONS if rule.status in row.statuses]
        said = ", ".join(then) if rule.status not in QUIET else "nothing by itself"
        lines.append(f"| `{rule.status}` | {rule.reads} | {said or 'nothing by itself'} |")
    return "\n".join(lines)


def mermaid() -> str:
    """The way of a session, as a Mermaid state diagram."""
    return "\n".join(["stateDiagram-v2", *_edges()])


def _edges() -> Iterator[str]:
    path = sorted((s for s in Status if s in _ORDER and s not in TERMINAL), key=_ORDER.__getitem__)
    early = [s for s in path if s in (Status.QUEUED, Status.SPAWNING)]
    stages = [s for s in path if s not in early]
    yield f"    [*] --> {early[0]}"
    yield f"    {early[0]} --> {early[1]}"
    yield f"    {early[1]} --> {Status.WORKING}"
    yield "    state under_way {"
    yield "        direction LR"
    for status in stages:
        yield f"        {status}"
    yield "    }"
    yield f"    under_way --> {Status.CLEANUP}"
    for outcome in sorted(stage.value for stage in OVER):
        yield f"    {Status.CLEANUP} --> {outcome}"
        yield f"    {outcome} --> [*]"
