"""Explains a decision on a session: its facts, its signals and the rule that applies."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from bot.show.json_values import json_value
from bot.show.session_detail import Explanation
from bot.text import page_text
from bot.text.history import describe_action
from lifecycle.judge.rules import rule_for

#: Longer texts are cut. A text may contain the logs of many checks.
_MOST_CHARACTERS = 50_000
#: The groups of facts, each with its fields.
_GROUPS: Final = (
    ("Issue", ("origin", "issue", "requester")),
    ("Agent", ("agent_type", "agent_name", "run", "agent")),
    ("Workspace", ("branch", "work")),
    ("Pull requests", ("pulls",)),
    ("Commands", ("commands",)),
    ("Actions", ("done", "pending", "sent", "failures")),
    ("Queue and outcome", ("slot", "waits", "start_due", "ended", "restored_at")),
    ("Budget", ("budget_usd",)),
    ("Spending", ("spent", "spent_ever", "spent_beside", "spent_today")),
    ("Spending of the requester and the agent", ("spent_by_person", "spent_by_agent")),
)


class FactGroup(Struct, frozen=True, kw_only=True):
    """Some of a session's facts under one title."""

    title: str
    text: str  #: The facts as indented JSON.
    complete: bool  #: If False, the end of the text is left out.


class ExplainedDecision(Struct, frozen=True, kw_only=True):
    """The facts of a session, the signals that are derived from them, and the rule that applies."""

    status: str
    because: str  #: The reason for the status, in words.
    rule: str  #: The condition of the rule that applies, in words.
    signals: tuple[tuple[str, str], ...]  #: Names and values.
    actions: tuple[str, ...]  #: What the bot does next, in words.
    facts: tuple[FactGroup, ...]


def explained(found: Explanation) -> ExplainedDecision:
    """Return an explanation in the form that the page shows: in words, with the facts as JSON."""
    decision = found.decision
    signals = msgspec.structs.asdict(decision.signals)
    return ExplainedDecision(
        status=decision.status,
        because=page_text.line(decision.because),
        rule=rule_for(decision.signals).reads,
        signals=tuple((name, str(value).lower()) for name, value in signals.items()),
        actions=tuple(map(describe_action, decision.actions)),
        facts=tuple(_group(found, title, fields) for title, fields in _GROUPS),
    )


def _group(found: Explanation, title: str, fields: Sequence[str]) -> FactGroup:
    values = {name: json_value(getattr(found.facts, name)) for name in fields}
    text = msgspec.json.format(msgspec.json.encode(values), indent=2).decode()
    return FactGroup(
        title=title,
        text=page_text.block(text[:_MOST_CHARACTERS]),
        complete=len(text) <= _MOST_CHARACTERS,
    )
