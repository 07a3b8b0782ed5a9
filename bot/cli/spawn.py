"""Opens a session for an issue or a prompt, over the database or the API of a remote server."""

import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from bot.cli import context
from bot.cli.options import CliError
from bot.cli.progress import progress
from bot.cli.remote import RemoteServer
from bot.cli.submit import (
    WAITS,
    bot_runs,
    local_actor,
    metadata_pair,
    outcome_of,
    remote_outcome,
    report,
)
from bot.intake.commands import InvalidArgument
from bot.intake.spawning import SessionExists, SpawnRequest, request_session
from bot.show.command_outcome import CommandOutcome
from bot.store import Store
from bot.system.clock import utc_now
from config.contradictions import nearest
from config.settings import Settings

_ANOTHER = "; --another opens one more session for the issue"


def spawn(
    config: Path | None,
    server: str,
    wanted: SpawnRequest,
    metadata: Sequence[str],
    *,
    wait: bool,
    as_json: bool,
) -> None:
    """Request a session, and print its ID and status.

    `metadata` are `KEY=VALUE` pairs. Raises `CliError`; a refusal is handled as by `report`.
    """
    wanted = replace(wanted, metadata=dict(metadata_pair(pair) for pair in metadata))
    if server:
        with closing(RemoteServer(server)) as remote, progress(WAITS):
            outcome = _on_server(remote, wanted, wait)
        report(outcome, running=True, as_json=as_json)
        return
    settings, redact = context.redacting(config)
    if wanted.project not in settings.projects:
        raise CliError(
            f"no project {wanted.project!r}; {nearest(wanted.project, settings.projects)}"
        )
    repository = settings.projects[wanted.project].repository
    with context.store(settings, redact) as store, progress(WAITS):
        outcome = _locally(settings, store, replace(wanted, repository=repository), wait)
        running = bot_runs(store)
    report(outcome, running=running, as_json=as_json)


def _locally(settings: Settings, store: Store, wanted: SpawnRequest, wait: bool) -> CommandOutcome:
    key = f"cli:{uuid.uuid4()}"
    try:
        request_session(store, wanted, actor=local_actor(), key=key, at=utc_now())
    except InvalidArgument as problem:
        raise CliError(str(problem)) from None
    except SessionExists as problem:
        raise CliError(f"{problem}{_ANOTHER}") from None
    return outcome_of(settings, store, key, wait)


def _on_server(server: RemoteServer, wanted: SpawnRequest, wait: bool) -> CommandOutcome:
    first = f"{wanted.project}-{wanted.issue}"
    # Without --another, the API would bring back the session that the issue has.
    if wanted.issue and not wanted.another and server.find(first):
        raise CliError(f"issue #{wanted.issue} already has the session {first}{_ANOTHER}")
    return remote_outcome(server, server.spawn(wanted), wait)
