"""Isolation: sandboxes with only the files and the network that a run's program needs."""

from collections.abc import Mapping

from runtimes.isolation.base import Isolation
from runtimes.isolation.bubblewrap import Bubblewrap
from runtimes.isolation.containers import Containers
from runtimes.isolation.unisolated import Unisolated

_BUBBLEWRAP = Bubblewrap()
#: Every kind of isolation by its name in the configuration, the strongest first.
ISOLATIONS: Mapping[str, Isolation] = {
    "bubblewrap": _BUBBLEWRAP,
    "docker": Containers("docker", _BUBBLEWRAP),
    "podman": Containers("podman", _BUBBLEWRAP),
    "none": Unisolated(),
}


def strongest() -> str:
    """Return the name of the strongest isolation that works on this machine; `none` always does.

    Only demonstrations and tests use this function. An installation starts agents without a sandbox
    only if a person has chosen that (`bot.system.isolation`).
    """
    return next(name for name, isolation in ISOLATIONS.items() if not isolation.unavailable())
