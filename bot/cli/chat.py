"""Opens a chat with an agent, or continues one, and attaches to its terminal."""

import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from bot.cli import context
from bot.cli.options import PROBLEM, CliError
from bot.cli.submit import bot_runs, local_actor, outcome_of
from bot.intake import local_commands
from bot.intake.commands import InvalidArgument
from bot.intake.spawning import SpawnRequest, request_session
from bot.store import Session, Store
from bot.system.clock import utc_now
from config.contradictions import nearest
from config.settings import Settings
from lifecycle.model.status import TERMINAL, Origin, Probe, Status
from lifecycle.model.text import plain
from runtimes.host import run_name

_POLL_SECONDS = 0.2
#: A wait that takes longer is explained.
_QUIET_SECONDS = 1.0
#: The statuses in which a session has no terminal yet.
_STARTING = (Status.QUEUED, Status.SPAWNING)


def chat(config: Path | None, server: str, wanted: SpawnRequest) -> None:
    """Open a chat, or continue one, and attach to it.

    `wanted.project` is a project's name or, to continue a chat, the chat's ID. Returns once the
    person has detached, or the agent's program has ended. Raises `CliError`.
    """
    if server:
        raise CliError(
            f"a chat needs the terminal of the server's machine: run this there, or open {server}"
            " and press New chat"
        )
    if not sys.stdin.isatty():
        raise CliError(
            "a chat needs a terminal: `mergewright spawn PROJECT --prompt TEXT` works without one"
        )
    settings, redact = context.redacting(config)
    with context.store(settings, redact) as store:
        if not bot_runs(store):
            raise CliError("no bot is running: start `mergewright serve`", PROBLEM)
        if wanted.project in settings.projects:
            name = _opened(settings, store, wanted)
        else:
            name = _continued(settings, store, wanted)
        try:
            session = _with_terminal(store, name)
        except KeyboardInterrupt:
            remedy = f"`mergewright chat {name}` continues it"
            raise CliError(f"{name} is still being started; {remedy}", PROBLEM) from None
    terminal = context.runtime(settings).attach(run_name(name, session.run))
    print(f"{name}: press Ctrl-B, then D, to leave the terminal", file=sys.stderr)
    subprocess.run(terminal, check=False)
    with context.store(settings) as store:
        _say_what_next(context.session(store, name))


def _opened(settings: Settings, store: Store, wanted: SpawnRequest) -> str:
    """Request a new chat and return its ID."""
    key, repository = f"cli:{uuid.uuid4()}", settings.projects[wanted.project].repository
    try:
        request_session(
            store,
            replace(wanted, repository=repository, chat=True),
            actor=local_actor(),
            key=key,
            at=utc_now(),
        )
    except InvalidArgument as problem:
        raise CliError(str(problem)) from None
    outcome = outcome_of(settings, store, key, wait=True)
    if outcome.accepted is False:
        raise CliError(f"{outcome.session}: {plain(outcome.reason)}", PROBLEM)
    if outcome.accepted is None and store.sessions.get(outcome.session) is None:
        remedy = f"when it has, `mergewright chat {outcome.session}` opens it"
        raise CliError(
            f"{outcome.session}: requested, but the bot has not opened it yet; {remedy}", PROBLEM
        )
    return outcome.session


def _continued(settings: Settings, store: Store, wanted: SpawnRequest) -> str:
    """Resume the chat whose ID is in `wanted.project`, if it is paused; return the ID."""
    session = store.sessions.get(wanted.project)
    if session is None:
        known = nearest(wanted.project, settings.projects)
        raise CliError(f"no project and no session {wanted.project!r}; {known}")
    if session.origin is not Origin.CHAT:
        raise CliError(f"{session.id} is not a chat; `mergewright attach {session.id}` opens it")
    if wanted.agent or wanted.prompt or wanted.permission_mode or wanted.budget_usd:
        raise CliError(f"{session.id} already exists: to continue it, give only its ID")
    if session.status in TERMINAL:
        remedy = f"`mergewright start {session.id}` brings it back"
        raise CliError(f"{session.id} has ended: {session.because}; {remedy}", PROBLEM)
    if session.status == Status.PAUSED:
        key = f"cli:{uuid.uuid4()}"
        command = local_commands.build_command(
            session, "resume", "", actor=local_actor(), key=key, at=utc_now()
        )
        local_commands.add_command(store, session, command)
        outcome = outcome_of(settings, store, key, wait=True)
        if outcome.accepted is False:
            raise CliError(f"{session.id}: {plain(outcome.reason)}", PROBLEM)
        _wait(store, session.id, lambda one: one.status != Status.PAUSED)
    return session.id


def _with_terminal(store: Store, id: str) -> Session:
    """Wait until the agent's program runs, and return its session."""

    def runs(session: Session) -> bool:
        agent = session.agent
        alive = agent.program is Probe.ALIVE and agent.run == session.run
        return alive and session.run > 0 and session.status not in _STARTING

    return _wait(store, id, runs)


def _wait(store: Store, id: str, is_over: Callable[[Session], bool]) -> Session:
    """Wait until `is_over` is true of a session, and return the session.

    After a second, prints to standard error what the session waits for. Raises `CliError` if the
    session ends.
    """
    said, quiet_until = "", time.monotonic() + _QUIET_SECONDS
    while True:
        session = context.session(store, id)
        if session.status in TERMINAL:
            raise CliError(f"{id} has ended: {plain(session.because)}", PROBLEM)
        if is_over(session):
            return session
        now = f"{id}: {plain(session.because) or 'waits for the bot'}"
        if now != said and time.monotonic() >= quiet_until:
            said = now
            print(now, file=sys.stderr)
        time.sleep(_POLL_SECONDS)


def _say_what_next(session: Session) -> None:
    name, status = session.id, session.status
    if status in TERMINAL:
        print(f"{name} has ended: {plain(session.because)}")
        return
    print(f"{name} stays open: {plain(session.because)}")
    rows = [("chat", "talk to the agent again")]
    if not session.pulls:
        rows.append(("pull-request", "turn its work into a pull request"))
    rows.append(("stop", "end it; the work is kept"))
    width = max(len(command) for command, _ in rows)
    for command, what in rows:
        print(f"  mergewright {command:<{width}} {name}   {what}")
