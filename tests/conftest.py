"""What holds for every run of the tests."""

import functools
import gc
import ssl

import jwt.algorithms
import pytest
import typer.main


def pytest_configure() -> None:
    """Do once what every client would do: read certificates and keys, and put commands together.

    Each costs as much as many a test. And collect no garbage while tests are: there is little.
    """
    gc.disable()
    for place, name in (
        (ssl, "create_default_context"),
        (jwt.algorithms, "load_pem_private_key"),
        (typer.main, "get_command"),
    ):
        pytest.MonkeyPatch().setattr(place, name, functools.cache(getattr(place, name)))


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of every search for garbage: a tenth of a run's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
