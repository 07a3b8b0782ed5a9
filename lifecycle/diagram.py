"""The documentation's tables and picture, drawn from the tables that decide."""

from collections.abc import Iterator

from lifecycle.judge.rules import RULES
from lifecycle.judge.signals import OVER
from lifecycle.model.status import TERMINAL, Status

_ORDER = {rule.status: place for place, rule in reversed(list(enumerate(RULES)))}


def status_table() -> str:
    """Every status in the order it is read, with when it is said."""
    lines = ["| status | when |", "|---|---|"]
    lines += [f"| `{rule.status}` | {rule.reads} |" for rule in RULES]
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
