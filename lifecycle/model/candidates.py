"""What asks for a session: an issue, as observers report it, or a request without one."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from lifecycle.model.facts import Issue


class Labelled(Struct, frozen=True, kw_only=True, tag="labelled"):
    """A label or an assignment that asks for an agent."""

    actor: str  #: If empty, unknown.
    at: datetime
    agent: str  #: As in `agent_names`; if empty, unknown.
    names_agent: bool  #: Whether the label itself names the agent (`mergewright:NAME`).


class Reopened(Struct, frozen=True, kw_only=True, tag="reopened"):
    """An issue or a session's pull request that was reopened."""

    actor: str  #: If empty, unknown.
    at: datetime
    number: int  #: Of the issue or the pull request.


class Spawn(Struct, frozen=True, kw_only=True):
    """What a person specified for a new session, besides its project, issue and agent."""

    session: str  #: Its id, chosen when it was requested.
    prompt: str = ""  #: The work, where there is no issue.
    branch: str = ""  #: If empty, by the project's pattern.
    budget_usd: float = 0.0  #: If 0, the project's.
    metadata: Mapping[str, str] = {}
    chat: bool = False  #: Whether it is a chat; `prompt` is the first message, or empty.


class Adopted(Struct, frozen=True, kw_only=True):
    """A person's open pull request that a session is to continue, read for the command `adopt`."""

    branch: str
    head: str
    from_fork: bool  #: Whether the branch is in another repository.


class Requested(Struct, frozen=True, kw_only=True, tag="requested"):
    """A start command, already authorized, for a new session."""

    key: str  #: Of the command.
    actor: str  #: A login, or a command line's or page's user (`cli:ann`).
    at: datetime
    agent: str  #: As in `agent_names`; if empty, the project's default.
    permission_mode: str = ""
    resume: str = ""  #: The agent's own conversation to resume.
    is_local: bool = False  #: Whether `is_local(actor)`, so that no comment answers it.
    #: What to open for a further session of the issue, or for a session without an issue. None for
    #: the issue's only session.
    spawn: Spawn | None = None
    adopts: bool = False  #: Whether it is the command `adopt`, on a pull request.


Trigger = Labelled | Reopened | Requested


class Candidate(Struct, frozen=True, kw_only=True):
    """One trigger, usually on an issue, with the permissions that were read for it."""

    project: str  #: If empty, no configured project has this repository.
    repository: str
    number: int  #: Of the issue, or of the pull request if `is_pull`; if 0, there is neither.
    trigger: Trigger
    #: Whether the actor has write access or is listed, read uncached. True for a start command,
    #: which was authorized before.
    allowed: bool
    #: A person who may not give commands and edited the text at or after the trigger. None if there
    #: is nobody, or if `allowed` is False; empty if the person is unknown.
    edited_by: str | None = None
    #: None if there is no such issue or no project, or if the trigger is a reopening.
    issue: Issue | None = None
    is_pull: bool = False
    adopted: Adopted | None = None  #: None if nothing is adopted or it does not exist.
    session: str = ""  #: The session that it concerns; if empty, the newest session of the issue.
    priority: int = 0  #: From the issue's labels.
