"""Generates the tables of the core and the state diagram that the documents contain.

https://mermaid.js.org/syntax/stateDiagram.html
"""

import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import pairwise
from typing import Any

from lifecycle.judge.commands import COMMAND_RULES
from lifecycle.judge.escalations import ESCALATIONS
from lifecycle.judge.pauses import PAUSES
from lifecycle.judge.reasons import ADVICE
from lifecycle.judge.rules import BLOCKERS, RULES
from lifecycle.judge.signals import OVER
from lifecycle.judge.stalls import STALLS
from lifecycle.model.policy import Policy
from lifecycle.model.status import TERMINAL, Status
from lifecycle.react.reactions import EVERY, REACTIONS, UNDER_WAY
from lifecycle.react.runs import release, stop
from lifecycle.read.budgets import BUDGETS
from lifecycle.read.restores import RESTORABLE, RESTORES

Cells = tuple[str, ...]  #: The texts of one row.

#: Sets of statuses that have a name.
_NAMED = {EVERY: "every status", UNDER_WAY: "all that are under way"}
_DEFAULTS = Policy()


def rules() -> Iterator[Cells]:
    """Yield a header, then every rule in order."""
    yield "", "status", "when", "because"
    for place, row in enumerate(RULES, 1):
        yield (
            str(place),
            f"`{row.status}`",
            row.reads,
            row.because.replace("{why}", "(its evidence)"),
        )


def reactions() -> Iterator[Cells]:
    """Yield a header, then every reaction in order, with the settings it uses."""
    yield "reaction", "in", "what follows", "defaults"
    for row in REACTIONS:
        yield f"`{row.name}`", _statuses(row.statuses), _says(row.then), _defaults(row.then)


def blockers() -> Iterator[Cells]:
    """Yield a header, then every blocker of a merge."""
    yield "blocker", "sentence"
    for row in BLOCKERS:
        yield f"`{row.name}`", row.sentence


def escalations() -> Iterator[Cells]:
    """Yield a header, then the escalations in order; people are notified of the first to apply."""
    yield "cause", "status", "condition", "defaults"
    for status, rows in (
        (Status.NEEDS_INPUT, ESCALATIONS),
        (Status.STUCK, STALLS),
        (Status.PAUSED, PAUSES),
    ):
        for row in rows:
            yield f"`{row.__name__}`", f"`{status}`", _says(row), _defaults(row)


def budgets() -> Iterator[Cells]:
    """Yield a header, then every budget: a limit on dollars, hours of work or tokens."""
    yield "budget", "limit", "reset", "defaults"
    for row in BUDGETS:
        reset = "at midnight, UTC" if row.of_day else ""
        says = re.sub(r"\{limit(:[^}]*)?\}", "N", row.says)
        yield f"`{row.name}`", says, reset, _default(row.setting)


def remedies() -> Iterator[Cells]:
    """Yield a header, then each reason that has a remedy."""
    yield "reason", "remedy", "command to retry with"
    for reason, advice in ADVICE.items():
        yield f"`{reason}`", advice.remedy, f"`{advice.again}`" if advice.again else ""


def commands() -> Iterator[Cells]:
    """Yield a header, then the commands with the statuses they work in and their replies."""
    yield "command", "works in", "reply", "reply elsewhere"
    for kind, row in COMMAND_RULES.items():
        answer = row.applied.replace("\n", " ") or "its effect"
        elsewhere = row.otherwise or "works everywhere"
        elsewhere += f" After its end: {row.over}" if row.over else ""
        elsewhere += f" Without effect: {row.if_ineffective}" if row.if_ineffective else ""
        yield f"`{kind}`", _statuses(row.works), answer, elsewhere


def _statuses(statuses: frozenset[Status]) -> str:
    if statuses in _NAMED:
        return _NAMED[statuses]
    if len(statuses) > len(Status) / 2:
        return f"all but {_listed(EVERY - statuses)}"
    return _listed(statuses)


def _listed(statuses: frozenset[Status]) -> str:
    return ", ".join(f"`{status}`" for status in Status if status in statuses)


def _says(row: Callable[..., Any]) -> str:
    return " ".join((row.__doc__ or "").split("\n\n")[0].split())


def _defaults(row: Callable[..., Any]) -> str:
    """Return the fields of `Policy` that a row's source uses, with their defaults."""
    named = dict.fromkeys(re.findall(r"\bpolicy\.(\w+)", inspect.getsource(row)))
    return ", ".join(map(_default, named))


def _default(name: str) -> str:
    return f"`{name.replace('_', '-')}` {_value(name)}"


def _value(name: str) -> str:
    value = getattr(_DEFAULTS, name)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, tuple):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else f"{value:.12g}"


#: The condition of each status's first rule, in words.
_READS = {rule.status: rule.reads for rule in reversed(RULES)}
_ORDER = list(dict.fromkeys(rule.status for rule in RULES))
_OUTCOMES = [status for status in _ORDER if status.value in OVER]


def status_table() -> str:
    """Return a Markdown table of every rule in order, with its status and condition."""
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
            yield f"{outcome} --> live: {RESTORES}"
        else:
            yield f"{outcome} --> [*]"


def _live() -> Iterator[str]:
    """Yield the statuses of a session that has not ended, and the transitions between them."""
    under_way = [status for status in _ORDER if status in UNDER_WAY]
    before = [s for s in _ORDER if s not in TERMINAL | UNDER_WAY and s is not Status.PAUSED]
    path = [*before, "under_way"]
    yield f"[*] --> {path[0]}"
    yield from (f"{one} --> {next_one}" for one, next_one in pairwise(path))
    yield f"under_way --> {Status.PAUSED}: {_READS[Status.PAUSED]}"
    leaving = [kind for kind, rule in COMMAND_RULES.items() if Status.PAUSED in rule.ineffective]
    yield f"{Status.PAUSED} --> under_way: {' or '.join(leaving)}"
    yield "state under_way {"
    yield "    direction LR"
    yield from (f"    {status}" for status in under_way)
    yield "}"
