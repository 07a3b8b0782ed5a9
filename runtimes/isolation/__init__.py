"""Isolation: what keeps a run's program to the files and the network that it needs."""

from collections.abc import Mapping

from runtimes.isolation.base import Isolation
from runtimes.isolation.bubblewrap import Bubblewrap
from runtimes.isolation.unisolated import Unisolated

#: Every kind of isolation by its name in the configuration, the strongest first.
ISOLATIONS: Mapping[str, Isolation] = {"bubblewrap": Bubblewrap(), "none": Unisolated()}
