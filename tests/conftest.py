"""Settings of every test run."""

import functools
import gc
import importlib
import signal
from contextlib import suppress

import pytest
import typer.main

from tests.world.repeated_work import cache_certificates_and_keys

LONGEST = ("tests/lifecycle/test_laws.py", "tests/stories/")


def pytest_configure() -> None:
    """Cache what many tests would repeat. Garbage collection is off while pytest collects."""
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts background jobs so, and the programs that tests interrupt would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cache_certificates_and_keys()
    typer.main.get_command = functools.cache(typer.main.get_command)


def pytest_collection(session: pytest.Session) -> None:
    """Import the test files in each worker in an order of its own.

    pytest keeps every file with its rewritten assertions. In a fresh clone, workers that import in
    one order would all rewrite every file at the same time.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    root = session.config.rootpath
    files = sorted(
        {file for path in session.config.args for file in (root / path).rglob("test_*.py")}
    )
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[first:] + files[:first]:
        with suppress(Exception):  # The collection imports it again and reports the error.
            importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first, or one worker would be at them when the others have finished.

    Stories mostly wait, while the laws compute: side by side they keep every core busy.
    """
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_collection_finish() -> None:
    """Exclude imported objects from garbage collection, which saves a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
