"""Submits commands to the bot through its database or a server's API, and prints the replies.

Only `start` accepts a session that does not exist yet: the bot reads the issue and creates the
session.
"""

import os
import pwd
import re
import time
import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import typer
from rich.console import Group
from rich.text import Text

from bot.cli import context, screens
from bot.cli.options import PROBLEM, CliError
from bot.cli.progress import progress
from bot.cli.remote import RemoteServer, no_session
from bot.intake import local_commands
from bot.intake.commands import COMMANDS, InvalidArgument
from bot.show.command_outcome import CommandOutcome, command_outcome
from bot.show.session_summary import PullSummary
from bot.store import NewCommand, Session, Store
from bot.system.clock import utc_now
from bot.system.locations import Paths, programs
from config.contradictions import nearest
from config.settings import Settings
from lifecycle.model.facts import Pull
from lifecycle.model.names import CLI, agent_of
from lifecycle.model.text import plain
from runtimes.agents.shared.adapter import NotAdopted
from runtimes.host import RunRef, home_of
from runtimes.local_records import LocalRecords

WAITS: Final = "Waiting for the bot to apply it ..."
_WAIT_SECONDS = 15.0
_POLL_SECONDS = 0.1
_REMOTE_POLL_SECONDS = 0.5
_NAMES_ISSUE = "to start an agent on an issue, name it as PROJECT-NUMBER"
#: The issue number at the end of a session ID.
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def submit(
    config: Path | None,
    id: str,
    kind: str,
    text: str,
    pull: int | None,
    resume: str,
    *,
    wait: bool,
    as_json: bool,
    server: str = "",
) -> None:
    """Submit a command and print its outcome, as `report` does. Raises `CliError`.

    If `pull` is the number of a pull request, its last known head commit is sent with the command.
    `resume` is the ID of a conversation that a new session continues; empty for none.
    """
    if server:
        if resume:
            raise CliError("--resume works on the server's own machine only")
        with closing(RemoteServer(server)) as remote, progress(WAITS):
            outcome = _submit_to(remote, id, kind, text, pull, wait)
        report(outcome, running=True, as_json=as_json)
        return
    settings, redact = context.redacting(config)
    with context.store(settings, redact) as store, progress(WAITS):
        if kind == "start" and store.sessions.get(id) is None:
            outcome = _start(settings, store, id, text, resume, wait)
        elif resume:
            raise CliError(f"{id} already exists; --resume works for new sessions only")
        else:
            outcome = _submit(settings, store, id, kind, text, pull, wait)
        running = bot_runs(store)
    report(outcome, running=running, as_json=as_json)


def report(outcome: CommandOutcome, *, running: bool, as_json: bool) -> None:
    """Print the outcome of a command. Raises `CliError` if the command was refused.

    With `as_json`, prints a refusal too, and exits with 1 instead of raising. `running` says
    whether a bot runs that can apply the command.
    """
    refused = outcome.accepted is False
    if refused and not as_json:
        why = plain(outcome.reason)
        raise CliError(f"{outcome.session}: {outcome.kind} refused: {why}", PROBLEM)
    screens.report(outcome, _screen(outcome, running=running), as_json=as_json)
    if refused:
        raise typer.Exit(PROBLEM)


def set_frozen(
    config: Path | None, server: str, project: str, *, frozen: bool, as_json: bool
) -> None:
    """Freeze or unfreeze a project, or everything if `project` is empty, and print all freezes.

    Raises `CliError`, for example if the project is unknown. If there is nothing to unfreeze,
    raises `CliError` without `as_json`; with `as_json`, prints all freezes and exits with 1.
    """
    scope = f"project:{project}" if project else ""
    if server:
        with closing(RemoteServer(server)) as remote:
            before = {one.scope for one in remote.freezes()}
            freezes = remote.set_frozen(scope, frozen=frozen)
            changed = frozen is not (scope in before)
    else:
        settings, redact = context.redacting(config)
        if project and project not in settings.projects:
            raise CliError(f"no project {project!r}; {nearest(project, settings.projects)}")
        with context.store(settings, redact) as store:
            set_state = store.freezes.add if frozen else store.freezes.remove
            changed = set_state(scope, local_actor())
            freezes = store.freezes.all()
    what, when = project or "everything", "now" if changed else "already"
    now = Text(f"{what} is {when} frozen" if frozen else f"the freeze of {what} is undone")
    others = (Text(screens.freeze_line(one), "dim") for one in freezes if one.scope != scope)
    if not changed and not frozen and not as_json:
        others_too = "".join(f"; {screens.freeze_line(one)}" for one in freezes)
        raise CliError(f"there is no freeze of {what} to undo{others_too}", PROBLEM)
    screens.report(freezes, Group(now, *others), as_json=as_json)
    if not changed and not frozen:
        raise typer.Exit(PROBLEM)


def set_metadata(
    config: Path | None, server: str, id: str, values: Sequence[str], *, as_json: bool
) -> None:
    """Set `KEY=VALUE` pairs of a session and print all its metadata. `KEY=` removes a key.

    Without pairs, only prints. Raises `CliError`.
    """
    pairs = dict(metadata_pair(value) for value in values)
    if server:
        with closing(RemoteServer(server)) as remote:
            if pairs:
                metadata = remote.set_metadata(id, pairs)
            elif found := remote.find(id):
                metadata = dict(found.session.metadata)
            else:
                raise CliError(no_session(id))
    else:
        settings, redact = context.redacting(config)
        with context.store(settings, redact if pairs else None) as store:
            session = context.session(store, id)
            if pairs:
                store.metadata.set(session.id, pairs, local_actor())
            metadata = store.metadata.of(session.id)
    lines = (Text(f"{key}={plain(value)}") for key, value in metadata.items())
    screens.report(metadata, Group(*lines), as_json=as_json)


def metadata_pair(text: str) -> tuple[str, str]:
    """Split `KEY=VALUE`. Raises `CliError`."""
    key, equals, value = text.partition("=")
    if not equals or not local_commands.METADATA_KEY.fullmatch(key):
        raise CliError(
            f"{text!r}: expected KEY=VALUE; keys are up to 64 letters, digits, dots, dashes and"
            " underscores"
        )
    return key, value


def _submit(
    settings: Settings, store: Store, id: str, kind: str, text: str, pull: int | None, wait: bool
) -> CommandOutcome:
    session = context.session(store, id)
    head = _head(id, session.pulls, pull) if pull else ""
    return give(settings, store, session, kind, text, head, wait=wait)


def give(
    settings: Settings,
    store: Store,
    session: Session,
    kind: str,
    text: str,
    head: str,
    *,
    wait: bool = True,
) -> CommandOutcome:
    """Give a session a command and return its outcome, as `outcome_of` does. Raises `CliError`.

    `head` is the commit that the person has seen, for `merge`; if empty, the current one is taken.
    """
    key = f"cli:{uuid.uuid4()}"
    try:
        command = local_commands.build_command(
            *(session, kind, text), actor=local_actor(), key=key, at=utc_now(), head=head
        )
    except (InvalidArgument, local_commands.HeadChanged) as problem:
        raise CliError(str(problem)) from None
    local_commands.add_command(store, session, command)
    return outcome_of(settings, store, key, wait)


def _submit_to(
    server: RemoteServer, id: str, kind: str, text: str, pull: int | None, wait: bool
) -> CommandOutcome:
    """Submit a command over the API of a remote server."""
    found = server.find(id)
    if found is None and kind == "start":
        project, _, number = id.rpartition("-")
        if not _NUMBER.fullmatch(number):
            raise CliError(f"no session {id!r}; {_NAMES_ISSUE}, such as widgets-12")
        key = server.start(project, int(number), text)
    elif found is None:
        raise CliError(no_session(id))
    else:
        key = server.command(id, kind, text, _head(id, found.session.pulls, pull) if pull else "")
    return remote_outcome(server, key, wait)


def remote_outcome(server: RemoteServer, key: str, wait: bool) -> CommandOutcome:
    """Return the outcome of a command; with `wait`, waits up to 15 s until the server has one."""
    until = time.monotonic() + _WAIT_SECONDS
    while not (outcome := server.outcome(key)).reply and outcome.accepted is None:
        if not wait or time.monotonic() > until:
            break
        time.sleep(_REMOTE_POLL_SECONDS)
    return outcome


def _head(id: str, pulls: Sequence[Pull | PullSummary], number: int) -> str:
    for pull in pulls:
        if pull.number == number:
            return pull.head
    known = ", ".join(f"#{pull.number}" for pull in pulls) or "none"
    raise CliError(f"{id} has no pull request #{number}; its pull requests: {known}")


def _start(
    settings: Settings, store: Store, id: str, agent: str, resume: str, wait: bool
) -> CommandOutcome:
    """Request a session for an issue that has none."""
    project, _, number = id.rpartition("-")
    known = project in settings.projects
    if not _NUMBER.fullmatch(number):
        example = project if known else next(iter(settings.projects), "widgets")
        raise CliError(f"no session {id!r}; {_NAMES_ISSUE}, such as {example}-12")
    if not known:
        meant = nearest(project, settings.projects)
        raise CliError(f"no session {id!r}, and no project {project!r}; {meant}")
    try:
        text = local_commands.parse_argument(COMMANDS["start"], agent)
    except InvalidArgument as problem:
        raise CliError(str(problem)) from None
    if resume:
        _adopt(settings, id, agent_of(text) or settings.projects[project].agent, resume)
    command = NewCommand(
        key=f"cli:{uuid.uuid4()}",
        repository=settings.projects[project].repository,
        number=int(number),
        kind="start",
        actor=local_actor(),
        at=utc_now(),
        text=text,
        resume=resume,
    )
    store.commands.add(command)
    outcome = outcome_of(settings, store, command.key, wait)
    if outcome.accepted is False and resume:
        LocalRecords({}, Paths(settings.data).host).remove(home_of(id))
    return outcome


def _adopt(settings: Settings, id: str, agent: str, native: str) -> None:
    """Copy a conversation of the person at the command line into the new session's home.

    `native` is the ID that the agent's program gave to the conversation. Raises `CliError`.
    """
    paths = Paths(settings.data)
    if paths.database.stat().st_uid != os.geteuid():
        raise CliError("--resume works only as the user that runs the server")
    kind = context.types_of(settings, agent)[0]
    records = LocalRecords(programs(settings), paths.host)
    try:
        records.adopt(RunRef(session=id, run=1, agent_type=kind), native)
    except FileExistsError:
        remedy = "run `mergewright cleanup` to remove it"
        why = f"the home folder of {id} is left over from an earlier try"
        raise CliError(f"{why}; {remedy}", PROBLEM) from None
    except (NotAdopted, OSError) as failure:
        records.remove(home_of(id))
        raise CliError(str(failure), PROBLEM) from None


def outcome_of(settings: Settings, store: Store, key: str, wait: bool) -> CommandOutcome:
    """Return the outcome of a command; with `wait`, waits up to 15 s until a running bot has one.

    Raises `CliError` if the command was deleted.
    """
    policy_of = context.policies(settings, store).of
    until = time.monotonic() + _WAIT_SECONDS
    while True:
        outcome = command_outcome(store, key, settings.projects, policy_of, utc_now())
        if outcome is None:
            why = "the command is no longer in the database, so its outcome is unknown"
            raise CliError(f"{why}: look at the session, then repeat it if needed", PROBLEM)
        known = outcome.accepted is not None or outcome.reply
        if known or not wait or not bot_runs(store) or time.monotonic() > until:
            return outcome
        time.sleep(_POLL_SECONDS)


def bot_runs(store: Store) -> bool:
    """Whether a bot holds the lease on the database."""
    return store.lease.bot(utc_now()) is not None


def _screen(outcome: CommandOutcome, *, running: bool) -> Text:
    if not running:
        later = "; no bot is running, so it is applied when `mergewright serve` starts"
        return Text(f"{outcome.session}: {outcome.kind} submitted{later}", "dim")
    if outcome.accepted is None:
        later = f"\n{plain(outcome.reply)}" if outcome.reply else ""
        return Text(f"{outcome.session}: {outcome.kind} submitted, not applied yet{later}", "dim")
    screen = screens.headline(outcome.session, outcome.status, outcome.because)
    return screen.append(f"\n{plain(outcome.reply)}" if outcome.reply else "")


def local_actor() -> str:
    """Return how the history names the person at the command line, such as `cli:ann`."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # A user without an entry, as in some containers.
        name = str(os.getuid())
    return f"{CLI}{name}"
