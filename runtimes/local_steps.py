"""Set-up and teardown of the workspaces on this machine: the project's own commands.

Each attempt is a program of the runtime with a folder of its own, so it survives a restart of the
bot. The number of the last attempt is stored in the workspace, so a workspace that is made again
has no attempt.

FOLDER/sessions/SESSION_setup1/step.json   the attempt's `StepRecord`
FOLDER/workspaces/SESSION/setup            the number of the last attempt
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

from lifecycle.model.facts import Exit
from runtimes import supervised
from runtimes.agents.base import LaunchSpec, RunFiles
from runtimes.agents.shared.adapter import AgentAdapter
from runtimes.base import Runtime
from runtimes.files import make_folder, read_text, write_private
from runtimes.host import RunRef, StartSpec, StepRecord, StepSpec, StepState, WorkspaceStep
from runtimes.local_records import LocalRecords
from runtimes.local_runs import launch_of


class LocalSteps:
    """Runs the steps of workspaces. Every method may be repeated after a crash."""

    def __init__(
        self,
        runtime: Runtime,
        adapters: Mapping[str, AgentAdapter],
        records: LocalRecords,
        folder: Path,
    ) -> None:
        """Use the adapters by agent type, and the host's records and folder."""
        self._runtime = runtime
        self._adapters = adapters
        self._records = records
        self._folder = folder

    def advance(
        self, run: RunRef, step: WorkspaceStep, spec: StepSpec, now: datetime
    ) -> StepRecord:
        """Start a step of a workspace, or check the attempt under way; return its record.

        A step that is done is not repeated in the same workspace. But once a teardown has begun,
        the next call for the set-up runs it again. After a failure, the next call begins another
        attempt. `run` is the run that follows a set-up, or the last run before a teardown. Raises
        `RuntimeFailure`.
        """
        record = self.last(run.session, step)
        if record is None or record.state not in (StepState.RUNNING, StepState.DONE):
            record = self._begun(run, step, now)
        return self._looked(run, record, spec, now) if _is_running(record) else record

    def last(self, session: str, step: WorkspaceStep) -> StepRecord | None:
        """Return the last attempt at a step of the session's workspace, or None without one."""
        number = read_text(self._last_attempt(session, step))
        attempts = self._records.attempts(session, step)
        return next((one for one in attempts if str(one.attempt) == number), None)

    def cancel(self, session: str, step: WorkspaceStep) -> bool:
        """End a running attempt at this step, so that the next `advance` begins another attempt.

        Call this for the teardown when the workspace is in use again. The next `advance` for the
        teardown then begins another attempt even if the last one has succeeded. A set-up that has
        succeeded stays done. Returns whether an attempt was running. Raises `RuntimeFailure` if a
        process cannot be ended.
        """
        record = self.last(session, step)
        running = record is not None and _is_running(record)
        if record is not None and running:
            self._runtime.stop(record.name)
            self._write(replace(record, state=StepState.LOST))
        if step is WorkspaceStep.TEARDOWN:
            self._last_attempt(session, step).unlink(missing_ok=True)
        return running

    def _begun(self, run: RunRef, step: WorkspaceStep, now: datetime) -> StepRecord:
        """Record another attempt, which `_looked` starts."""
        if step is WorkspaceStep.TEARDOWN:  # A session that is restored is set up again.
            self._last_attempt(run.session, WorkspaceStep.SETUP).unlink(missing_ok=True)
        known = [one.attempt for one in self._records.attempts(run.session, step)]
        attempt = 1 + max(known, default=0)
        record = StepRecord(session=run.session, step=step, attempt=attempt, began=now)
        self._write(record)
        write_private(self._last_attempt(run.session, step), str(attempt))
        return record

    def _looked(self, run: RunRef, record: StepRecord, spec: StepSpec, now: datetime) -> StepRecord:
        """Start an attempt that was only recorded; otherwise check it and record its end."""
        files = self._files(run, record)
        seen = self._runtime.look().get(record.name)
        if seen is None and not supervised.spent(files.dir):
            self._start(run, record, files, spec)
            return record
        if seen is None:  # It was stopped, and a crash kept that from being recorded.
            return self._write(replace(record, state=StepState.LOST))
        if seen.exit is not None:
            ended = self._write(_ended(record, seen.exit))
            self._runtime.stop(record.name)
            return ended
        if (now - record.began).total_seconds() > spec.seconds:
            self._runtime.stop(record.name)
            return self._write(replace(record, state=StepState.EXPIRED, ended=now))
        return record

    def _start(self, run: RunRef, record: StepRecord, files: RunFiles, spec: StepSpec) -> None:
        adapter = self._adapters[run.agent_type]
        # Nobody is at the terminal, so what asks a question fails at once.
        argv = ("/bin/sh", "-ec", "\n".join(("exec </dev/null", *spec.lines)), str(record.step))
        command = LaunchSpec(argv=argv, env=adapter.environment(files))
        start = StartSpec(prompt="", isolation=spec.isolation, env=spec.env)
        hidden = [self._folder]
        launch = launch_of(record.name, files, adapter.command, command, start, hidden)
        self._runtime.start(launch)

    def _files(self, run: RunRef, record: StepRecord) -> RunFiles:
        files = self._records.run_files(run)
        return replace(files, dir=files.dir.with_name(record.name))

    def _last_attempt(self, session: str, step: WorkspaceStep) -> Path:
        return self._records.run_files(RunRef(session=session, run=0)).workspace.with_name(
            str(step)
        )

    def _write(self, record: StepRecord) -> StepRecord:
        file = self._records.step_file(record)
        make_folder(file.parent)
        write_private(file, msgspec.json.encode(record).decode())
        return record


def _is_running(record: StepRecord) -> bool:
    return record.state is StepState.RUNNING


def _ended(record: StepRecord, end: Exit) -> StepRecord:
    """Return the record of an attempt whose program has ended."""
    state = StepState.DONE if end.code == 0 else StepState.FAILED
    if end.lost or (end.code is None and end.signal is None):
        state = StepState.LOST
    return replace(record, state=state, ended=end.at, code=end.code)
