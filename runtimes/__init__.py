"""Hosts: where agents' programs run, what they work in, and how each agent type is driven."""

from collections.abc import Callable, Mapping

from runtimes.base import Options, Runtime
from runtimes.tmux import Tmux

#: Every runtime by its name in the configuration.
RUNTIMES: Mapping[str, Callable[[Options], Runtime]] = {"tmux": Tmux}
