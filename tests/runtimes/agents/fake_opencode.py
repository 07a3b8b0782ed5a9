"""Writes the database that OpenCode would write."""

import json
import sqlite3
import time
from contextlib import closing
from typing import Any

from runtimes.agents.base import RunFiles
from runtimes.agents.opencode import files as opencode_files

ID = "ses_e0078820bffeyDHEIa50M22duM"
_TABLES = """
create table session (id text, parent_id text, time_created integer, time_updated integer);
create table message (
    id text, session_id text, time_created integer, time_updated integer, data text
);
create table part (
    id text, message_id text, session_id text, time_created integer, time_updated integer,
    data text
);
"""


class Agent:
    """The program's database and the responses of its port."""

    def __init__(self, files: RunFiles) -> None:
        self.answers: dict[str, Any] = {"/permission": [], "/question": [], "/session/status": {}}
        self.at = int(time.time() * 1000) + 60_000
        self._path = opencode_files.database(files)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path)) as database:
            database.executescript(_TABLES)

    def write(self, table: str, *row: object) -> None:
        with closing(sqlite3.connect(self._path)) as database, database:
            marks = ", ".join("?" * len(row))
            database.execute(f"insert into {table} values ({marks})", row)

    def session(self, id: str = ID, parent: str | None = None, at: int = 0) -> None:
        self.write("session", id, parent, at or self.at, at or self.at)

    def message(self, id: str, role: str, session: str = ID, at: int = 0, **more: object) -> None:
        at = at or self.at
        data = {"role": role, "time": {"created": at}, **more}
        self.write("message", id, session, at, at, json.dumps(data))

    def complete(self, id: str, **more: object) -> None:
        """Write a completed response."""
        data: dict[str, object] = {"role": "assistant", "finish": "stop", **more}
        data["time"] = {"created": self.at, "completed": self.at + 1000}
        self.write("message", id, ID, self.at, self.at, json.dumps(data))

    def part(self, message: str, session: str = ID, **data: object) -> None:
        self.write("part", f"prt_{message}", message, session, self.at, self.at, json.dumps(data))

    def change(self, message: str, **data: object) -> None:
        """Replace the part that `part` wrote for a message."""
        with closing(sqlite3.connect(self._path)) as database, database:
            row = (json.dumps(data), f"prt_{message}")
            database.execute("update part set data = ? where id = ?", row)
