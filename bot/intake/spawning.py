"""Records requests to open sessions, from the command line, the pages and the API.

The caller has checked access, as for `bot.intake.local_commands`.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from bot.intake.commands import COMMANDS, InvalidArgument
from bot.intake.local_commands import METADATA_KEY, KeyReused, parse_argument
from bot.store import NewCommand, Store
from lifecycle.model.candidates import Spawn
from lifecycle.model.names import MODE

#: The most characters of a prompt, as of every text in a message to an agent.
MOST_OF_PROMPT: Final = 20_000
MOST_USD: Final = 100_000.0
#: A branch that a person may name. Git allows more: https://git-scm.com/docs/git-check-ref-format
BRANCH = re.compile(
    r"(?!.*[.]lock(?:/|$))(?!.{101})[A-Za-z0-9](?:[A-Za-z0-9_-]|[./](?=[A-Za-z0-9_-]))*", re.ASCII
)


class SessionExists(Exception):
    """The issue has a session, and the request does not ask for another one."""


class SpawnRequest(Struct, frozen=True, kw_only=True):
    """A request for a session: for an issue, for a prompt, or a chat with an optional prompt."""

    project: str
    repository: str  #: The project's repository.
    issue: int = 0
    prompt: str = ""
    agent: str = ""  #: `AGENT` or `AGENT TYPE`, as for the command `start`.
    permission_mode: str = ""
    branch: str = ""
    budget_usd: float = 0.0
    metadata: Mapping[str, str] = {}
    another: bool = False  #: Whether the issue may have a session already.
    chat: bool = False  #: Whether it is a chat; `prompt` is then the first message.


def request_session(
    store: Store, wanted: SpawnRequest, *, actor: str, key: str, at: datetime
) -> tuple[NewCommand, bool]:
    """Record a request for a session, and choose the session's ID.

    Returns the recorded command, whose `spawn.session` is this ID, and whether the command is new
    under this key. Raises `InvalidArgument`, whose message says what was expected, `SessionExists`
    and `KeyReused`.
    """
    asked = NewCommand(
        key=key,
        repository=wanted.repository,
        number=wanted.issue,
        kind="start",
        actor=actor,
        at=at,
        text=_argument(wanted),
        spawn=_spawn(wanted),
    )
    new = store.commands.get(key) is None
    if new:
        _check_unused(store, wanted)
    taken = store.commands.add_spawn(asked, wanted.project)
    spawn = replace(taken.spawn, session="") if taken.spawn else None
    same = store.db.redact((asked.number, asked.text, asked.spawn))
    if (taken.number, taken.text, spawn) != same:
        raise KeyReused(f"the idempotency key {key!r} was used for something else")
    return taken, new


def session_of(command: NewCommand) -> str:
    """Return the ID that `request_session` chose for a command; empty for any other command."""
    return command.spawn.session if command.spawn else ""


def _argument(wanted: SpawnRequest) -> str:
    mode = f"{MODE}{wanted.permission_mode}" if wanted.permission_mode else ""
    return parse_argument(COMMANDS["start"], f"{wanted.agent} {mode}")


def _spawn(wanted: SpawnRequest) -> Spawn:
    prompt = wanted.prompt.strip()
    if wanted.chat and wanted.issue:
        raise InvalidArgument("a chat has no issue: name the issue in its first message")
    if not wanted.chat and bool(wanted.issue) == bool(prompt):
        raise InvalidArgument("a session needs either an issue or a prompt")
    if len(prompt) > MOST_OF_PROMPT:
        raise InvalidArgument(f"a prompt may have at most {MOST_OF_PROMPT:,} characters")
    if wanted.branch and not BRANCH.fullmatch(wanted.branch):
        raise InvalidArgument(
            f"{wanted.branch[:100]!r} is not a branch name: use at most 100 letters, digits, dots,"
            " dashes, underscores and slashes; begin with a letter or digit; put a letter, digit,"
            " dash or underscore after each dot and slash; neither the name nor a part before a"
            " slash may end in .lock"
        )
    if not 0 <= wanted.budget_usd <= MOST_USD:
        raise InvalidArgument(f"a budget may have at most {MOST_USD:,.0f} US dollars")
    wrong = [name for name in wanted.metadata if not METADATA_KEY.fullmatch(name)]
    if wrong:
        raise InvalidArgument(
            f"{wrong[0][:80]!r} is not a key of metadata: use up to 64 letters, digits, dots,"
            " dashes and underscores"
        )
    return Spawn(
        session="",
        prompt=prompt,
        branch=wanted.branch,
        budget_usd=wanted.budget_usd,
        metadata={name: value for name, value in wanted.metadata.items() if value},
        chat=wanted.chat,
    )


def _check_unused(store: Store, wanted: SpawnRequest) -> None:
    """Raise an exception if another session has the requested branch or issue.

    With `wanted.another`, the issue may have other sessions.
    """
    of_subject, repository = store.sessions.of_subject, wanted.repository
    known = of_subject(repository, f"issue:{wanted.issue}") if wanted.issue else None
    if known and not wanted.another:
        raise SessionExists(f"issue #{wanted.issue} already has the session {known}")
    other = of_subject(repository, f"branch:{wanted.branch}") if wanted.branch else None
    if other:
        raise InvalidArgument(f"the branch {wanted.branch} is that of {other}")
