"""Writes observations that change a fact, and records the change in the history."""

import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bot.store.database import StoreTable
from bot.store.history import BOT, add_history, wake
from bot.store.rows import Row, RowDecoder, encoded
from bot.store.usage import add_agent_usage
from bot.store.values import HistoryKind, Observation, Receipt
from lifecycle.model.facts import Agent, Exit, Issue, Pull, Remark, Work
from lifecycle.model.status import Activity, PullState

_LINE_LIMIT = 200  #: Characters of one change in the history, so that foreign text stays short.
COLUMNS = ("agent", "work", "pulls", "issue")
_OF_RUN = ("agent", "work")  # facts of one run; the others are facts of the session
# :large is false for observations of agents, which do not need the large columns.
STORED = """SELECT id, run, agent, work,
        CASE WHEN :large THEN pulls END AS pulls, CASE WHEN :large THEN issue END AS issue
    FROM sessions WHERE id IN (SELECT value FROM json_each(:ids))"""
_STORE = """UPDATE sessions SET agent = coalesce(:agent, agent), work = coalesce(:work, work),
        pulls = coalesce(:pulls, pulls), issue = coalesce(:issue, issue)
    WHERE id = :id"""
_REMOVE_PULLS = "DELETE FROM session_pulls WHERE session = ?"
_ADD_PULL = """INSERT INTO session_pulls (repository, number, session, head)
    SELECT repository, ?, id, ? FROM sessions WHERE id = ? ON CONFLICT DO NOTHING"""
_RECEIPT = """SELECT receipt FROM outbox
    WHERE seq = ? AND state IN ('sent', 'due') AND receipt IS NOT NULL"""
_RECEIVED = """UPDATE outbox SET state = 'done', result = 'received', done_at = ?,
        attempts = attempts + 1
    WHERE seq = ? AND state IN ('sent', 'due') RETURNING session, key"""
_ADVANCED = "UPDATE outbox SET state = 'due', next_at = ? WHERE seq = ? AND state = 'sent'"
_MISSING = "UPDATE outbox SET receipt = ? WHERE seq = ? AND state = 'sent'"


class _Stored(Struct, frozen=True):
    """The facts of a session before an observation."""

    agent: Agent
    work: Work
    pulls: tuple[Pull, ...] | None
    issue: Issue | None


_stored = RowDecoder(_Stored, "sessions")


class ObservationsTable(StoreTable):
    """Facts as observers report them, in the columns of `sessions`."""

    def record(self, observations: Sequence[Observation], now: datetime) -> list[str]:
        """Write what differs from the stored facts, in one transaction; wake changed sessions.

        Facts about the agent or the workspace are dropped unless they are from the session's
        current run. A pull request that differs only in `read_at` is stored, but does not wake the
        session. Nothing is written if nothing differs.

        Returns the ids of the sessions that changed.
        """
        observations = [self._db.redact(seen) for seen in observations]
        with self._db.read() as connection:
            changing = _changing(connection, observations)
        if not changing:
            return []
        changed = self._db.write(lambda connection: add_observations(connection, changing, now))
        self._db.announce(changed)
        return changed


def add_observations(
    connection: sqlite3.Connection, observations: Sequence[Observation], now: datetime
) -> list[str]:
    """Write observations inside a transaction. Returns the ids of the sessions that changed."""
    changed = dict.fromkeys(seen.session for seen in observations if _add(connection, seen, now))
    return list(changed)


def _changing(
    connection: sqlite3.Connection, observations: Sequence[Observation]
) -> list[Observation]:
    """Return the observations of those sessions that change.

    A session changes if one of its observations alters a fact; then all of them are returned.
    """
    rows = _rows(connection, observations)
    changing = {
        seen.session
        for seen in observations
        if (row := rows.get(seen.session))
        and (seen.received or seen.advanced or seen.missing or _differing(seen, row))
    }
    return [seen for seen in observations if seen.session in changing]


def _rows(connection: sqlite3.Connection, observations: Sequence[Observation]) -> dict[str, Row]:
    values = {
        "ids": encoded([seen.session for seen in observations]),
        "large": any(seen.pulls is not None or seen.issue is not None for seen in observations),
    }
    return {row["id"]: row for row in connection.execute(STORED, values)}


def _differing(seen: Observation, row: Row) -> dict[str, str]:
    """Return the columns that the observation would change, with their new JSON."""
    late = seen.run is not None and seen.run != row["run"]
    differing = {}
    for column in COLUMNS:
        value = _work(seen, row) if column == "work" else getattr(seen, column)
        if value is None or (late and column in _OF_RUN):
            continue
        text = encoded(value)
        if text != row[column]:
            differing[column] = text
    if seen.agent and "agent" in differing and _overtaken(seen.agent, _stored(row).agent):
        del differing["agent"]
    return differing


def _work(seen: Observation, row: Row) -> Work | None:
    """Return the workspace to store, or None if none was observed.

    An observation with `measured` changes only `Work.disk`; any other leaves `Work.disk` unchanged.
    """
    if seen.measured:
        return replace(_stored(row).work, disk=seen.measured[0])
    if seen.work is None or encoded(seen.work) == row["work"]:
        return seen.work
    return replace(seen.work, disk=_stored(row).work.disk)


def _overtaken(agent: Agent, before: Agent) -> bool:
    """Whether the run was stopped while it was observed, which makes the observation obsolete."""
    return before.stopped and not agent.stopped and before.run == agent.run


def _add(connection: sqlite3.Connection, seen: Observation, now: datetime) -> bool:
    row = _rows(connection, [seen]).get(seen.session)
    if row is None:
        return False
    receipts = _add_receipts(connection, seen, now)
    differing = _differing(seen, row)
    if not differing:
        return receipts
    before, seen = _stored(row), replace(seen, work=_work(seen, row))
    if seen.agent is not None and "agent" in differing:
        add_agent_usage(connection, seen.session, before.agent, seen.agent, now)
    connection.execute(_STORE, {**dict.fromkeys(COLUMNS), **differing, "id": seen.session})
    if "pulls" in differing:
        connection.execute(_REMOVE_PULLS, (seen.session,))
        pulls = [(pull.number, pull.head, seen.session) for pull in seen.pulls or ()]
        connection.executemany(_ADD_PULL, pulls)
        if differing.keys() == {"pulls"} and _unread(seen.pulls) == _unread(before.pulls):
            return receipts
    _add_changes(connection, seen, before, differing, now)
    wake(connection, seen.session, now)
    return True


def _add_receipts(connection: sqlite3.Connection, seen: Observation, now: datetime) -> bool:
    """Record which messages arrived or are missing; return whether this changed anything.

    Called inside a transaction. The `done_at` of a received message becomes the time of its sending
    if the agent's activity changed after the sending (`Agent.since`), otherwise `now`.
    """
    changed = 0
    for seq in seen.received:
        receipt = _receipt_of(connection, seq)
        since = seen.agent.since if seen.agent else None
        at = receipt.sent.at if receipt and since and since > receipt.sent.at else now
        for row in connection.execute(_RECEIVED, (at.timestamp(), seq)).fetchall():
            data = {"action": row["key"], "result": "received"}
            add_history(connection, row["session"], HistoryKind.DONE, BOT, data, now)
            changed += 1
    for seq in seen.advanced:
        changed += connection.execute(_ADVANCED, (now.timestamp(), seq)).rowcount
    for seq in seen.missing:
        receipt = _receipt_of(connection, seq)
        if receipt is not None and not receipt.sent.missing:
            missing = replace(receipt, sent=replace(receipt.sent, missing=True))
            changed += connection.execute(_MISSING, (encoded(missing), seq)).rowcount
    if changed:
        wake(connection, seen.session, now)
    return bool(changed)


def _receipt_of(connection: sqlite3.Connection, seq: int) -> Receipt | None:
    row = connection.execute(_RECEIPT, (seq,)).fetchone()
    return msgspec.json.decode(row["receipt"], type=Receipt) if row else None


def _add_changes(
    connection: sqlite3.Connection,
    seen: Observation,
    before: _Stored,
    differing: Container[str],
    now: datetime,
) -> None:
    """Record the changes in the history: one event for the agent's side, one for GitHub's."""
    for actor, columns in _CHANGES.items():
        changes = [
            line
            for column, describe in columns.items()
            if column in differing
            for line in describe(getattr(before, column), getattr(seen, column))
        ]
        if changes:
            data = {"changes": changes}
            add_history(connection, seen.session, HistoryKind.OBSERVED, actor, data, now)


def _unread(pulls: Iterable[Pull] | None) -> list[Pull]:
    """Return the pull requests without the time at which they were read, to compare them."""
    return [replace(pull, read_at=None) for pull in pulls or ()]


def agent_changes(old: Agent, new: Agent) -> Iterator[str]:
    """Describe the changes of a run's program, one line each."""
    if (old.run, old.activity) != (new.run, new.activity) and new.activity is not Activity.NONE:
        yield _line(
            f"agent {new.activity.replace('_', ' ')}", new.question or new.error or new.evidence
        )
    before, after = f"{old.runtime}/{old.program}", f"{new.runtime}/{new.program}"
    if before != after:
        yield f"runtime/program {before} -> {after}"
    if new.exit is not None and old.exit != new.exit:
        yield f"program {_ending(new.exit)}"


def work_changes(old: Work, new: Work) -> Iterator[str]:
    """Describe the changes of the workspace, one line each."""
    if old.head != new.head:
        yield f"workspace at {new.head[:7] or 'no commit'}"
    if new.dirty and not old.dirty:
        yield "workspace has uncommitted changes"
    if new.off_branch is not None and old.off_branch is None:
        yield f"workspace has commits on {new.off_branch.branch or 'a detached HEAD'}"
    if new.disk != old.disk:
        over = "workspace is over a limit of its files, or cannot be measured"
        yield over if new.disk else "workspace is within the limits of its files again"
    if new.unreadable and new.unreadable != old.unreadable:
        yield _line("workspace unreadable", new.unreadable)


def issue_changes(old: Issue, new: Issue) -> Iterator[str]:
    """Describe the changes of the issue, one line each."""
    if old.open != new.open:
        yield "issue reopened" if new.open else _line("issue closed", new.state_reason)
    if (old.labelled, old.labelled_at) != (new.labelled, new.labelled_at):
        yield "label added" if new.labelled else "label removed"
    if old.blocked_by != new.blocked_by:
        yield _line("blocked by", ", ".join(new.blocked_by)) if new.blocked_by else "not blocked"


def pull_changes(old: tuple[Pull, ...], new: tuple[Pull, ...]) -> Iterator[str]:
    """Describe the changes of the pull requests, one line each, which begins with `#NUMBER`."""
    known = {pull.number: pull for pull in old}
    for pull in new:
        before = known.get(pull.number, Pull(number=pull.number))
        for line in _pull_changes(before, pull, is_new=pull.number not in known):
            yield _line(f"#{pull.number} {line}")


def _pull_changes(old: Pull, new: Pull, *, is_new: bool) -> Iterator[str]:
    if is_new or old.state is not new.state:
        by = f" by {new.merged_by}" if new.state is PullState.MERGED and new.merged_by else ""
        reopened = not is_new and new.state is PullState.OPEN
        yield "reopened" if reopened else f"is {new.state}{by}"
    if old.draft != new.draft:
        yield "is a draft" if new.draft else "is ready for review"
    if old.head != new.head:
        yield f"at {new.head[:7]}, pushed by {new.head_by}"
    if old.merge is not new.merge:
        yield f"merge is {new.merge}"
    if old.review is not new.review:
        yield f"review is {new.review}"
    states = {check.id: check.state for check in old.checks} if old.head == new.head else {}
    checks = [check for check in new.checks if states.get(check.id) is not check.state]
    if checks:
        yield "checks: " + ", ".join(f"{check.name} {check.state}" for check in checks)
    for verdict in new.verdicts:
        if verdict not in old.verdicts:
            says = "approved" if verdict.approved else "requested changes on"
            yield f"@{verdict.author} {says} {verdict.sha[:7]}"
    known = {remark.id for remark in _remarks(old)}
    for remark in _remarks(new):
        if remark.id not in known and not remark.own:
            yield f"@{remark.author} commented"
    resolved = {thread.id for thread in old.threads if thread.resolved}
    for thread in new.threads:
        if thread.resolved and thread.id not in resolved:
            yield f"thread {thread.id} resolved"


def _remarks(pull: Pull) -> Iterator[Remark]:
    for thread in pull.threads:
        yield from thread.remarks
    yield from pull.comments


def _ending(ending: Exit) -> str:
    if ending.lost:
        return f"was lost: {ending.lost}"
    if ending.signal is not None:
        return f"was ended by signal {ending.signal}"
    return f"exited with {ending.code}" if ending.code is not None else "is gone"


def _line(what: str, detail: str = "") -> str:
    text = " ".join(f"{what}: {detail}".split()) if detail else what
    return text if len(text) <= _LINE_LIMIT else f"{text[: _LINE_LIMIT - 1]}…"


#: The functions that describe the changes of columns, by the actor in the history and the column.
_CHANGES: Mapping[str, Mapping[str, Callable[[Any, Any], Iterator[str]]]] = {
    "agent": {"agent": agent_changes, "work": work_changes},
    "github": {"issue": issue_changes, "pulls": pull_changes},
}
