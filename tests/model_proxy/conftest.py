"""Fixtures of the test harness that these tests use."""

from tests.harness.fixtures import agent, at, begun, clock, provider, scenario, site

__all__ = ["agent", "at", "begun", "clock", "provider", "scenario", "site"]
