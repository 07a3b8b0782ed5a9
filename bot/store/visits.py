"""A visit's three steps at the store: claim the session, read its facts, record the decision."""

import sqlite3
from datetime import datetime

from bot.store.base import Base
from bot.store.errors import BadRow, Fenced, StoreFailure
from bot.store.history import BOT, add_history
from bot.store.judgements import add_judgement
from bot.store.loading import load
from bot.store.outbox import add_actions
from bot.store.rows import Row, encoded, seconds
from bot.store.values import Claim, Kind, Recorded
from lifecycle.facts import Facts

DUE_VISITS = """SELECT id FROM sessions
    WHERE due <= ?1 AND (owner IS NULL OR claimed_until <= ?1) ORDER BY due LIMIT ?2"""
_CLAIM = """UPDATE sessions SET
        epoch = epoch + (owner IS NOT :owner OR claimed_until <= :now),
        owner = :owner, claimed_until = :until
    WHERE id = :id AND (owner IS NULL OR owner = :owner OR claimed_until <= :now)
    RETURNING epoch, version"""
_CLAIMED = "SELECT * FROM sessions WHERE id = ? AND owner = ? AND epoch = ?"
_RELEASE = """UPDATE sessions SET owner = NULL, claimed_until = NULL
    WHERE id = ? AND owner = ? AND epoch = ?"""
# A change that came while we decided keeps its visit: the decision did not know of it.
_RECORD = """UPDATE sessions SET owner = NULL, claimed_until = NULL,
        due = CASE WHEN version = :version THEN :recheck ELSE due END
    WHERE id = :id"""
# Where an outcome is no more, that is a restore: the runs after the last one that started are of
# another life.
_DECIDED = """UPDATE sessions SET status = :status, reason = :reason, because = :because,
        blockers = :blockers, run = :run, ended = :ended, slot = slot AND NOT :frees_slot,
        wants_slot = :wants_slot, waits = CASE WHEN :wants_slot THEN waits ELSE '' END,
        wanted_since = CASE WHEN :wants_slot THEN coalesce(wanted_since, :now) END,
        restored_at = CASE WHEN :restored THEN :now ELSE restored_at END,
        first_run = CASE WHEN :restored THEN 1 + json_extract(agent, '$.run') ELSE first_run END,
        since = CASE WHEN status = :status THEN since ELSE :now END,
        decided_at = :now, version = version + 1
    WHERE id = :id"""


class Visits(Base):
    """What the engine does at the store."""

    def due_visits(self, now: datetime, limit: int = 100) -> list[str]:
        """Sessions to visit now that nobody holds, longest overdue first."""
        with self._read() as connection:
            rows = connection.execute(DUE_VISITS, (now.timestamp(), limit))
            return [row["id"] for row in rows]

    def claim(self, id: str, owner: str, now: datetime, seconds: float) -> Claim | None:
        """Hold a session for `seconds`; None while another owner holds it, or if there is none.

        The epoch grows with every claim but the renewal of one's own that still runs.
        """
        values = {
            "id": id,
            "owner": owner,
            "now": now.timestamp(),
            "until": now.timestamp() + seconds,
        }
        rows = self.write(lambda connection: connection.execute(_CLAIM, values).fetchall())
        if not rows:
            return None
        return Claim(session=id, owner=owner, epoch=rows[0]["epoch"], version=rows[0]["version"])

    def release(self, claim: Claim) -> None:
        """Let go of a session without a decision; it stays due. Nothing if it is not ours."""
        values = (claim.session, claim.owner, claim.epoch)
        self.write(lambda connection: connection.execute(_RELEASE, values))

    def facts(self, of: Claim | str) -> Facts:
        """Everything known of a session, from one state of the store. Raises `BadRow`."""
        session = of if isinstance(of, str) else of.session
        with self._read() as connection:
            facts = dict(load(connection, [session], self.clock())).get(session)
        if facts is None:
            raise StoreFailure(f"there is no session {session!r}: `mergewright ls` lists them")
        if isinstance(facts, BadRow):
            raise facts
        return facts

    def record(self, claim: Claim, decision: Recorded, now: datetime) -> list[str]:
        """Write a decision and what follows from it down, in one transaction, and let go.

        Returns the keys of the actions that are new. The history gets a row only where the
        decision differs from the one before or brings new actions. Raises `Fenced`, with nothing
        written, if the claim is not ours any more.
        """

        def work(connection: sqlite3.Connection) -> tuple[list[str], bool]:
            held = connection.execute(_CLAIMED, (claim.session, claim.owner, claim.epoch))
            row = held.fetchone()
            if row is None:
                raise Fenced(
                    f"session {claim.session!r} was claimed by another while {claim.owner!r}"
                    " decided: nothing was written, the other decides"
                )
            new = add_actions(connection, claim.session, decision.actions, now)
            values = {
                "id": claim.session,
                "version": claim.version,
                "recheck": seconds(decision.recheck_at),
            }
            connection.execute(_RECORD, values)
            return new, _write_decision(connection, row, decision, new, now)

        new, changed = self.write(work)
        if changed:
            self._announce([claim.session])
        return new


def _write_decision(
    connection: sqlite3.Connection, row: Row, decision: Recorded, new: list[str], now: datetime
) -> bool:
    """Write what a decision changed, and its row of history; whether it changed anything."""
    said = {
        "status": decision.status,
        "reason": decision.reason,
        "because": decision.because,
        "blockers": encoded(decision.blockers),
    }
    held = {
        "run": decision.run,
        "ended": None if decision.ended is None else encoded(decision.ended),
        "wants_slot": decision.wants_slot,
    }
    news = bool(new) or any(row[column] != value for column, value in said.items())
    changed = any(row[column] != value for column, value in held.items())
    frees_slot = decision.frees_slot and bool(row["slot"])
    if not (news or changed or frees_slot):
        return False
    at = now.timestamp()
    values = {
        **said,
        **held,
        "id": row["id"],
        "frees_slot": decision.frees_slot,
        "restored": row["ended"] is not None and decision.ended is None,
        "now": at,
    }
    connection.execute(_DECIDED, values)
    if news:
        data = {**said, "blockers": decision.blockers, "actions": new}
        written = add_history(connection, row["id"], Kind.DECISION, BOT, data, now)
        if decision.judgement is not None:
            add_judgement(connection, written, decision.judgement)
    return True
