"""A bot whose machine's clock jumps: `python -m scripts.faults.shifted_bot serve --config FILE`.

The file that the variable SHIFTED_CLOCK names has a line for each jump: its real time, and the
offset of the machine's clock from then on, both in seconds. The times of files and exits jump too,
as they do on a machine.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from unittest.mock import patch

from msgspec.structs import replace

from bot.system import clock
from runtimes.agents.shared.files import LineTail
from runtimes.base import Seen
from runtimes.tmux import Tmux

_FILE = Path(os.environ["SHIFTED_CLOCK"])


def shifted(real: datetime) -> datetime:
    """Return the time that the shifted clock shows at a real time."""
    seconds = 0.0
    for line in _FILE.read_text().splitlines() if _FILE.exists() else ():
        at, offset = map(float, line.split())
        if at <= real.timestamp():
            seconds = offset
    return real + timedelta(seconds=seconds)


class _Shifted(datetime):
    """Replaces `datetime` in the scheduler, which reads the machine's clock itself."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "_Shifted":
        return cls.fromtimestamp(shifted(datetime.now(UTC)).timestamp(), tz)


def main() -> None:
    """Run the command line of the bot under the shifted clock."""
    new, look = LineTail.new, Tmux.look

    def new_lines(lines: LineTail) -> list[str]:
        found = new(lines)
        if lines.modified is not None:
            written = datetime.fromtimestamp(lines.modified, UTC)
            lines.modified = shifted(written).timestamp()
        return found

    def looked(runtime: Tmux) -> Mapping[str, Seen]:
        return {name: moved(seen) for name, seen in look(runtime).items()}

    def moved(seen: Seen) -> Seen:
        end, printed = seen.exit, seen.output_at
        return replace(
            seen,
            exit=end and replace(end, at=shifted(end.at)),
            output_at=printed and shifted(printed),
        )

    clock.utc_now = lambda: shifted(datetime.now(UTC))
    from bot.cli import main as command_line  # Once the clock is shifted: it imports the clock.

    with (
        patch.object(LineTail, "new", new_lines),
        patch.object(Tmux, "look", looked),
        patch("apscheduler.schedulers.base.datetime", _Shifted),
        patch("apscheduler.triggers.interval.datetime", _Shifted),
    ):
        command_line()


if __name__ == "__main__":
    main()
