"""The caps of the configuration, in the words of the core."""

from config.settings import Settings
from lifecycle.judge.capacity import Caps


def caps(settings: Settings) -> Caps:
    """How many sessions may run a program at the same time."""
    limits = settings.limits
    return Caps(
        sessions=limits.sessions,
        per_person=limits.per_person,
        reserved=limits.reserved_for_people,
        projects={name: one.max_parallel for name, one in settings.projects.items()},
        agent_types={name: one.max_parallel for name, one in settings.agent_types.items()},
        agents={name: one.max_parallel for name, one in settings.identities.items()},
        priority_seconds=limits.priority_seconds,
        session_mb=limits.memory_per_session_mb,
        reserve_mb=limits.memory_reserve_mb,
    )
