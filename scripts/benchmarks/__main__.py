"""`scripts/bench`: runs the benchmarks, and checks the figures that have limits.

Some limits are fixed; others are relative to a comparison that is measured in the same run.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import to_builtins

from scripts.benchmarks import (
    board,
    burst,
    containers,
    crowd,
    decide,
    flood,
    ingest,
    life,
    quiet,
    reading,
    sessions,
    start,
    streams,
    sweep,
)
from scripts.benchmarks.figure import Figure

#: Every benchmark by its name; one line each.
BENCHMARKS: Mapping[str, Callable[[], dict[str, Figure]]] = {
    "ingest": ingest.run,
    "sweep": sweep.run,
    "start": start.run,
    "containers": containers.run,
    "decide": decide.run,
    "reading": reading.run,
    "sessions": sessions.run,
    "quiet": quiet.run,
    "life": life.run,
    "burst": burst.run,
    "flood": flood.run,
    "streams": streams.run,
    "crowd": crowd.run,
    "board": board.run,
}


def main() -> int:
    """Run benchmarks and print a table; return 1 if a figure exceeds its limit, otherwise 0."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--only", choices=sorted(BENCHMARKS), help="run one")
    options = parser.parse_args()
    figures: dict[str, Figure] = {}
    for name, run in BENCHMARKS.items():
        if options.only in (None, name):
            sys.stderr.write(f"measuring {name} ...\n")
            figures |= run()
    width = max(map(len, figures), default=0)
    for name, figure in figures.items():
        held = "" if not figure.limit else "holds" if figure.holds else "DOES NOT HOLD"
        print(f"{name:{width}}  {figure.value:10.2f} {figure.unit:8} {figure.limit:40} {held}")
    if options.json:
        options.json.write_text(json.dumps(to_builtins(figures), indent=2) + "\n")
    return 0 if all(figure.holds for figure in figures.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
