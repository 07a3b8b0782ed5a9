"""`scripts/test-agents`: tests the real agent programs with a scripted model.

Installs each program at its version in `scripts/agents.toml` and runs it in a terminal, within a
network namespace that contains only the scripted model. The last two steps play the demo: in the
strongest isolation that works here, and in containers of Docker, with an engine of its own. Exit
codes: 0 all steps passed, 1 a step failed, 3 the tests, or those in Docker, cannot run here.
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from msgspec import Struct, to_builtins

from bot.demo.model import ModelServer
from runtimes.isolation import ISOLATIONS
from scripts import engines
from scripts.agents.install import CannotRun, Release, install, releases
from scripts.agents.network import ask_for_root, isolate
from scripts.agents.stage import Stage
from scripts.agents.trial import STEPS, Trial

_FOLDER = "/var/tmp"
_ISOLATED = "demo"  #: The step that isolates the agent, as sessions do.
_IN_DOCKER = "docker"  #: The same step in Docker, which has the engine's name.


class Result(Struct, kw_only=True):
    """The steps that an agent passed, and the step that failed."""

    agent: str
    version: str
    steps: dict[str, float] = {}  #: Seconds by step, of those that passed.
    failed: str = ""  #: The name of the failed step; empty: all passed.
    why: str = ""


def main() -> int:
    """Test the agents one after the other and print a table; return the exit code."""
    listed = releases()
    parser = argparse.ArgumentParser(
        prog="scripts/test-agents",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", choices=sorted(listed), help="try one agent")
    parser.add_argument("--step", choices=STEPS, help="stop after this step")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE")
    parser.add_argument(
        "--isolation",
        choices=ISOLATIONS,
        help="run only the step `demo`, with this isolation (Docker, Podman: in a private engine)",
    )
    options = parser.parse_args()
    names = [name for name in listed if options.only in (None, name)]
    steps = list(STEPS)
    if options.isolation:
        steps = [_ISOLATED]
    elif options.step:
        steps = steps[: steps.index(options.step) + 1]
    kind = options.isolation or ""
    lacking = ""
    with ExitStack() as stack:
        try:
            ask_for_root()
            if kind in engines.VARIABLES:
                stack.enter_context(engines.installed_engine(kind))
            elif _IN_DOCKER in steps:
                try:
                    stack.enter_context(engines.installed_engine(_IN_DOCKER))
                except engines.CannotRun as reason:
                    lacking = f"not tried: the step {_IN_DOCKER}: {reason}"
                    steps.remove(_IN_DOCKER)
            programs = {name: install(name, listed[name]) for name in names}
            isolate()
        except (CannotRun, engines.CannotRun) as reason:
            print(f"not tried: {reason}", file=sys.stderr)
            return engines.INCOMPLETE
        results = [try_agent(name, listed[name], programs[name], steps, kind) for name in names]
    print(table(results, steps))
    if options.json:
        options.json.write_text(json.dumps(to_builtins(results), indent=2) + "\n")
    if lacking:
        print(lacking, file=sys.stderr)
    if any(result.failed for result in results):
        return 1
    return engines.INCOMPLETE if lacking else 0


def try_agent(
    name: str, release: Release, program: Path, steps: Iterable[str], isolation: str = ""
) -> Result:
    """Run these steps with one agent, until one fails; `isolation` is for the step `demo`."""
    result = Result(agent=name, version=release.version)
    # Not in /tmp: with a home there, Codex makes no aliases of itself, and bubblewrap before 0.9
    # then does not find the program to run in its sandbox.
    folder = Path(tempfile.mkdtemp(prefix="mergewright-", dir=_FOLDER))
    with ModelServer() as model, closing(Stage(folder, model)) as stage:
        trial = Trial(name, release, program, stage, isolation)
        for step in steps:
            begun = time.monotonic()
            try:
                STEPS[step](trial)
            except Exception as failure:  # noqa: BLE001 - the other agents are tried nevertheless.
                result.failed, result.why = step, str(failure) or traceback.format_exc()
                print(f"{name}: {step} failed: {result.why}", file=sys.stderr)
                break
            result.steps[step] = round(time.monotonic() - begun, 1)
            print(f"{name}: {step} in {result.steps[step]} s", file=sys.stderr)
    if result.failed:
        print(f"{name}: its files are kept in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return result


def table(results: Iterable[Result], steps: Sequence[str]) -> str:
    """Format the seconds of every step, one line an agent."""
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
