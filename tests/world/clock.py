"""The clock of a story test: real time plus the time that the test skips."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

from msgspec.structs import replace

from runtimes.agents.shared.files import LineTail
from runtimes.base import Seen
from runtimes.tmux import Tmux


class Clock:
    """Real time plus skipped time."""

    def __init__(self) -> None:
        self._leaps: list[tuple[datetime, timedelta]] = []

    def __call__(self) -> datetime:
        return self.at(datetime.now(UTC))

    def leaps(self, much: timedelta) -> None:
        self._leaps.append((datetime.now(UTC), much))

    def at(self, real: datetime) -> datetime:
        """Return the time shown at a real time; skipping changes no earlier time."""
        return real + sum((much for at, much in self._leaps if at <= real), timedelta())


@contextmanager
def observed_by(clock: Clock) -> Iterator[None]:
    """Convert the times of agents' output and exits to a clock that skips time.

    Otherwise an agent that has just started would seem silent for as long as the clock is ahead.
    """
    new, look = LineTail.new, Tmux.look

    def new_lines(lines: LineTail) -> list[str]:
        said = new(lines)
        if lines.modified is not None:
            written = datetime.fromtimestamp(lines.modified, UTC)
            lines.modified = clock.at(written).timestamp()
        return said

    def looked(runtime: Tmux) -> Mapping[str, Seen]:
        return {name: moved(seen) for name, seen in look(runtime).items()}

    def moved(seen: Seen) -> Seen:
        end, printed = seen.exit, seen.output_at
        return replace(
            seen,
            exit=end and replace(end, at=clock.at(end.at)),
            output_at=printed and clock.at(printed),
        )

    with patch.object(LineTail, "new", new_lines), patch.object(Tmux, "look", looked):
        yield
