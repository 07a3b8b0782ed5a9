"""The outcome of a command: applied, refused with a reason, or waiting for something."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from bot.show.session_detail import replies_by_command
from bot.store import SESSION_OPENED, NewCommand, Store
from bot.text import page_text
from config.projects import project_of
from config.settings import ProjectSettings
from lifecycle.judge.commands import apply_commands
from lifecycle.judge.pauses import frozen_by, frozen_by_label
from lifecycle.model.facts import Facts, Frozen
from lifecycle.model.names import FREEZES, NAME
from lifecycle.model.policy import Policy


class CommandOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a command so far."""

    key: str
    session: Annotated[str, Meta(examples=["widgets-12"])]
    kind: Annotated[str, Meta(examples=["start"])]
    text: str
    accepted: Annotated[
        bool | None, Meta(description="If null, the bot has neither applied nor refused it yet.")
    ]
    reason: Annotated[str, Meta(description="Why it was refused; if empty, it was not.")]
    status: Annotated[str, Meta(description="The session's status; if empty, there is no session.")]
    because: Annotated[str, Meta(description="Why the session has this status.")]
    reply: Annotated[
        str, Meta(description="The reply, or what the command waits for; if empty, there is none.")
    ]


def command_outcome(
    store: Store,
    key: str,
    projects: Mapping[str, ProjectSettings],
    policy_of: Callable[[str], Policy],
    now: datetime,
) -> CommandOutcome | None:
    """Return the outcome of the command with this key, or None if there is no such command."""
    command = store.commands.get(key)
    if command is None:
        return None
    name = store.commands.session_of(key)
    if name and store.sessions.get(name) is not None:
        accepted, reply = _in_session(store, key, name, policy_of, now)
    else:
        name = name or _requested_id(command, projects)
        accepted, reply = _of_start(store, command)
    session = store.sessions.get(name)
    return CommandOutcome(
        key=key,
        session=name,
        kind=command.kind,
        text=page_text.block(command.text),
        accepted=accepted,
        reason=page_text.block(reply) if accepted is False else "",
        status=session.status if session else "",
        because=session.because if session else "",
        reply=page_text.block(reply),
    )


def _requested_id(command: NewCommand, projects: Mapping[str, ProjectSettings]) -> str:
    """Return the session ID that a request chose, or else the ID of the issue's first session."""
    if command.spawn is not None:
        return command.spawn.session
    return f"{project_of(projects, command.repository)}-{command.number}"


def _of_start(store: Store, command: NewCommand) -> tuple[bool | None, str]:
    """Return whether a start command was accepted, and the stored reason if it was refused.

    The first value is None until the bot decides. A command that opened a session was accepted; it
    is stored as refused with the reason `SESSION_OPENED`, which is then the second value.
    """
    reply = store.commands.outcome(command.key)
    if reply is None:
        return None, ""
    # The command that opened a session is settled, too, so that it opens no other one.
    return reply in ("", SESSION_OPENED), reply


def _in_session(
    store: Store, key: str, id: str, policy_of: Callable[[str], Policy], now: datetime
) -> tuple[bool | None, str]:
    facts, session = store.facts.get(id), store.sessions.get(id)
    recorded = replies_by_command(store.outbox.of(id)).get(key)
    if recorded is not None:
        return recorded.accepted, recorded.text
    given = next(command for command in facts.commands if command.key == key)
    frozen = frozen_by(facts) if given.kind != "freeze" else None
    is_new = session is None or (session.due is not None and session.due <= given.at)
    if is_new and frozen is None:
        return None, ""  # It was not reconciled since.
    # In mode `observe` and while frozen, no reply is recorded.
    answers = apply_commands(facts, policy_of(facts.project), now).answers
    reply = replies_by_command((), dict(answers)).get(key)
    if frozen is not None and (reply is None or reply.accepted):
        return None, _awaited(facts, frozen)
    return (True, "") if reply is None else (reply.accepted, reply.text)


def _awaited(facts: Facts, frozen: Frozen) -> str:
    """Return who froze a session, and what its command therefore waits for."""
    match frozen.scope:
        case "all":
            what, undo = "Everything", f"`{NAME} unfreeze --all`"
        case "project":
            what, undo = f"Project {facts.project}", f"`{NAME} unfreeze --project {facts.project}`"
        case _ if frozen_by_label(facts):
            what, undo = facts.session, f"the removal of the label `{FREEZES}`"
        case _:
            what, undo = facts.session, f"`{NAME} unfreeze {facts.session}`"
    by = f" by {frozen.by}" if frozen.by else ""
    return f"{what} is frozen{by}. The command waits for {undo}."
