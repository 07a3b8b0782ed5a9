"""Fixtures of the test harness that these tests use."""

from tests.harness.fixtures import bench, clock, scenario

__all__ = ["bench", "clock", "scenario"]
