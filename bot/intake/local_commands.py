"""Commands from the command line, the page and the API.

Access was checked before: by write permission on the database file, or by the page's token.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches

from bot.intake.commands import COMMANDS, CommandSyntax, InvalidArgument
from bot.store import NewCommand, OutboxEntry, Session, Store
from lifecycle.model.actions import Comment
from lifecycle.model.facts import Command, Pull
from lifecycle.model.status import PullState

#: Who asks, as the history names them; `cli:` is followed by the user's name.
CLI, API, PAGE = "cli:", "api:client", "page:visitor"

#: What can be asked for. What only wants an answer is not asked for but read.
ASKABLE: Mapping[str, CommandSyntax] = {
    **{name: one for name, one in COMMANDS.items() if name not in ("help", "status", "why")},
    "restore": CommandSyntax(
        "restore", "", "bring an ended session back, in a new run on the same branch"
    ),
}

#: What metadata of a session can be named.
METADATA_KEY = re.compile(r"[A-Za-z0-9._-]{1,64}")


class AskedOtherwise(Exception):
    """This key was used for something else."""


def command_of(
    session: Session,
    kind: str,
    text: str,
    *,
    actor: str,
    key: str,
    at: datetime,
    head: str = "",
) -> Command:
    """What is asked for as a command, bound to the head that stands, or to `head` if it does.

    Raises `InvalidArgument`, whose message says what was expected.
    """
    command = ASKABLE.get(kind)
    if command is None:
        near = get_close_matches(kind, ASKABLE, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise InvalidArgument(f"there is no {kind!r}; {meant}known: {', '.join(sorted(ASKABLE))}")
    try:
        read = command.parse_argument(text.strip())
    except InvalidArgument as problem:
        raise InvalidArgument(f"{kind} {problem}") from None
    standing = standing_head(session, session.issue.number, at, head)
    if head and standing != head:
        raise InvalidArgument(
            f"no open pull request of {session.id} is at {head[:7]}; look at it again"
        )
    return Command(key=key, kind=kind, actor=actor, at=at, text=read, head=standing)


def ask(store: Store, session: Session, command: Command) -> bool:
    """Write a command down; False where the same was asked before by its key.

    Raises `AskedOtherwise` where the key was used for something else.
    """
    if store.commands.add_granted(session.id, command):
        return True
    known = store.sessions.get(session.id)
    same = {(one.key, one.kind, one.text) for one in known.commands} if known else set()
    if (command.key, command.kind, store.db.redact(command.text)) not in same:
        raise AskedOtherwise(f"the key {command.key!r} was used for something else")
    return False


def ask_anew(store: Store, command: NewCommand) -> bool:
    """Record a command that has no session yet; False if its key was used for the same before.

    Raises `AskedOtherwise` where the key was used for something else.
    """
    known = store.commands.get(command.key)
    if known is None:
        store.commands.add(command)
        return True
    if (known.kind, known.text) != (command.kind, command.text):
        raise AskedOtherwise(f"the key {command.key!r} was used for something else")
    return False


def answers(outbox: Iterable[OutboxEntry]) -> Mapping[str, str]:
    """What people were answered, by the key of their command."""
    said = (order.action for order in outbox)
    return {
        one.key.cause[0]: one.values["text"]
        for one in said
        if isinstance(one, Comment) and one.topic == "answer"
    }


def standing_head(session: Session, number: int, at: datetime, head: str = "") -> str:
    """The head current when a command was written; empty if it has moved since or is unclear.

    `number` is of the pull request, or of the issue while one pull request is open.
    """
    found = [pull for pull in session.pulls if pull.number == number]
    if not found:
        found = [pull for pull in session.pulls if pull.state is PullState.OPEN]
    heads = [pull.head for pull in found if _stood(pull, at) and head in ("", pull.head)]
    return heads[0] if len(heads) == 1 else ""


def _stood(pull: Pull, at: datetime) -> bool:
    # GitHub tells whole seconds, so the head is looked at as if it told them too.
    since = pull.head_since.replace(microsecond=0) if pull.head_since else at
    return since <= at
