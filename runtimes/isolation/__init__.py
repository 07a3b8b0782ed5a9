"""Isolation: what keeps a run's program to the files and the network that it needs."""

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
