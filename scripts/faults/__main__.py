"""`scripts/test-faults`: injects faults at random moments while a bot runs many sessions."""

import argparse
import random
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import httpx
import msgspec
from msgspec import Struct

from lifecycle.model.text import counted
from runtimes.isolation import ISOLATIONS
from scripts.engines import INCOMPLETE, VARIABLES, CannotRun, installed_engine
from scripts.faults.defences import DEFENCES, Defence, copy_without
from scripts.faults.faults import FAULTS, Fault
from scripts.faults.lives import Lives
from tests.runtimes.engines import Daemon


class Result(Struct, kw_only=True):
    """The result of one run of a fault."""

    fault: str
    seed: int
    seconds: float
    violations: list[str]  #: A sentence each; empty: the run passed.


def play(
    fault: Fault, seed: int, sessions: int, isolation: str, engine: Daemon | None = None
) -> Result:
    """Run many sessions with a fault, and check the effects from outside of the bot.

    `isolation` is that of the agents; empty: the strongest that works here. `engine` makes their
    containers; None: they have none.
    """
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="mergewright-faults-"))
    over = threading.Event()

    def log(line: str) -> None:
        print(f"{time.monotonic() - begun:6.1f} s  {line}", flush=True)

    def inject(lives: Lives) -> None:
        try:
            fault.inject(lives, random.Random(seed), over)
        except (AssertionError, RuntimeError, OSError, httpx.HTTPError) as failure:
            lives.violations_seen.append(f"the fault ended early: {failure}")

    violations: list[str] = []
    with Lives(
        *(folder, sessions, log),
        disk_mb=fault.disk_mb,
        descriptors=fault.descriptors,
        app=fault.app,
        isolation=isolation,
        engine=engine,
    ) as lives:
        lives.module = fault.module
        for _ in range(fault.bots):
            lives.start_bot()
        lives.wait_for_leader()
        lives.label_issues()
        thread = threading.Thread(target=inject, args=(lives,), daemon=True)
        thread.start()
        if not lives.wait_until_over(fault.seconds, fault.most_seconds):
            violations.append("the sessions do not end")
        over.set()
        thread.join()
        violations += lives.settled_violations(runs_may_repeat=fault.runs_may_repeat)
    violations += lives.left_over()
    if violations:
        print(f"kept for a look: {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    seconds = round(time.monotonic() - begun, 1)
    return Result(fault=fault.name, seed=seed, seconds=seconds, violations=violations)


def play_without(defence: Defence, options: argparse.Namespace) -> list[Result]:
    """Run a fault in a copy of this repository from which its defence was removed.

    It is run until its checks find a violation, at most `options.runs` times.
    """
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="mergewright-without-") as name:
        tree, found = Path(name), Path(name) / "results.json"
        copy_without(defence, tree)
        command = [sys.executable, "-m", "scripts.faults", "--only", defence.fault]
        command += ["--sessions", str(options.sessions), "--json", str(found)]
        command += ["--isolation", "none"]  # A sandbox would itself end leftovers.
        if options.seed is not None:
            command += ["--seed", str(options.seed)]
        for _ in range(options.runs):
            found.unlink(missing_ok=True)
            subprocess.run(command, cwd=tree, check=False)
            if found.exists():
                results += msgspec.json.decode(found.read_bytes(), type=list[Result])
            if any(result.violations for result in results):
                break
    return results


def main() -> int:
    """Run the faults, each with a seed that is printed.

    Returns 1 if a run had a violation, and 3 if one cannot run here.
    """
    names = [fault.name for fault in FAULTS]
    parser = argparse.ArgumentParser(prog="scripts/test-faults", description=__doc__)
    parser.add_argument("--only", choices=names, action="append", help="play this fault alone")
    parser.add_argument("--runs", type=int, default=1, help="runs of each fault (default 1)")
    parser.add_argument("--seed", type=int, help="repeat the run with this seed")
    parser.add_argument("--sessions", type=int, default=20, help="sessions a run (default 20)")
    parser.add_argument(
        "--isolation", choices=ISOLATIONS, help="of the agents (default: the strongest that works)"
    )
    parser.add_argument(
        "--without-defences",
        action="store_true",
        help="play each fault in a copy without its defence; one that sees no violation fails",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE")
    options = parser.parse_args()
    chosen = options.only or names
    if options.without_defences:
        return _all_needed([one for one in DEFENCES if one.fault in chosen], options)
    results: list[Result] = []
    not_run: list[str] = []
    with ExitStack() as stack:
        daemons: dict[str, Daemon] = {}
        for fault in [one for one in FAULTS if one.name in chosen]:
            isolation = fault.isolation or options.isolation or ""
            try:
                if isolation in VARIABLES and isolation not in daemons:
                    daemons[isolation] = stack.enter_context(installed_engine(isolation))
            except CannotRun as why:
                not_run.append(f"{fault.name} cannot run here, without {isolation}: {why}")
                continue
            for _ in range(options.runs):
                results.append(_played(fault, isolation, daemons.get(isolation), options))
    _write(results, options.json)
    for sentence in not_run:
        print(sentence, file=sys.stderr)
    if any(result.violations for result in results):
        return 1
    return INCOMPLETE if not_run else 0


def _played(
    fault: Fault, isolation: str, engine: Daemon | None, options: argparse.Namespace
) -> Result:
    """Run a fault once, and print the result."""
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    print(f"-- {fault.name}: {fault.about}; --seed {seed}", flush=True)
    result = play(fault, seed, options.sessions, isolation, engine)
    for violation in result.violations:
        print(f"VIOLATION: {violation}")
    print(f"{counted(len(result.violations), 'violation')} in {result.seconds:g} s", flush=True)
    return result


def _all_needed(defences: Iterable[Defence], options: argparse.Namespace) -> int:
    """Check that each defence is needed: without it, its fault must violate an invariant.

    Returns 0 if all defences are needed, otherwise 1.
    """
    results: list[Result] = []
    passed = 0
    for defence in defences:
        print(f"-- not defended: {defence.about}", flush=True)
        played = play_without(defence, options)
        results += played
        if not any(result.violations for result in played):
            passed += 1
            print(f"NO VIOLATION: {defence.fault} does not prove that {defence.about}", flush=True)
    _write(results, options.json)
    return int(passed > 0)


def _write(results: list[Result], file: Path | None) -> None:
    if file is not None:
        file.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))


if __name__ == "__main__":
    raise SystemExit(main())
