"""Fixtures of the test harness that these tests use."""

from tests.harness.fixtures import begun, clock, scenario, site

__all__ = ["begun", "clock", "scenario", "site"]
