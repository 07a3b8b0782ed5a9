"""What every decision of the history was made from, so that it can be made again.

The facts and the decision are kept as compressed JSON, one or two kilobytes a decision; the policy,
which hardly ever changes, once by its hash.
"""

import hashlib
import sqlite3
import zlib
from typing import Any

import msgspec
from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.history import history_row
from bot.store.rows import Row, corrupt_row, decoded, encoded
from bot.store.values import DecisionRecord, HistoryRow
from lifecycle.model.facts import Facts
from lifecycle.model.policy import Policy

_ADD_POLICY = "INSERT INTO policies (hash, policy) VALUES (?, ?) ON CONFLICT DO NOTHING"
_ADD = "INSERT INTO judgements (history, policy, judged) VALUES (?, ?, ?)"
JUDGEMENTS = """SELECT seq, session, at, kind, actor, data, judged, policies.policy
    FROM history JOIN judgements ON judgements.history = seq
    JOIN policies ON policies.hash = judgements.policy
    WHERE session = ? ORDER BY seq"""


class _Judged(Struct, frozen=True, kw_only=True):
    """The column `judged`, before it is compressed."""

    facts: Facts
    decision: dict[str, Any]


class ReplayableDecision(Struct, frozen=True, kw_only=True):
    """A decision of the history with what it was made from."""

    row: HistoryRow
    facts: Facts
    policy: Policy
    decision: dict[str, Any]  #: As it was decided then, in plain JSON.


_judged = msgspec.json.Decoder(_Judged)
_policy = msgspec.json.Decoder(Policy)


class JudgementsTable(StoreTable):
    """The tables of judgements and policies."""

    def of(self, session: str) -> list[ReplayableDecision]:
        """Every decision of a session that is still kept, oldest first.

        Raises `BadRow`: one that were left out would count as one that comes out the same.
        """
        with self._db.read() as connection:
            return [_kept(row) for row in connection.execute(JUDGEMENTS, (session,))]


def add_judgement(connection: sqlite3.Connection, history: int, judgement: DecisionRecord) -> None:
    """Keep, inside a transaction, what a row of the history was decided from."""
    policy = encoded(judgement.policy)
    hashed = hashlib.sha256(policy.encode()).hexdigest()
    connection.execute(_ADD_POLICY, (hashed, policy))
    judged = {"facts": judgement.facts, "decision": judgement.decision}
    connection.execute(_ADD, (history, hashed, zlib.compress(encoded(judged).encode())))


def _kept(row: Row) -> ReplayableDecision:
    try:
        judged = _judged.decode(zlib.decompress(row["judged"]))
    except (zlib.error, msgspec.DecodeError) as error:
        raise corrupt_row("judgements", row["seq"], "judged", error) from error
    return ReplayableDecision(
        row=history_row(row),
        facts=judged.facts,
        policy=decoded(_policy, row, "policies", "seq", "policy"),
        decision=judged.decision,
    )
