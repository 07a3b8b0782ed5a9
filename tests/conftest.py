"""Settings of every test run."""

import functools
import gc
import importlib
import ssl
from contextlib import suppress

import jwt.algorithms
import pytest
import typer.main


def pytest_configure() -> None:
    """Cache what every client would repeat: reading certificates and keys, building commands.

    Each takes as long as a test. Garbage collection is off while pytest collects.
    """
    gc.disable()
    for place, name in (
        (ssl, "create_default_context"),
        (jwt.algorithms, "load_pem_private_key"),
        (typer.main, "get_command"),
    ):
        pytest.MonkeyPatch().setattr(place, name, functools.cache(getattr(place, name)))


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


def pytest_collection_finish() -> None:
    """Exclude imported objects from garbage collection, which saves a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
