"""Fixtures of the test harness that these tests use."""

from tests.harness.fixtures import clock, scenario

__all__ = ["clock", "scenario"]
