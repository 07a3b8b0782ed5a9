"""Replays recorded decisions: decides again from the recorded facts and compares the results."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from bot.store import HistoryRow, ReplayableDecision
from lifecycle.decide import decide

#: The fields of a decision that are in its history row. Other fields are in the decision's record.
_IN_HISTORY = ("status", "reason", "because", "blockers")


class Difference(Struct, frozen=True, kw_only=True):
    """A field of a decision whose replayed value differs from the recorded one."""

    field: str
    then: Any  #: The recorded value.
    now: Any  #: The replayed value.


class ReplayedDecision(Struct, frozen=True, kw_only=True):
    """A recorded decision and how its replay differs from it."""

    row: HistoryRow
    differences: tuple[Difference, ...]  #: If empty, the replay is equal.


def replay(decisions: Iterable[ReplayableDecision]) -> Iterator[ReplayedDecision]:
    """Repeat each decision with its recorded facts, policy and time; yield the comparison."""
    for kept in decisions:
        again = decide(kept.facts, kept.policy, kept.row.at)
        now = msgspec.json.decode(msgspec.json.encode(again))
        then = {**kept.decision, **{name: kept.row.data.get(name) for name in _IN_HISTORY}}
        differences = [
            Difference(field=name, then=value, now=now.get(name))
            for name, value in then.items()
            if now.get(name) != value
        ]
        # The history row has only the new actions; the record has all of them.
        recorded, keys = kept.row.data.get("actions", []), [str(one.key) for one in again.actions]
        if not set(recorded) <= set(keys):
            differences.append(Difference(field="new actions", then=recorded, now=keys))
        yield ReplayedDecision(row=kept.row, differences=tuple(differences))
