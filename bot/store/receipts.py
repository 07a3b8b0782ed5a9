"""Receipts: whether messages and answers that were sent to a terminal reached the agent.

A message is a row of the outbox, with its receipt as JSON. The agent observer marks a receipt as
missing after its time limit; the next decision then orders the message again.
"""

import sqlite3
from datetime import datetime

import msgspec
from msgspec.structs import replace

from bot.store.database import StoreTable
from bot.store.history import BOT, add_history, wake
from bot.store.rows import Row, decoded, encoded, key_of, skip_corrupt
from bot.store.values import AwaitedReceipt, HistoryKind, Observation, Receipt

_SENT = """UPDATE outbox SET state = 'sent', receipt = ?, error = ''
    WHERE seq = ? AND state = 'due' RETURNING session"""
_NOTE = "UPDATE outbox SET receipt = ? WHERE seq = ? AND state = 'due'"
_OF_ROW = "SELECT receipt FROM outbox WHERE seq = ? AND state IN ('sent', 'due')"
_RECEIVED = """UPDATE outbox SET state = 'done', result = 'received', done_at = ?,
        attempts = attempts + 1
    WHERE seq = ? AND state IN ('sent', 'due') RETURNING session, key"""
_ADVANCED = "UPDATE outbox SET state = 'due', next_at = ? WHERE seq = ? AND state = 'sent'"
_MISSING = "UPDATE outbox SET receipt = ? WHERE seq = ? AND state = 'sent'"
# One that is due may have been sent before a crash. Two statements, so that each uses its index.
AWAITED = """SELECT seq, session, key, run, state, receipt FROM (
        SELECT seq, session, key, state, action, receipt FROM outbox WHERE state = 'sent'
        UNION ALL SELECT seq, session, key, state, action, receipt FROM outbox
            WHERE state = 'due' AND action ->> 'type' = 'send_message')
    JOIN sessions ON sessions.id = session WHERE action ->> 'run' = run"""

_receipt: msgspec.json.Decoder[Receipt] = msgspec.json.Decoder(Receipt)


class ReceiptsTable(StoreTable):
    """The receipts of messages and of answers to dialogs."""

    def awaited(self) -> list[AwaitedReceipt]:
        """Messages and answers to current runs that may have arrived by now, oldest first.

        A due one is among them: it may have been sent before a crash.
        """
        with self._db.read() as connection:
            found = skip_corrupt(_awaited, connection.execute(AWAITED))
            return sorted(found, key=lambda awaited: awaited.seq)

    def mark_sent(self, seq: int, receipt: Receipt) -> None:
        """Record that a message or an answer was sent, and await its receipt."""

        def work(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(_SENT, (encoded(receipt), seq)).fetchall()
            for row in rows:
                wake(connection, row["session"], receipt.sent.at)
            return [row["session"] for row in rows]

        self._db.announce(self._db.write(work))

    def note(self, seq: int, receipt: Receipt) -> None:
        """Record the receipt of a message or an answer, before it is sent."""
        values = (encoded(receipt), seq)
        self._db.write(lambda connection: connection.execute(_NOTE, values))


def add_receipts(connection: sqlite3.Connection, seen: Observation, now: datetime) -> bool:
    """Inside a transaction: record which messages arrived. Returns whether anything changed.

    A message counts as done from when it was sent if the agent's activity, recorded with it, began
    later; otherwise from now on, because what is known of the agent is older than the message.
    """
    changed = 0
    for seq in seen.received:
        receipt = _of_row(connection, seq)
        since = seen.agent.since if seen.agent else None
        at = receipt.sent.at if receipt and since and since > receipt.sent.at else now
        for row in connection.execute(_RECEIVED, (at.timestamp(), seq)).fetchall():
            data = {"action": row["key"], "result": "received"}
            add_history(connection, row["session"], HistoryKind.DONE, BOT, data, now)
            changed += 1
    for seq in seen.advanced:
        changed += connection.execute(_ADVANCED, (now.timestamp(), seq)).rowcount
    for seq in seen.missing:
        receipt = _of_row(connection, seq)
        if receipt is not None and not receipt.sent.missing:
            missing = replace(receipt, sent=replace(receipt.sent, missing=True))
            changed += connection.execute(_MISSING, (encoded(missing), seq)).rowcount
    if changed:
        wake(connection, seen.session, now)
    return bool(changed)


def receipt_of(row: Row) -> Receipt | None:
    """The receipt in a row of the outbox; None if it was never sent. Raises `CorruptRow`."""
    return decoded(_receipt, row, "outbox", "seq", "receipt") if row["receipt"] else None


def _of_row(connection: sqlite3.Connection, seq: int) -> Receipt | None:
    row = connection.execute(_OF_ROW, (seq,)).fetchone()
    return _receipt.decode(row["receipt"]) if row and row["receipt"] else None


def _awaited(row: Row) -> AwaitedReceipt:
    return AwaitedReceipt(
        seq=row["seq"],
        session=row["session"],
        key=key_of(row),
        run=row["run"],
        sent=row["state"] == "sent",
        receipt=receipt_of(row),
    )
