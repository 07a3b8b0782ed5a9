"""A visit's three steps at the store: claim the session, read its facts, record the decision."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime

import msgspec

from bot.store.base import Base
from bot.store.decode import agent_of, ended_of, issue_of, pulls_of, work_of
from bot.store.errors import Fenced, StoreFailure
from bot.store.history import add_history
from bot.store.outbox import add_actions
from bot.store.rows import Row, bad_row, decoded, encoded, moment, seconds
from bot.store.sessions import wishes_of
from bot.store.values import Claim, Recorded
from lifecycle.facts import Done, Facts, Failure
from lifecycle.status import Reason

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
_DECIDED = """UPDATE sessions SET status = :status, reason = :reason, because = :because,
        blockers = :blockers, run = :run, ended = :ended, slot = slot AND NOT :frees_slot,
        since = CASE WHEN status = :status THEN since ELSE :now END,
        decided_at = :now, version = version + 1
    WHERE id = :id"""
OF_SESSION = """SELECT seq, key, state, created, done_at, result, reason, error, action
    FROM outbox WHERE session = ? ORDER BY seq"""


class _Covers(msgspec.Struct, frozen=True):
    """The part of an action that facts need."""

    covers: tuple[str, ...] = ()


_covers = msgspec.json.Decoder(_Covers)


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
            row = connection.execute("SELECT * FROM sessions WHERE id = ?", (session,)).fetchone()
            if row is None:
                raise StoreFailure(f"there is no session {session!r}: `mergewright ls` lists them")
            outbox = connection.execute(OF_SESSION, (session,)).fetchall()
            wishes = wishes_of(connection, session)
        done, pending, failures = _outbox_facts(outbox)
        return Facts(
            session=session,
            project=row["project"],
            created=moment(row["created"]),
            issue=issue_of(row),
            requester=row["requester"],
            agent_type=row["agent_type"],
            branch=row["branch"],
            run=row["run"],
            slot=bool(row["slot"]),
            agent=agent_of(row),
            work=work_of(row),
            pulls=pulls_of(row),
            wishes=wishes,
            done=done,
            pending=pending,
            failures=failures,
            ended=ended_of(row),
        )

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
    }
    news = bool(new) or any(row[column] != value for column, value in said.items())
    changed = any(row[column] != value for column, value in held.items())
    frees_slot = decision.frees_slot and bool(row["slot"])
    if not (news or changed or frees_slot):
        return False
    at = now.timestamp()
    values = {**said, **held, "id": row["id"], "frees_slot": decision.frees_slot, "now": at}
    connection.execute(_DECIDED, values)
    if news:
        data = {**said, "blockers": decision.blockers, "actions": new}
        add_history(connection, row["id"], "decision", "", data, now)
    return True


def _outbox_facts(
    rows: Sequence[Row],
) -> tuple[dict[str, Done], frozenset[str], dict[str, Failure]]:
    done: dict[str, Done] = {}
    pending: set[str] = set()
    failures: dict[str, Failure] = {}
    for row in rows:
        keys = (row["key"], *decoded(_covers, row, "outbox", "seq", "action").covers)
        if row["state"] == "due":
            pending.update(keys)
        elif row["state"] == "done":
            done.update(dict.fromkeys(keys, Done(at=moment(row["done_at"]), result=row["result"])))
        else:
            failures[row["key"]] = Failure(
                at=moment(row["done_at"]), reason=_reason(row), detail=row["error"]
            )
    return done, frozenset(pending), failures


def _reason(row: Row) -> Reason:
    try:
        return Reason(row["reason"])
    except ValueError as error:
        raise bad_row("outbox", row["seq"], "reason", error) from error
