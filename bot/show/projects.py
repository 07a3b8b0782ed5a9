"""Projects: what is configured, where each value of the policy comes from, and what runs."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from bot.show.session_list import list_sessions
from bot.show.session_summary import SessionSummary
from bot.store import Freeze, SessionQuery, Store
from bot.system.isolation import NotIsolated, isolation_of
from bot.text import page_text
from config.repository import PATH, RepositoryError, Right, right_to, still_narrowed
from config.settings import ProjectSettings, Settings, requestable
from lifecycle.judge.capacity import Caps
from lifecycle.model.policy import Policy
from lifecycle.model.status import TERMINAL, Status

#: The most open sessions that a project lists; the board has all.
_SESSIONS: Final = 10
_OPEN: Final = tuple(status for status in Status if status not in TERMINAL)

Source = Literal["default", "server", "project", "repository"]


class ProjectEntry(Struct, frozen=True, kw_only=True):
    """A project in a list."""

    name: Annotated[str, Meta(examples=["widgets"])]
    repository: Annotated[str, Meta(examples=["acme/widgets"])]
    agent: Annotated[str, Meta(description="The agent type of new sessions.")]
    label: Annotated[str, Meta(description="The label that starts a session on an issue.")]
    open_sessions: int
    last_delivery: Annotated[
        datetime | None, Meta(description="When the last webhook of the repository arrived.")
    ]


class PolicyValue(Struct, frozen=True, kw_only=True):
    """A value of the policy in force, with its source."""

    name: Annotated[str, Meta(examples=["merge-method"])]
    value: Any
    source: Annotated[
        Source,
        Meta(description="`repository`: its file; `project` and `server`: the configuration."),
    ]
    file: Annotated[Right, Meta(description="What the repository's file may do to it.")]


class ProjectDetail(Struct, frozen=True, kw_only=True):
    """Everything about a project."""

    entry: ProjectEntry
    table: Annotated[str, Meta(description="The project's table in the configuration.")]
    current_name: Annotated[str, Meta(description="The repository's new name; empty: unchanged.")]
    archived: bool
    frozen: Freeze | None
    isolation: Annotated[str, Meta(description="Of its agents; if empty, no agent can start.")]
    assignee: str
    agent_labels: Annotated[
        tuple[str, ...], Meta(description="Labels that start a session with one agent.")
    ]
    pull_labels: tuple[str, ...]
    people: Annotated[
        tuple[str, ...], Meta(description="Who may give commands without write access.")
    ]
    assigned: Annotated[
        Mapping[str, int],
        Meta(description="Open sessions by agent; empty name: not assigned yet."),
    ]
    sessions: Annotated[
        tuple[SessionSummary, ...], Meta(description="The newest open sessions, at most 10.")
    ]
    policy: tuple[PolicyValue, ...]
    has_file: Annotated[bool, Meta(description=f"Whether a valid `{PATH}` is in force.")]
    refused: Annotated[
        tuple[str, ...],
        Meta(description="What of that file is ignored, because it exceeds the server's policy."),
    ]
    problem: Annotated[str, Meta(description="Why the last version of the file is not in force.")]


def project_entries(
    store: Store, projects: Mapping[str, ProjectSettings]
) -> tuple[ProjectEntry, ...]:
    """Return all projects, sorted by name."""
    opened, last = _open_sessions(store), store.deliveries.last()
    return tuple(_entry(name, one, opened, last) for name, one in sorted(projects.items()))


def project_detail(
    store: Store, settings: Settings, name: str, policy: Policy, caps: Caps
) -> ProjectDetail:
    """Return a project. Raises `KeyError` if it is not configured.

    `policy` is the policy in force. Some values may come from the repository's own file.
    """
    project = settings.projects[name]
    entry = _entry(name, project, _open_sessions(store), store.deliveries.last())
    known = store.repositories.named(project.repository)
    renamed = known is not None and known.current_name != project.repository
    freezes = {one.scope: one for one in store.freezes.all()}
    query = SessionQuery(project=name, statuses=_OPEN, sort="-since", limit=_SESSIONS)
    incidents = {one.key: one.text for one in store.incidents.current()}
    file = _file(store, project.repository)
    return ProjectDetail(
        entry=entry,
        table=_table(store, name),
        current_name=known.current_name if known and renamed else "",
        archived=known is not None and known.archived,
        frozen=freezes.get("") or freezes.get(f"project:{name}"),
        isolation=_isolation(settings, name, project.agent),
        assignee=project.assignee.removeprefix("@"),
        agent_labels=_agent_labels(project, requestable(settings.identities)),
        pull_labels=project.pull_labels,
        people=project.people,
        assigned=store.agents.open_in(name),
        sessions=tuple(list_sessions(store, query, caps)[0]),
        policy=tuple(policy_values(settings, name, policy)),
        has_file=bool(file),
        refused=_refused(file, settings.policy_of(name)),
        problem=page_text.block(incidents.get(f"configuration:{project.repository}", "")),
    )


def policy_values(settings: Settings, project: str, policy: Policy) -> Iterator[PolicyValue]:
    """Yield every value of the policy in force, with the last source that changed it."""
    configured, default = settings.policy_of(project), Policy()
    for field in msgspec.structs.fields(Policy):
        value, of_project = getattr(policy, field.name), getattr(configured, field.name)
        of_server = getattr(settings.policy, field.name)
        source: Source = "default"
        if value != of_project:
            source = "repository"
        elif of_project != of_server:
            source = "project"
        elif of_server != getattr(default, field.name):
            source = "server"
        yield PolicyValue(
            name=field.encode_name,
            value=msgspec.to_builtins(value),
            source=source,
            file=right_to(field.name),
        )


def _entry(
    name: str,
    project: ProjectSettings,
    opened: Mapping[str, int],
    last: Mapping[str, datetime],
) -> ProjectEntry:
    return ProjectEntry(
        name=name,
        repository=project.repository,
        agent=project.agent,
        label=project.label,
        open_sessions=opened.get(name, 0),
        last_delivery=last.get(project.repository),
    )


def _open_sessions(store: Store) -> dict[str, int]:
    """Return the number of sessions that have not ended, by project."""
    found: dict[str, int] = {}
    for (project, status), count in store.statistics.sessions().items():
        if status not in TERMINAL:
            found[project] = found.get(project, 0) + count
    return found


def _table(store: Store, name: str) -> str:
    return "installation.project" if name in store.installed.projects() else f"projects.{name}"


def _isolation(settings: Settings, project: str, agent_type: str) -> str:
    with suppress(NotIsolated):
        return isolation_of(settings, project, agent_type)
    return ""


def _agent_labels(project: ProjectSettings, agents: Collection[str]) -> tuple[str, ...]:
    return tuple(f"{project.label}:{agent}" for agent in sorted(agents) if " " not in agent)


def _file(store: Store, repository: str) -> str:
    """Return the text of a repository's last valid configuration file; empty if it has none."""
    files = {one.repository.casefold(): one.valid for one in store.configurations.all()}
    return files.get(repository.casefold(), "")


def _refused(file: str, server: Policy) -> tuple[str, ...]:
    try:
        _, problems = still_narrowed(file, server)
    except RepositoryError as error:
        problems = error.problems
    return tuple(f"line {one.line}: {page_text.line(one.says)}" for one in problems)
