"""Runs a project's `setup` and `teardown` commands in the workspaces of its sessions.

The commands have the sandbox, network, limits and environment of the agent's run, but no model and
no credentials of the agent. They may take long, and they outlive a restart of the bot. The outbox
does not wait for them: an action that needs them is retried until they have ended.
"""

import logging
from dataclasses import dataclass
from datetime import timedelta

from bot.act.results import Rejected, RetryLater
from bot.act.run_isolation import isolation_spec, not_isolated, session_ports
from bot.model_proxy.endpoints import ModelEndpoints
from bot.store import Session
from bot.system.clock import Clock
from bot.system.isolation import NotIsolated
from bot.system.locations import Locations
from bot.text.workspace_steps import step_words
from config.settings import Settings
from lifecycle.model.status import Reason
from runtimes.host import StepRecord, StepSpec, StepState, WorkspaceStep
from runtimes.isolation.base import PROXY_PORT

_log = logging.getLogger(__name__)

#: The interval at which running commands are checked.
_AGAIN = timedelta(seconds=1)
#: The most attempts at a teardown, if each attempt is interrupted.
_TEARDOWNS = 3


@dataclass(frozen=True)
class WorkspaceSteps:
    """The set-up and teardown of workspaces. Every method is safe to repeat after a crash."""

    locations: Locations
    models: ModelEndpoints
    settings: Settings
    clock: Clock

    def set_up(self, session: Session, run: int) -> RetryLater | Rejected | None:
        """Run the project's `setup` commands, unless they have succeeded in this workspace before.

        Returns None once they have succeeded, or if the project has none. Returns a rejection if
        they failed or cannot be isolated. Until then, and while the container engine does not
        answer, returns a retry.
        """
        lines = self.locations.projects[session.project].setup
        if not lines:
            return None
        try:
            record = self._advance(session, run, WorkspaceStep.SETUP, lines)
        except NotIsolated as missing:
            return not_isolated(missing)
        match record.state:
            case StepState.DONE:
                return None
            case StepState.RUNNING:
                return RetryLater(step_words(record), self.clock() + _AGAIN)
            case StepState.LOST:
                return RetryLater(step_words(record))
            case _:
                return Rejected(step_words(record), Reason.SETUP_FAILED)

    def tear_down(self, session: Session, run: int) -> RetryLater | str:
        """Run the project's `teardown` commands before the workspace is removed.

        Returns a retry until they have ended or were interrupted too often. Then returns why they
        failed or were not run, or "". The workspace is removed in any case.
        """
        lines = self.locations.projects[session.project].teardown
        if not lines or not self.locations.workspace_of(session).made:
            return ""
        try:
            record = self._advance(session, run, WorkspaceStep.TEARDOWN, lines)
        except NotIsolated as missing:
            if missing.waits_for:
                return RetryLater(str(missing))
            return f"no teardown: {missing}"
        lost = record.state is StepState.LOST and record.attempt < _TEARDOWNS
        if lost or record.state is StepState.RUNNING:
            return RetryLater(step_words(record), self.clock() + _AGAIN)
        if record.state is StepState.DONE:
            return ""
        _log.warning("%s: %s", session.id, step_words(record))
        return step_words(record)

    def _advance(
        self, session: Session, run: int, step: WorkspaceStep, lines: tuple[str, ...]
    ) -> StepRecord:
        variables = self.models.step_variables
        isolation = isolation_spec(
            self.settings, self.locations, session, lambda: variables(session, PROXY_PORT)
        )
        seconds = self.locations.projects[session.project].setup_seconds
        ports = session_ports(self.locations, session)
        spec = StepSpec(lines=lines, isolation=isolation, env=ports, seconds=seconds)
        ref = self.locations.run_of(session, run)
        record = self.locations.host.steps.advance(ref, step, spec, self.clock())
        if record.state is not StepState.RUNNING:
            self.locations.paths.step_token(session.id).unlink(missing_ok=True)
        return record


def cancel(locations: Locations, session: Session, step: WorkspaceStep) -> None:
    """End a step of a session's workspace if it runs. It starts over when it is next needed.

    A teardown starts over even if it was done, because the workspace is in use again.
    """
    if locations.host.steps.cancel(session.id, step):
        locations.paths.step_token(session.id).unlink(missing_ok=True)
