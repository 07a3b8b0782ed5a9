"""Fixtures of the test harness that these tests use."""

from tests.harness.fixtures import asked, bench, checkout, clock, edge, scenario, watch

__all__ = ["asked", "bench", "checkout", "clock", "edge", "scenario", "watch"]
