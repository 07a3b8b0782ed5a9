"""What models said that their answers used, as our own door to them heard it."""

import sqlite3
from collections.abc import Callable

from bot.store.base import Base
from bot.store.sessions import wake
from bot.store.usage import count
from lifecycle.model.facts import Usage

_TOKENS = ("input", "output", "cache_read", "cache_write", "reasoning")
_ADD = """INSERT INTO answers (
        session, run, model, input, output, cache_read, cache_write, reasoning)
    VALUES (:session, :run, :model, :input, :output, :cache_read, :cache_write, :reasoning)
    ON CONFLICT (session, run, model) DO UPDATE SET
        input = input + excluded.input, output = output + excluded.output,
        cache_read = cache_read + excluded.cache_read,
        cache_write = cache_write + excluded.cache_write,
        reasoning = reasoning + excluded.reasoning"""
OF_RUN = """SELECT model, input, output, cache_read, cache_write, reasoning FROM answers
    WHERE session = ? AND run = ?"""


class Answers(Base):
    """The table of answers, by run and model."""

    def count_answer(
        self, session: str, run: int, model: str, used: Usage, priced: Callable[[Usage], Usage]
    ) -> None:
        """Add what one answer used to what the door counted of its run, and visit the session.

        `priced` puts a price on all of the run.
        """
        values = {kind: getattr(used, kind) for kind in _TOKENS}
        values |= {"session": session, "run": run, "model": model}

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_ADD, values)
            rows = connection.execute(OF_RUN, (session, run)).fetchall()
            models = {row["model"]: Usage(**{kind: row[kind] for kind in _TOKENS}) for row in rows}
            total = {kind: sum(row[kind] for row in rows) for kind in _TOKENS}
            now = self.clock()
            count(connection, session, run, priced(Usage(**total, models=models)), now)
            wake(connection, session, now)

        self.write(work)
        self._announce([session])
