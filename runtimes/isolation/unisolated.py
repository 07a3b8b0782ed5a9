"""No isolation: programs run with all rights of the bot's user."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from runtimes.base import Launch
from runtimes.isolation.base import OF_THIS_MACHINE, Container, Limits, Sandbox


class Unisolated:
    """Runs programs without a sandbox, where a person has chosen that or in a demonstration."""

    def unavailable(self, container: Container = OF_THIS_MACHINE) -> str:
        """Return an empty string: programs without isolation run on every machine."""
        return ""

    def answers(self) -> bool:
        """Return True, because there is no container engine that could fail to answer."""
        return True

    def unlimited(self, limits: Limits) -> str:
        """Return the names of all limits other than 0: none can be set without a sandbox."""
        wanted = {"memory": limits.memory_mb, "pids": limits.processes, "cpu": limits.cpus}
        return ", ".join(name for name, value in wanted.items() if value)

    def wrap(self, launch: Launch, sandbox: Sandbox) -> Launch:
        """Return the launch unchanged."""
        return launch

    @contextmanager
    def command(
        self, argv: Sequence[str], cwd: Path, sandbox: Sandbox
    ) -> Iterator[tuple[Sequence[str], Sequence[int]]]:
        """Yield the command line unchanged, and no descriptors."""
        yield argv, ()

    def remove_orphans(self, sessions: Path) -> bool:
        """Find nothing and return False: a run makes only processes and files, no containers."""
        return False
