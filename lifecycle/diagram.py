"""Generates the documentation's table of statuses and state diagram from the rules.

https://mermaid.js.org/syntax/stateDiagram.html
"""

from collections.abc import Iterator
from itertools import pairwise

from lifecycle.judge.commands import COMMAND_RULES
from lifecycle.judge.rules import RULES
from lifecycle.judge.signals import OVER
from lifecycle.model.status import TERMINAL, Status
from lifecycle.react.reactions import REACTIONS, UNDER_WAY
from lifecycle.react.runs import release, stop
from lifecycle.read.restores import RESTORABLE, RESTORES

#: What the first rule of each status reads, in words.
_READS = {rule.status: rule.reads for rule in reversed(RULES)}
_ORDER = list(dict.fromkeys(rule.status for rule in RULES))
_OUTCOMES = [status for status in _ORDER if status.value in OVER]


def status_table() -> str:
    """Return every rule in order, with its condition."""
    lines = ["| status | when |", "|---|---|"]
    lines += [f"| `{rule.status}` | {rule.reads} |" for rule in RULES]
    return "\n".join(lines)


def mermaid() -> str:
    """Return the lifecycle of a session as a Mermaid state diagram."""
    return "\n".join(["stateDiagram-v2", *(f"    {line}" for line in _lines())])


def _lines() -> Iterator[str]:
    yield "[*] --> live"
    yield "state live {"
    yield from (f"    {line}" for line in _live())
    yield "}"
    for outcome in _OUTCOMES:
        yield f"live --> {outcome}: {_READS[outcome]}"
    for outcome in _OUTCOMES:
        if any(outcome in row.statuses for row in REACTIONS if row.then in (stop, release)):
            yield f"{outcome} --> {Status.CLEANUP}"
    yield f"note right of {Status.CLEANUP} : {_READS[Status.CLEANUP]}"
    for outcome in _OUTCOMES:
        if outcome in RESTORABLE:
            yield f"{outcome} --> live: {' or '.join(RESTORES)}"
        else:
            yield f"{outcome} --> [*]"


def _live() -> Iterator[str]:
    """The statuses of a session that is not over, and how it changes between them."""
    under_way = [status for status in _ORDER if status in UNDER_WAY]
    before = [s for s in _ORDER if s not in TERMINAL | UNDER_WAY and s is not Status.PAUSED]
    path = [*before, "under_way"]
    yield f"[*] --> {path[0]}"
    yield from (f"{one} --> {next_one}" for one, next_one in pairwise(path))
    yield f"under_way --> {Status.PAUSED}: {_READS[Status.PAUSED]}"
    leaving = [kind for kind, rule in COMMAND_RULES.items() if Status.PAUSED in rule.vain]
    yield f"{Status.PAUSED} --> under_way: {' or '.join(leaving)}"
    yield "state under_way {"
    yield "    direction LR"
    yield from (f"    {status}" for status in under_way)
    yield "}"
