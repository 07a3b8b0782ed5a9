"""Reads what pages and the API show of runs: terminals, output, transcripts and changes."""

import logging
import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from bot.show.changes import BranchDiff, NoChanges, branch_diff
from bot.show.run_log import LogPage, NoLog, log_page
from bot.show.transcripts import NoTranscript, Transcript, Transcripts
from bot.store import Session, Store
from bot.system.locations import Locations
from bot.system.redaction import Redaction
from bot.text.workspace_steps import step_words
from runtimes.agents.shared.messages import Message
from runtimes.base import RuntimeFailure
from runtimes.host import Resources, StepRecord, StepState, output_of, run_name
from runtimes.workspaces.changes import Patch, patch_between
from runtimes.workspaces.git import GitFailure, git

_log = logging.getLogger(__name__)

#: The most bytes of a patch that are shown.
_PATCH_BYTES = 400_000
_STEP_LINES = 1_000  #: How many of the last lines that a step printed are shown.


class StepLog(Struct, frozen=True, kw_only=True):
    """An attempt to run a project's `setup` or `teardown` commands, and the end of its output."""

    step: str  #: `setup` or `teardown`.
    says: str  #: Its state in words.
    failed: bool
    log: str


class PreservedWork(Struct, frozen=True, kw_only=True):
    """Commits of a workspace that was removed."""

    run: int
    sha: str
    at: Annotated[datetime, Meta(description="When it was preserved.")]
    fetch: Annotated[str, Meta(description="The command that fetches it on the server's machine.")]


class Terminal(Struct, frozen=True, kw_only=True):
    """Functions that read what pages and the API show of a session's runs and workspace.

    Each takes a session's ID as its first argument.
    """

    attach: Callable[[str], str]  #: The command line that opens its terminal, if any.
    log: Callable[[str], str]  #: The last lines of its last run's output, if any.
    #: Returns what the session's last run uses. Returns None if that is unknown, or if the session
    #: has no run or has ended.
    resources: Callable[[str], Resources | None]
    #: Returns lines that a run printed. Takes the run (0 for the last), the byte offset to begin at
    #: (None for the last lines) and the limit of lines. Raises `NoLog`.
    log_page: Callable[[str, int, int | None, int], LogPage]
    #: Returns messages of a run. Takes the run (0 for the last), the number of the first message
    #: (from 0) and the limit of messages. Raises `NoTranscript`.
    transcript: Callable[[str, int, int, int], list[Message]]
    #: Returns the number of the first of a run's last messages, and these messages. Takes the run
    #: (0 for the last) and the limit of messages. Raises `NoTranscript`.
    last: Callable[[str, int, int], tuple[int, list[Message]]]
    #: Returns what the session's terminal shows, with terminal sequences for colours. The text is
    #: empty if the session has no terminal, or if the terminal cannot be read.
    screen: Callable[[str], str]
    changes: Callable[[str], BranchDiff]  #: Of its branch. Raises `NoChanges`.
    #: Returns the last attempt at each of `setup` and `teardown`, with the end of its output.
    steps: Callable[[str], list[StepLog]]
    step_records: Callable[[str], Sequence[StepRecord]]  #: The same attempts without their output.
    #: The work kept of its removed workspaces; empty if it cannot be read.
    preserved: Callable[[str], list[PreservedWork]]


def terminal(store: Store, locations: Locations, redact: Redaction) -> Terminal:
    """Return the functions that read the runs and the workspaces of the sessions in `store`.

    `redact` masks secrets in what agents and workspace steps print or write.
    """
    transcripts = Transcripts(
        store, locations.host.records, locations.adapters, locations.paths.archive, redact
    )

    def attach(id: str) -> str:
        session = store.sessions.get(id)
        if session is None or not session.run or session.ended is not None:
            return ""
        return shlex.join(locations.host.runtime.attach(run_name(id, session.run)))

    def output(id: str) -> str:
        session = store.sessions.get(id)
        if session is None or not session.run:
            return ""
        return redact(locations.host.runs.output(id, session.run))

    def resources(id: str) -> Resources | None:
        session = store.sessions.get(id)
        if session is None or not session.run or session.ended is not None:
            return None
        return locations.host.runs.resources(id, session.run)

    def page(id: str, run: int, start: int | None, most: int) -> LogPage:
        session = store.sessions.get(id)
        number = run or (session.run if session else 0)
        records, name = locations.host.records, output_of(id, number)
        try:
            size = records.size(id, name)
        except FileNotFoundError:
            why = f"run {number} has not begun, or its output has expired"
            raise NoLog(f"{id}: {why}" if number else f"{id} has not started yet") from None
        over = session is None or session.ended is not None or number < session.run
        read = partial(records.read, id, name)
        return replace(log_page(read, size, start, most, redact, ended=over), run=number)

    def of(id: str, run: int) -> AbstractContextManager[Transcript]:
        session = store.sessions.get(id)
        if session is None:
            raise NoTranscript(f"there is no session {id}")
        return transcripts.of(session, run or session.run)

    def transcript(id: str, run: int, first: int, most: int) -> list[Message]:
        with of(id, run) as found:
            return found.page(first, most)

    def last(id: str, run: int, most: int) -> tuple[int, list[Message]]:
        with of(id, run) as found:
            return found.last(most)

    def screen(id: str) -> str:
        session = store.sessions.get(id)
        if session is None or not session.run or session.ended is not None:
            return ""
        name = run_name(id, session.run)
        try:
            shown = locations.host.runtime.screens([name], coloured=True)
        except RuntimeFailure:
            return ""
        return redact(shown.get(name, ""))

    def changes(id: str) -> BranchDiff:
        session = store.sessions.get(id)
        if session is None:
            raise NoChanges(f"there is no session {id}")
        base, head, patch = _patch(session, locations)
        return branch_diff(base, head, Patch(redact(patch.text), patch.complete))

    def steps(id: str) -> list[StepLog]:
        found = locations.host.records.last_attempts(id)
        return [_step_log(one, locations, redact) for one in found]

    def preserved(id: str) -> list[PreservedWork]:
        session = store.sessions.get(id)
        if session is None or session.project not in locations.projects:
            return []
        mirror = locations.mirror(session.project)
        try:
            kept = mirror.preserved(id) if mirror.path.is_dir() else []
        except GitFailure as failure:  # Everything else can be shown.
            _log.warning("%s: cannot list preserved work: %s", id, failure)
            return []
        return [
            PreservedWork(
                run=one.run, sha=one.sha, at=one.at, fetch=f"git fetch {mirror.path} {one.ref}"
            )
            for one in kept
        ]

    return Terminal(
        attach=attach,
        log=output,
        resources=resources,
        log_page=page,
        transcript=transcript,
        last=last,
        screen=screen,
        changes=changes,
        steps=steps,
        step_records=locations.host.records.last_attempts,
        preserved=preserved,
    )


def _step_log(record: StepRecord, locations: Locations, redact: Redaction) -> StepLog:
    records, lines = locations.host.records, tuple[str, ...]()
    read = partial(records.read, record.session, record.output)
    with suppress(OSError):  # It has printed nothing yet, or its output has expired.
        size = records.size(record.session, record.output)
        lines = log_page(read, size, None, _STEP_LINES, redact, ended=True).lines
    failed = record.state in (StepState.FAILED, StepState.EXPIRED)
    words, log = step_words(record), "\n".join(lines)
    return StepLog(step=str(record.step), says=words, failed=failed, log=log)


def _patch(session: Session, locations: Locations) -> tuple[str, str, Patch]:
    """Return the base commit, the head commit, and what the head changes since their merge base.

    Raises `NoChanges`.
    """
    pull = session.pulls[-1] if session.pulls else None
    head = session.work.head or (pull.head if pull else "")
    bases = [base for base in (pull.base if pull else "", session.work.base) if base]
    if session.project not in locations.projects:
        raise NoChanges(f"the project {session.project} is no longer configured")
    if not head or not bases:
        raise NoChanges("there are no commits yet: the changes appear once the agent has committed")
    mirror = locations.mirror(session.project)
    try:
        if mirror.path.is_dir():
            known = [base for base in bases if mirror.contains(base)] or bases[-1:]
            if mirror.contains(head):
                read = partial(git, mirror.path)
                return known[0], head, patch_between(read, known[0], head, _PATCH_BYTES)
            bases = known
        # Commits that are not pushed exist only in the session's own repository.
        return bases[0], head, locations.workspace_of(session).patch(bases[0], head, _PATCH_BYTES)
    except (GitFailure, RuntimeFailure) as failure:
        _log.warning("%s: no changes can be shown: %s", session.id, failure)
        raise NoChanges("the commits cannot be read now; see the server's log") from failure
