"""Where programs live, what they work in, and how each agent is spoken to."""

from collections.abc import Callable, Mapping

from runtimes.base import Options, Runtime
from runtimes.memory import Memory
from runtimes.tmux import Tmux

#: Every runtime by the name the configuration uses.
RUNTIMES: Mapping[str, Callable[[Options], Runtime]] = {
    "memory": Memory,
    "tmux": Tmux,
}
