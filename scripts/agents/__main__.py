"""`scripts/test-agents`: the real programs of coding agents, against a model that is a script.

Each is installed at the version that `scripts/agents.toml` names, and does in a terminal of ours
what agents do, in a network where there is nothing but the scripted model. Exits with 0 where all
went well, 1 where something did not, and 3 where it could not be tried, which is no pass.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct, to_builtins

from bot.demo.model import ModelServer
from scripts.agents.install import CannotRun, Release, install, releases
from scripts.agents.network import ask_for_root, isolate
from scripts.agents.stage import Stage
from scripts.agents.trial import STEPS, Trial

_NOT_TRIED = 3


class Result(Struct, kw_only=True):
    """How one agent did: seconds of every step that went well, and what did not."""

    agent: str
    version: str
    steps: dict[str, float] = {}
    failed: str = ""  #: A step.
    why: str = ""


def main() -> int:
    """Try them one after the other and print how they did."""
    listed = releases()
    parser = argparse.ArgumentParser(
        prog="scripts/test-agents",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", choices=sorted(listed), help="try one")
    parser.add_argument("--step", choices=STEPS, help="stop after this step")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    options = parser.parse_args()
    names = [name for name in listed if options.only in (None, name)]
    steps = list(STEPS)
    if options.step:
        steps = steps[: steps.index(options.step) + 1]
    try:
        ask_for_root()
        programs = {name: install(name, listed[name]) for name in names}
        isolate()
    except CannotRun as reason:
        print(f"not tried: {reason}", file=sys.stderr)
        return _NOT_TRIED
    results = [tried(name, listed[name], programs[name], steps) for name in names]
    print(table(results, steps))
    if options.json:
        options.json.write_text(json.dumps(to_builtins(results), indent=2) + "\n")
    return 1 if any(result.failed for result in results) else 0


def tried(name: str, release: Release, program: Path, steps: Iterable[str]) -> Result:
    """Have one agent do these steps, until one goes wrong."""
    result = Result(agent=name, version=release.version)
    folder = Path(tempfile.mkdtemp(prefix="mergewright-"))
    with ModelServer() as model, closing(Stage(folder, model)) as stage:
        trial = Trial(name, release, program, stage)
        for step in steps:
            begun = time.monotonic()
            try:
                STEPS[step](trial)
            except Exception as failure:  # noqa: BLE001 - whatever it is, the others are tried too.
                result.failed, result.why = step, str(failure) or traceback.format_exc()
                print(f"{name}: {step} failed: {result.why}", file=sys.stderr)
                break
            result.steps[step] = round(time.monotonic() - begun, 1)
            print(f"{name}: {step} in {result.steps[step]} s", file=sys.stderr)
    if result.failed:
        print(f"{name}: its files are kept for a look: {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return result


def table(results: Iterable[Result], steps: Sequence[str]) -> str:
    """The seconds of every step, agent by agent."""
    rows = [["agent", "version", *steps]]
    for result in results:
        seconds = {step: str(took) for step, took in result.steps.items()}
        marks = {**seconds, result.failed: "FAILED"}
        rows.append([result.agent, result.version, *(marks.get(step, "-") for step in steps)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    raise SystemExit(main())
