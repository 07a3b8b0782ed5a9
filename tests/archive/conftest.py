"""Fixtures of the test harness that these tests use."""

import pytest

from tests.harness.fixtures import begun, clock, scenario, site
from tests.harness.keeper import Keeper
from tests.harness.site import Site

__all__ = ["begun", "clock", "scenario", "site"]


@pytest.fixture
def keeper(site: Site) -> Keeper:
    return Keeper(site)
