"""Asking from here: what command line, page and API ask for, written down as comments' wishes are.

Who may ask was settled at the door: by the right to write the database's file, or by the token.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches

from bot.intake.commands import COMMANDS, Command, Unfit
from bot.store import NewWish, Ordered, Session, Store
from lifecycle.model.actions import Comment
from lifecycle.model.facts import Pull, Wish
from lifecycle.model.status import PullState

#: Who asks, as the history names them; `cli:` is followed by the user's name.
CLI, API, PAGE = "cli:", "api:client", "page:visitor"

#: What can be asked for. What only wants an answer is not asked for but read.
ASKABLE: Mapping[str, Command] = {
    **{name: one for name, one in COMMANDS.items() if name not in ("help", "status", "why")},
    "restore": Command(name="restore", asks="bring an ended session back: a new run, same branch"),
}

#: What metadata of a session can be named.
METADATA_KEY = re.compile(r"[A-Za-z0-9._-]{1,64}")


class AskedOtherwise(Exception):
    """This key was used for something else."""


def wish_of(
    session: Session,
    kind: str,
    text: str,
    *,
    actor: str,
    key: str,
    at: datetime,
    head: str = "",
) -> Wish:
    """What is asked for as a wish, bound to the head that stands, or to `head` if it does.

    Raises `Unfit`, whose message says what was expected.
    """
    command = ASKABLE.get(kind)
    if command is None:
        near = get_close_matches(kind, ASKABLE, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise Unfit(f"there is no {kind!r}; {meant}known: {', '.join(sorted(ASKABLE))}")
    try:
        read = command.read(text.strip())
    except Unfit as problem:
        raise Unfit(f"{kind} {problem}") from None
    standing = standing_head(session, session.issue.number, at, head)
    if head and standing != head:
        raise Unfit(f"no open pull request of {session.id} is at {head[:7]}; look at it again")
    return Wish(key=key, kind=kind, actor=actor, at=at, text=read, head=standing)


def ask(store: Store, session: Session, wish: Wish) -> bool:
    """Write a wish down; False where the same was asked before by its key.

    Raises `AskedOtherwise` where the key was used for something else.
    """
    if store.ask(session.id, wish):
        return True
    known = store.session(session.id)
    same = {(one.key, one.kind, one.text) for one in known.wishes} if known else set()
    if (wish.key, wish.kind, store.redact(wish.text)) not in same:
        raise AskedOtherwise(f"the key {wish.key!r} was used for something else")
    return False


def ask_anew(store: Store, wish: NewWish) -> bool:
    """Write down a wish that no session has yet; False where the same was asked before by its key.

    Raises `AskedOtherwise` where the key was used for something else.
    """
    known = store.wish(wish.key)
    if known is None:
        store.add_wish(wish)
        return True
    if (known.kind, known.text) != (wish.kind, wish.text):
        raise AskedOtherwise(f"the key {wish.key!r} was used for something else")
    return False


def answers(outbox: Iterable[Ordered]) -> Mapping[str, str]:
    """What people were answered, by the key of their wish."""
    said = (order.action for order in outbox)
    # Its key is `comment:WHICH:` and the wish's.
    return {
        one.key.split(":", 2)[2]: one.values["text"]
        for one in said
        if isinstance(one, Comment) and one.topic == "answer"
    }


def standing_head(session: Session, number: int, at: datetime, head: str = "") -> str:
    """The head a wish of that moment was about; empty where it has moved since, or it is unclear.

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
