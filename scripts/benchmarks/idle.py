"""Measures an idle bot with existing sessions in a process of its own.

    python -m scripts.benchmarks.idle FOLDER SIZE

Prints, as JSON, the seconds until all sessions are reconciled after the restart, the seconds of
processor time of a sweep and of a call of `scripts.benchmarks.decide.reference`, to which it is
compared, and the maximum memory of the process in MB.
"""

import json
import sys
import time
from pathlib import Path
from statistics import median

from scripts.benchmarks.decide import reference
from scripts.benchmarks.population import Population

SWEEPS = 7
REFERENCES = 200  #: Calls of the reference after each sweep.


def main() -> None:
    """Start a bot with existing idle sessions, observe their agents, and print what this costs."""
    folder, size = Path(sys.argv[1]), int(sys.argv[2])
    begun = time.perf_counter()
    population = Population(folder, restored=size)
    visited = population.reconciler.reconcile_live()
    restarted = time.perf_counter() - begun
    assert visited == size, f"{visited} of {size} were visited"
    sweeps, references = [], []
    for _ in range(SWEEPS):
        population.later(5)
        begun = time.process_time()
        assert population.watch.sweep() == 0, "a sweep over idle sessions saw something new"
        sweeps.append(time.process_time() - begun)
        begun = time.process_time()
        for _ in range(REFERENCES):
            reference()
        references.append((time.process_time() - begun) / REFERENCES)
    memory = _most_memory()
    population.store.close()
    sweep, once = median(sweeps[1:]), median(references[1:])
    print(json.dumps({"restart": restarted, "sweep": sweep, "reference": once, "memory": memory}))


def _most_memory() -> float:
    """Return the peak resident memory in MB; `getrusage` would include the parent process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


if __name__ == "__main__":
    main()
