"""The recorded files of this machine: conversations, databases, handover texts, folders."""

import logging
import os
import re
import shutil
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from runtimes.agents.base import RunFiles
from runtimes.agents.shared.adapter import AgentAdapter
from runtimes.agents.shared.databases import copy_database
from runtimes.agents.shared.messages import Message, MessageReader
from runtimes.files import make_folder, open_regular, read_text, replacing, walk
from runtimes.host import (
    Folder,
    FolderKind,
    HandoverTexts,
    RunRef,
    StepRecord,
    WorkspaceStep,
    home_of,
    session_of,
)
from runtimes.workspaces.repositories import checkout_of, remove_tree

log = logging.getLogger(__name__)

_STEP_BYTES = 1024 * 1024
_HANDOVER_CHARACTERS = 65_536
_STEP_FILE = "step.json"  #: The record of an attempt at a workspace step, in its folder.
_REMOVED = re.compile(r"\.(?P<session>.+)\.gone")
#: The most conversations that stay open for readers who read one page after the other.
_OPEN = 16


class LocalRecords:
    """The files that agents and their programs write, below a host's folder or in an archive.

    Methods that read may raise `OSError`.
    """

    def __init__(self, adapters: Mapping[str, AgentAdapter], folder: Path) -> None:
        """Read below `folder`: a host's, or an unpacked archive. `adapters` are by agent type."""
        folder = folder.resolve()  # Below it no link is followed.
        self._sessions = folder / "sessions"
        self._workspaces = folder / "workspaces"
        self._adapters = adapters
        #: Conversations by run and position of their next message, with messages read ahead.
        self._open: OrderedDict[tuple[str, int], tuple[MessageReader, list[Message]]] = (
            OrderedDict()
        )
        self._lock = threading.Lock()

    def run_files(self, run: RunRef) -> RunFiles:
        """Return the paths of a run's files."""
        return RunFiles(
            session=run.session,
            run=run.run,
            dir=self._sessions / run.name,
            workspace=checkout_of(self._workspaces, run.session),
            branch=run.branch,
        )

    def handover(self, run: RunRef) -> HandoverTexts:
        """Return the agent's texts for people and its successor, at most 65,536 characters each.

        Longer ones are cut: the summary at its end, the progress notes at their beginning.
        """
        files, adapter = self.run_files(run), self._adapters.get(run.agent_type)
        return HandoverTexts(
            writable=adapter is not None and adapter.writes_outside,
            summary_path=str(files.summary),
            progress_path=str(files.progress),
            summary=read_text(files.summary)[:_HANDOVER_CHARACTERS],
            progress=read_text(files.progress)[-_HANDOVER_CHARACTERS:],
        )

    def files(self, run: RunRef) -> Mapping[str, tuple[int, ...]]:
        """Return the versions of a run's existing `AgentAdapter.records` and progress notes.

        Keys are the names of the files: paths below the folder of all runs, as in the archive.
        A version changes with every write to its file. Empty if the run's agent type is unknown.
        """
        adapter, files = self._adapters.get(run.agent_type), self.run_files(run)
        if adapter is None:
            return {}
        found = {}
        for path in (*adapter.records(files), files.progress):
            with suppress(OSError):  # A missing or replaced file is left out.
                version = _version(path)
                with suppress(OSError):  # A database's write-ahead log.
                    version += _version(path.with_name(f"{path.name}-wal"))
                found[path.relative_to(self._sessions).as_posix()] = version
        return found

    def read(self, session: str, name: str, start: int, end: int) -> bytes:
        """Return the bytes from `start` to `end` of a recorded file; fewer if it is shorter."""
        with open_regular(self._path(session, name)) as file:
            file.seek(start)
            return file.read(end - start)

    def size(self, session: str, name: str) -> int:
        """Return the size of a recorded file in bytes."""
        with open_regular(self._path(session, name)) as file:
            return os.fstat(file.fileno()).st_size

    def copy_database(self, session: str, name: str, into: Path) -> None:
        """Copy a recorded SQLite database with its write-ahead log, in a consistent state.

        `into` is the path of the copy, which is hostile input: open it with
        `runtimes.agents.shared.databases.open_copy`.
        """
        try:
            copy_database(self._path(session, name), into)
        except sqlite3.Error as error:
            raise OSError(str(error)) from error

    def missing(self, session: str, names: Sequence[str]) -> Sequence[str]:
        """Return the named files that do not exist; log existing files that cannot be read."""
        found = []
        for name in names:
            try:
                with open_regular(self._path(session, name)):
                    pass
            except FileNotFoundError:
                found.append(name)
            except OSError as error:
                log.warning(
                    "%s: a recorded file cannot be read, so it is not restored: %s", session, error
                )
        return found

    def restore(self, session: str, name: str, source: Path) -> None:
        """Write the content of `source` to a recorded file, which is replaced if it exists."""
        with open_regular(source) as kept, replacing(self._path(session, name)) as out:
            shutil.copyfileobj(kept, out, _STEP_BYTES)

    def messages(self, run: RunRef, start: int, most: int) -> Sequence[Message]:
        """Return at most `most` messages from a run's files, from the position `start` on.

        Positions begin at 0. For a program that keeps its messages in the session's home, positions
        count the messages of all runs. A call that starts where the last one ended reads only what
        is new.
        """
        with self._lock:
            conversation, ahead = self._open.pop((run.name, start), (None, []))
        if conversation is None:
            conversation, ahead = self._adapters[run.agent_type].messages(self.run_files(run)), []
            _take(conversation, ahead, start)
        found = _take(conversation, ahead, most)
        with self._lock:
            self._open[run.name, start + len(found)] = conversation, ahead
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
        return found

    def adopt(self, run: RunRef, conversation: str) -> None:
        """Copy a conversation of the host's own user into a session's home, before its first run.

        `conversation` is the conversation's id. Raises `NotAdopted`, `FileExistsError` if the home
        exists, and `OSError` if the copying fails. A home that it made remains after a failure.
        """
        files = self.run_files(run)
        make_folder(files.home.parent)
        files.home.mkdir(mode=0o700)
        self._adapters[run.agent_type].adopt(files, conversation)

    def attempts(self, session: str, step: WorkspaceStep) -> Sequence[StepRecord]:
        """Return the recorded attempts at a step of the session, oldest first.

        Attempts in a workspace that has been removed are included.
        """
        found, name = [], re.compile(rf"{session}_{step}[0-9]+")
        for folder in filter(name.fullmatch, _folders_in(self._sessions)):
            with suppress(msgspec.DecodeError):
                text = read_text(self._sessions / folder / _STEP_FILE)
                found.append(msgspec.json.decode(text, type=StepRecord))
        return sorted(found, key=lambda one: one.attempt)

    def last_attempts(self, session: str) -> Sequence[StepRecord]:
        """Return the last attempt at each workspace step that was begun."""
        return [one for step in WorkspaceStep for one in self.attempts(session, step)[-1:]]

    def step_file(self, record: StepRecord) -> Path:
        """Return the path of the file with the record of one attempt at a workspace step."""
        return self._sessions / record.name / _STEP_FILE

    def folders(self) -> Sequence[Folder]:
        """Return all folders kept for sessions, also for sessions that the bot does not know."""
        found = []
        for name in _folders_in(self._sessions):
            session = session_of(name)
            kind = FolderKind.HOME if name == home_of(session).name else FolderKind.RUN
            found.append(Folder(kind=kind, name=name, session=session))
        for name in _folders_in(self._workspaces):
            gone = _REMOVED.fullmatch(name)
            kind = FolderKind.REMOVED if gone else FolderKind.WORKSPACE
            found.append(Folder(kind=kind, name=name, session=gone["session"] if gone else name))
        return found

    def folder_bytes(self, folder: Folder) -> int:
        """Return the approximate size of a folder on disk, in bytes, without unreadable files."""
        return sum(status.st_blocks * 512 for _, status in walk(self._folder(folder)))

    def remove(self, folder: Folder) -> None:
        """Remove a folder. Idempotent. Raises `OSError`."""
        remove_tree(self._folder(folder))

    def _folder(self, folder: Folder) -> Path:
        in_sessions = folder.kind in (FolderKind.RUN, FolderKind.HOME)
        return (self._sessions if in_sessions else self._workspaces) / folder.name

    def _path(self, session: str, name: str) -> Path:
        """Return a recorded file's path, to be opened without following links. Raises `OSError`."""
        path = self._sessions / name
        if session_of(name.partition("/")[0]) != session or ".." in path.parts:
            raise OSError(f"{name} is not a file of {session}")
        return path


def _take(conversation: MessageReader, ahead: list[Message], count: int) -> list[Message]:
    """Return the next messages, at most `count`.

    `ahead` has the messages that were read earlier and not returned yet, and is updated.
    """
    while len(ahead) < count and (new := conversation.new()):
        ahead += new
    taken = ahead[:count]
    del ahead[:count]
    return taken


def _version(path: Path) -> tuple[int, ...]:
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def _folders_in(folder: Path) -> Sequence[str]:
    if not folder.is_dir():
        return ()
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
