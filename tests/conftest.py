"""What holds for every run of the tests."""

import functools
import gc
import ssl

import pytest


def pytest_configure() -> None:
    """Read the authorities' certificates once: every client would do so, for a tenth of a run."""
    once = functools.cache(ssl.create_default_context)
    pytest.MonkeyPatch().setattr(ssl, "create_default_context", once)


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of every search for garbage: a tenth of a run's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
