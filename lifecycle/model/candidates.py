"""What observers report of an issue that asks for an agent, to open a session for it."""

from datetime import datetime

from msgspec import Struct

from lifecycle.model.facts import Issue


class Labelled(Struct, frozen=True, kw_only=True, tag="labelled"):
    """A label or an assignment that asks for an agent."""

    actor: str  #: Empty: unknown.
    at: datetime
    agent: str  #: The name of an agent, or an agent type.
    names_agent: bool  #: Whether the label itself names the agent (`mergewright:NAME`).


class Reopened(Struct, frozen=True, kw_only=True, tag="reopened"):
    """An issue, or the pull request of its session, that was reopened."""

    actor: str  #: Empty: unknown.
    at: datetime
    number: int  #: Of the issue or the pull request.


class Requested(Struct, frozen=True, kw_only=True, tag="requested"):
    """A start command, already authorized, on an issue without a session."""

    key: str  #: Of the command.
    actor: str  #: A login, or a command line's or page's user (`cli:ann`).
    at: datetime
    agent: str  #: The name of an agent or an agent type; empty: the project's default.
    permission_mode: str = ""
    resume: str = ""  #: The agent's own conversation to resume.
    is_local: bool = False  #: Whether it came from this machine, so that no comment answers it.


Trigger = Labelled | Reopened | Requested


class Candidate(Struct, frozen=True, kw_only=True):
    """One trigger on one issue or pull request, with the permissions that were read for it."""

    project: str  #: Empty: no configured project has this repository.
    repository: str
    number: int  #: Of the issue.
    trigger: Trigger
    allowed: bool  #: Whether the actor has write access or is listed; read uncached.
    #: Who edited the text after the trigger without write access; empty: unknown, None: nobody.
    edited_by: str | None = None
    issue: Issue | None = None  #: None: there is no such issue, or the trigger is a reopening.
    is_pull: bool = False
    priority: int = 0  #: From the issue's labels.
