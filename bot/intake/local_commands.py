"""Records commands from the command line, the pages and the API.

The caller has checked access. On the command line that is write permission on the database file; on
pages and in the API it is the page token (`MERGEWRIGHT_PAGE_TOKEN`), which the whole server shares,
or the person's role (`Reach.check_command`).
"""

import re
from collections.abc import Mapping
from datetime import datetime
from difflib import get_close_matches

from bot.intake.commands import COMMANDS, CommandSyntax, InvalidArgument
from bot.store import NewCommand, Session, Store
from lifecycle.model.facts import Command, Pull
from lifecycle.model.status import PullState

#: By name, every command of a session except those that only show something.
LOCAL_COMMANDS: Mapping[str, CommandSyntax] = {
    name: one for name, one in COMMANDS.items() if name not in ("adopt", "help", "status", "why")
}

#: The keys that a session's metadata may have.
METADATA_KEY = re.compile(r"[A-Za-z0-9._-]{1,64}")


class KeyReused(Exception):
    """The idempotency key was already used for another command or request."""


class HeadChanged(Exception):
    """None of the session's open pull requests has the head commit that a command named."""


def build_command(
    session: Session, kind: str, text: str, *, actor: str, key: str, at: datetime, head: str = ""
) -> Command:
    """Parse a command, and bind it to a head commit of the session's pull request.

    `head` is the commit that the person has seen; if it is empty, the current head is used. `allow`
    is bound to the commit that it names instead; see `allowed_commit`. If the session already has a
    command with this `key`, `head` is not checked, and an empty `head` is replaced by that of the
    recorded command.

    Raises:
        InvalidArgument: the message says what was expected.
        HeadChanged: no open pull request is at `head` now.
    """
    command = LOCAL_COMMANDS.get(kind)
    if command is None:
        near = get_close_matches(kind, LOCAL_COMMANDS, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise InvalidArgument(
            f"there is no command {kind!r}; {meant}known: {', '.join(sorted(LOCAL_COMMANDS))}"
        )
    read = parse_argument(command, text)
    known = next((one for one in session.commands if one.key == key), None)
    current = known.head if known else head_at(session, session.issue.number, at, head)
    if head and current != head and not known:
        raise HeadChanged(
            f"no open pull request of {session.id} is at the commit {head[:7]} any more; look at"
            " the changes, then repeat the command"
        )
    bound = head or current
    if kind == "allow":
        bound = known.head if known else allowed_commit(session, read)
    return Command(key=key, kind=kind, actor=actor, at=at, text=read, head=bound)


def parse_argument(command: CommandSyntax, text: str) -> str:
    """Return the argument of a command in its stored form. Raises `InvalidArgument`."""
    try:
        return command.parse_argument(text.strip())
    except InvalidArgument as problem:
        raise InvalidArgument(f"{command.name} {problem}") from None


def add_command(store: Store, session: Session, command: Command) -> bool:
    """Record a command; return False if it was already recorded under its key.

    Raises `KeyReused` if the key belongs to another command.
    """
    if store.commands.add_granted(session.id, command):
        return True
    known = store.sessions.get(session.id)
    same = {(one.key, one.kind, one.text, one.head) for one in known.commands} if known else set()
    if (command.key, command.kind, store.db.redact(command.text), command.head) not in same:
        raise KeyReused(f"the idempotency key {command.key!r} was used for something else")
    return False


def add_start(store: Store, command: NewCommand) -> bool:
    """Record a start command without a session; return False if it was already recorded.

    Raises `KeyReused` if the key belongs to another command.
    """
    known = store.commands.get(command.key)
    if known is None:
        store.commands.add(command)
        return True
    if (known.kind, known.text) != (command.kind, command.text):
        raise KeyReused(f"the idempotency key {command.key!r} was used for something else")
    return False


def head_at(session: Session, number: int, at: datetime, head: str = "") -> str:
    """Return the head commit that a command given at the time `at` is about; empty if unclear.

    `number` is that of a pull request; any other number, such as the issue's, stands for all pull
    requests that are open, or were merged after the command. If `head` is given, only those with
    this head count. The result is empty unless exactly one counts, and this one is open or was
    named by its number, and neither its head nor its base has changed since `at`.
    """
    found = [pull for pull in session.pulls if pull.number == number]
    if not found:
        found = [pull for pull in session.pulls if _was_open(pull, at)]
    meant = [pull for pull in found if head in ("", pull.head)]
    if len(meant) != 1 or not _was_current(meant[0], at):
        return ""
    named = meant[0].number == number
    return meant[0].head if named or meant[0].state is PullState.OPEN else ""


def allowed_commit(session: Session, text: str) -> str:
    """Return the session's newest commit, if `text` is an abbreviation of it; empty if not.

    An `allow` is bound to this commit when it is granted, because an agent could craft another one
    with the same abbreviation later.
    """
    head = session.work.head
    return head if head.startswith(text) else ""


def _was_open(pull: Pull, at: datetime) -> bool:
    """Whether the pull request is open, or was merged since `at`."""
    return pull.state is PullState.OPEN or (pull.merged_at is not None and pull.merged_at >= at)


def _was_current(pull: Pull, at: datetime) -> bool:
    # The times of GitHub's comments are whole seconds, so all times are compared as such.
    return all(
        since.replace(microsecond=0) <= at for since in (pull.head_since, pull.base_since) if since
    )
