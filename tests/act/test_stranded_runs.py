"""Runs whose port of the model proxy was taken by another program are restarted."""

import os

import pytest

from bot.act.stranded_runs import INCIDENT, StrandedRuns
from lifecycle.model.status import Activity, Probe
from runtimes.base import RuntimeFailure
from tests.harness.site import Site


@pytest.fixture
def stranded(site: Site) -> StrandedRuns:
    store, clock = site.scenario.store, site.scenario.clock
    return StrandedRuns(
        *(store, site.locations, site.archive, lambda *_: False, lambda: True, clock)
    )


def writes_its_port(site: Site, *, after: bool) -> None:
    """Write the model proxy's port file, dated one second after or before the run's token file."""
    token = site.paths.run_token(site.id, 1)
    site.paths.model_port.write_text("1")
    os.utime(token, (1000.0, 1000.0))
    os.utime(site.paths.model_port, (1001.0 if after else 999.0,) * 2)


def incidents(site: Site) -> list[str]:
    return [one.key for one in site.scenario.store.incidents.current()]


def test_a_run_with_a_lost_address_is_ended_and_restarted(
    site: Site, stranded: StrandedRuns
) -> None:
    site.starts()
    token = site.program.run_limits.endpoint.key
    writes_its_port(site, after=True)
    stranded.report("the port 4711 is taken")
    assert incidents(site) == [INCIDENT]
    stranded.end_all()
    assert incidents(site) == []
    assert site.runtime.look() == {}
    assert not site.paths.run_token(site.id, 1).exists()
    agent = site.session.agent
    # A run that counts as lost is restarted, and is none of the agent's failures.
    assert agent.exit is not None
    assert agent.exit.lost == "another program took the port of the model proxy"
    assert (agent.activity, agent.program) == (Activity.EXITED, Probe.DEAD)
    site.starts(2)
    assert site.program.run_limits.endpoint.key != token


def test_a_run_that_got_the_new_address_continues(site: Site, stranded: StrandedRuns) -> None:
    site.starts()
    writes_its_port(site, after=False)
    stranded.report("the port 4711 is taken")
    stranded.end_all()
    assert incidents(site) == []
    assert site.runtime.look()


def test_an_isolated_run_continues(site: Site, stranded: StrandedRuns) -> None:
    site.starts()
    writes_its_port(site, after=True)
    stranded.is_isolated = lambda project, kind: (project, kind) == ("widgets", "shell")
    stranded.report("the port 4711 is taken")
    stranded.end_all()
    assert incidents(site) == []
    assert site.runtime.look()


def test_nothing_is_ended_while_the_port_is_kept(site: Site, stranded: StrandedRuns) -> None:
    site.starts()
    writes_its_port(site, after=True)
    stranded.end_all()
    assert site.runtime.look()


def test_a_run_that_cannot_be_ended_is_tried_again(
    site: Site, stranded: StrandedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeFailure("tmux hangs")

    site.starts()
    writes_its_port(site, after=True)
    stranded.report("the port 4711 is taken")
    with monkeypatch.context() as patch:
        patch.setattr(site.runtime, "stop", fails)
        stranded.end_all()
    assert incidents(site) == [INCIDENT]
    stranded.end_all()
    assert incidents(site) == []


def test_a_bot_without_the_lease_ends_nothing(site: Site, stranded: StrandedRuns) -> None:
    site.starts()
    writes_its_port(site, after=True)
    stranded.report("the port 4711 is taken")
    stranded.may_act = lambda: False
    stranded.end_all()
    assert incidents(site) == [INCIDENT]
    assert site.runtime.look()
