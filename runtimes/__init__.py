"""Hosts, workspaces, and the adapters that start and observe each type of agent."""

from collections.abc import Callable, Mapping

from runtimes.base import Options, Runtime
from runtimes.tmux import Tmux

#: Every runtime by its name in the configuration.
RUNTIMES: Mapping[str, Callable[[Options], Runtime]] = {"tmux": Tmux}
