"""Chooses the isolation of a session's programs, and reserves ports for them."""

from collections.abc import Callable, Mapping

from bot.act.results import Rejected, RetryLater
from bot.store import Session
from bot.system.isolation import NotIsolated, container_of, isolation_of, limits_of, readable
from bot.system.locations import Locations
from config.settings import Settings
from lifecycle.model.status import Reason
from runtimes.isolation.base import NOT_ISOLATED, IsolationSpec
from runtimes.local_ports import port_variables


def isolation_spec(
    settings: Settings,
    locations: Locations,
    session: Session,
    variables: Callable[[], Mapping[str, str]],
) -> IsolationSpec:
    """Return the isolation of a session's programs.

    `variables` returns the environment variables by which isolated programs use the proxy. Raises
    `NotIsolated` if the configured isolation does not work, or if no isolation is configured and no
    sandbox works.
    """
    kind = isolation_of(settings, session.project, session.agent_type)
    if kind == NOT_ISOLATED.kind:
        return NOT_ISOLATED
    proxy = locations.paths.proxy_socket.parent
    proxy.mkdir(mode=0o700, exist_ok=True)
    return IsolationSpec(
        kind=kind,
        readable=(locations.workspace_of(session).origin, *readable(settings)),
        proxy=proxy,
        limits=limits_of(settings),
        container=container_of(settings),
        env=variables(),
    )


def not_isolated(missing: NotIsolated) -> RetryLater | Rejected:
    """Return the result of an action whose programs cannot be isolated.

    It is a retry if the container engine does not answer now, otherwise a rejection.
    """
    if missing.waits_for:
        return RetryLater(str(missing))
    return Rejected(str(missing), Reason.SPAWN_FAILED)


def session_ports(locations: Locations, session: Session) -> Mapping[str, str]:
    """Reserve the session's ports until its workspace is removed; return variables that name them.

    Empty if the project has no ports. Idempotent. Raises `RuntimeFailure` if the project's range
    has too few free ports.
    """
    project = locations.projects[session.project]
    if not project.ports:
        return {}
    first, last = project.port_bounds
    return port_variables(locations.host.ports.allot(session.id, project.ports, first, last))
