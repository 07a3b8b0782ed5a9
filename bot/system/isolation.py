"""Chooses the isolation of runs, which is never weaker than the configured one."""

from collections.abc import Iterator
from pathlib import Path

from config.settings import Settings
from runtimes.isolation import ISOLATIONS
from runtimes.isolation.base import Container, Limits

_NONE = "none"


class NotIsolated(Exception):
    """An agent type may not be started in a project; the message says why and what to do.

    `waits_for` names the chosen isolation if its engine does not answer now; otherwise it is empty.
    """

    def __init__(self, message: str, *, waits_for: str = "") -> None:
        super().__init__(message)
        self.waits_for = waits_for


def isolation_of(settings: Settings, project: str, agent_type: str) -> str:
    """Return the isolation of runs of an agent type in a project: a name in `ISOLATIONS`.

    If the project and the agent type name different isolations, the stronger one is returned. If
    neither names one, the installation's isolation is returned, or else the strongest that works on
    this machine. Raises `NotIsolated` if the named isolation does not work, or if none is named and
    no sandbox works.
    """
    known = settings.projects.get(project), settings.agent_types.get(agent_type)
    named = {one.isolation for one in known if one is not None} - {""}
    chosen = next((name for name in ISOLATIONS if name in named), settings.runtime.isolation)
    if chosen:
        if why := ISOLATIONS[chosen].unavailable(container_of(settings)):
            raise NotIsolated(
                f"{agent_type} needs isolation = {chosen!r}: {why}",
                waits_for="" if ISOLATIONS[chosen].answers() else chosen,
            )
        return chosen
    reasons = []
    for name, isolation in ISOLATIONS.items():
        if name != _NONE:
            if not (why := isolation.unavailable(container_of(settings))):
                return name
            reasons.append(why)
    raise NotIsolated(
        f"agents cannot be isolated here: {'; '.join(reasons)}. To start them with all rights of"
        ' this user, write isolation = "none" under [runtime]'
    )


def is_isolated(settings: Settings, project: str, agent_type: str) -> bool:
    """Whether runs of an agent type in a project are isolated. True if no run can be started."""
    try:
        return isolation_of(settings, project, agent_type) != _NONE
    except NotIsolated:
        return True


def limits_of(settings: Settings) -> Limits:
    """Return the configured limits of isolated runs."""
    own = settings.sandbox
    return Limits(memory_mb=own.memory_mb, processes=own.processes, cpus=own.cpus)


def container_of(settings: Settings) -> Container:
    """Return the configured image and OCI runtime of containers."""
    own = settings.sandbox
    return Container(image=own.image, oci_runtime=own.oci_runtime)


def readable(settings: Settings) -> tuple[Path, ...]:
    """Return the configured files and folders that isolated agents may read besides their own."""
    return tuple(Path(path) for path in settings.sandbox.readable)


def unisolated(settings: Settings) -> str:
    """Return which agents run with all rights of the bot's user, as a sentence; empty if none."""
    found = sorted({kind for kind, name in _chosen(settings) if name == _NONE})
    if not found:
        return ""
    whose = "Agents" if found == sorted(settings.agent_types) else f"Agents of {', '.join(found)}"
    return (
        f'{whose} run with all rights of the bot\'s user, because of isolation = "none": they can'
        " read its secrets and every session."
    )


def problems(settings: Settings) -> list[str]:
    """Return why agents cannot be isolated as configured; each reason is listed once.

    Agents that cannot be isolated as configured are not started.
    """
    found: dict[str, None] = {}
    for project in settings.projects or ("",):
        for kind in settings.agent_types:
            try:
                isolation_of(settings, project, kind)
            except NotIsolated as problem:
                found[str(problem)] = None
    return list(found)


def _chosen(settings: Settings) -> Iterator[tuple[str, str]]:
    for project in settings.projects or ("",):
        for kind in settings.agent_types:
            try:
                yield kind, isolation_of(settings, project, kind)
            except NotIsolated:
                continue
