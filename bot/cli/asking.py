"""What steering does at the database: a command is written beside the bot, and its answer read.

A session that is not there yet can be started, so that command has no session to be written to.
"""

import os
import pwd
import re
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct
from rich.text import Text

from bot.cli import adopting, context, screens
from bot.cli.refused import PROBLEM, CliError
from bot.intake import local_commands
from bot.intake.commands import InvalidArgument
from bot.store import NewCommand, Session, Store
from bot.system.clock import utc_now
from config.contradictions import nearest
from config.settings import Settings
from lifecycle.judge.pauses import frozen_by
from lifecycle.model.facts import Command
from lifecycle.model.text import plain

_WAIT_SECONDS = 15.0
_POLL_SECONDS = 0.1
#: Of an issue, as its session's name has it.
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")


class CommandOutcome(Struct, frozen=True, kw_only=True):
    """What came of what was asked for."""

    key: str
    session: str
    kind: str
    text: str
    judged: bool  #: False: nobody waited, or no bot runs.
    status: str
    because: str
    answer: str


def ask(
    config: Path | None,
    id: str,
    kind: str,
    text: str,
    *,
    pull: int | None,
    resume: str,
    wait: bool,
    as_json: bool,
) -> None:
    """Ask for something, and print what came of it."""
    settings, redact = context.redacting(config)
    with context.guest(settings, redact) as store:
        if kind == "start" and store.sessions.get(id) is None:
            answered = _started(settings, store, id, text, resume, wait)
        elif resume:
            raise CliError(f"{id} has a conversation of its own: only a new session takes another")
        else:
            answered = _asked(store, id, kind, text, pull, wait)
        idle = "" if _led(store) else "no bot runs: it is taken up when `mergewright serve` starts"
    if as_json:
        screens.show_json(answered)
    else:
        screens.show(_screen(answered, idle))


def hold(config: Path | None, project: str, *, frozen: bool, as_json: bool) -> None:
    """Freeze or unfreeze everything, or one project."""
    settings, redact = context.redacting(config)
    if project and project not in settings.projects:
        raise CliError(f"no project {project!r}; known: {', '.join(sorted(settings.projects))}")
    scope = f"project:{project}" if project else ""
    with context.guest(settings, redact) as store:
        changed = (
            store.freezes.add(scope, _who()) if frozen else store.freezes.remove(scope, _who())
        )
        standing = store.freezes.all()
    if as_json:
        screens.show_json(standing)
        return
    what, state = project or "everything", "frozen" if frozen else "not frozen"
    screens.show(Text(f"{what} is {state}{'' if changed else ' already'}"))
    for one in standing:
        if one.scope != scope:
            screens.show(Text(f"{one.scope or 'everything'} is frozen by {one.by}", "dim"))


def remember(config: Path | None, id: str, values: Sequence[str], *, as_json: bool) -> None:
    """Remember `KEY=VALUE`s about a session, and print all that is remembered."""
    pairs = dict(_pair(value) for value in values)
    settings, redact = context.redacting(config)
    with context.guest(settings, redact) if pairs else context.store(settings) as store:
        session = context.session(store, id)
        if pairs:
            store.metadata.set(session.id, pairs)
        known = store.metadata.of(session.id)
    if as_json:
        screens.show_json(known)
        return
    for key, value in known.items():
        screens.show(Text(f"{key}={plain(value)}"))


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not local_commands.METADATA_KEY.fullmatch(key):
        raise CliError(
            f"{text!r}: expected KEY=VALUE, with letters, digits, dots and dashes in KEY"
        )
    return key, value


def _asked(
    store: Store, id: str, kind: str, text: str, pull: int | None, wait: bool
) -> CommandOutcome:
    session, key = context.session(store, id), f"cli:{uuid.uuid4()}"
    try:
        command = local_commands.command_of(
            *(session, kind, text),
            actor=_who(),
            key=key,
            at=utc_now(),
            head=_head(session, pull) if pull else "",
        )
    except InvalidArgument as problem:
        raise CliError(str(problem)) from None
    local_commands.ask(store, session, command)
    judged = wait and _led(store) and _until(lambda: _judged(store, command, id))
    now, frozen = context.session(store, id), frozen_by(store.facts.get(id))
    held = f"It is frozen by {frozen.by}: nothing is done until `unfreeze`." if frozen else ""
    return CommandOutcome(
        key=key,
        session=id,
        kind=kind,
        text=command.text,
        judged=judged,
        status=now.status,
        because=now.because,
        answer=local_commands.answers(store.outbox.of(id)).get(key, "") or held,
    )


def _head(session: Session, number: int) -> str:
    for pull in session.pulls:
        if pull.number == number:
            return pull.head
    known = ", ".join(f"#{pull.number}" for pull in session.pulls) or "none"
    raise CliError(f"{session.id} has no pull request #{number}; it has {known}")


def _judged(store: Store, command: Command, id: str) -> bool:
    """Whether the session was visited since."""
    session = store.sessions.get(id)
    return session is not None and (session.due is None or session.due > command.at)


def _started(
    settings: Settings, store: Store, id: str, agent: str, resume: str, wait: bool
) -> CommandOutcome:
    """Ask for a session that is not there: the bot reads its issue, and makes it."""
    project, _, number = id.rpartition("-")
    if project not in settings.projects or not _NUMBER.fullmatch(number):
        raise CliError(
            f"no session {id!r}, and no issue of a project: expected PROJECT-NUMBER;"
            f" {nearest(project, settings.projects)}"
        )
    try:
        read = local_commands.ASKABLE["start"].parse_argument(agent)
    except InvalidArgument as problem:
        raise CliError(f"start {problem}") from None
    if resume:
        adopting.adopt(settings, id, read or settings.projects[project].agent, resume)
    command = NewCommand(
        key=f"cli:{uuid.uuid4()}",
        repository=settings.projects[project].repository,
        number=int(number),
        kind="start",
        actor=_who(),
        at=utc_now(),
        text=read,
        resume=resume,
    )
    store.commands.add(command)
    judged = (
        wait and _led(store) and _until(lambda: store.commands.outcome(command.key) is not None)
    )
    session, said = store.sessions.get(id), store.commands.outcome(command.key)
    if said and session is None:
        if resume:
            adopting.give_up(settings, id)
        raise CliError(f"{id} was not started: {said}", PROBLEM)
    return CommandOutcome(
        key=command.key,
        session=id,
        kind="start",
        text=read,
        judged=judged,
        status=session.status if session else "",
        because=session.because if session else "",
        answer=said or "",
    )


def _until(happened: Callable[[], bool]) -> bool:
    """Wait for a while until something has happened; whether it has."""
    until = time.monotonic() + _WAIT_SECONDS
    while not happened():
        if time.monotonic() > until:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _led(store: Store) -> bool:
    """Whether a bot acts on the database now."""
    leader = store.lease.holder()
    return leader is not None and leader[1] > utc_now()


def _screen(answered: CommandOutcome, idle: str) -> Text:
    screen = Text(f"{answered.session}: {answered.kind} is written down", "dim")
    if idle or not answered.judged:
        return screen.append(f"; {idle or 'it was not waited for'}")
    status, because = answered.status, plain(answered.because)
    screen = Text.assemble(
        (answered.session, "bold"), " ", (status, screens.colour(status)), f"  {because}"
    )
    return screen.append(f"\n{plain(answered.answer)}" if answered.answer else "")


def _who() -> str:
    """The person at the command line, as the history names him."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # A user without an entry, as in some containers.
        name = str(os.getuid())
    return f"{local_commands.CLI}{name}"
