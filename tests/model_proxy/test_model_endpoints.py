"""Model keys and run tokens: whose key is used, and when a token is valid."""

import re

import pytest
from msgspec.structs import replace

from bot.act.results import Rejected
from bot.model_proxy.endpoints import ModelUnavailable, key_source
from bot.store import Observation, SessionDecision
from config.settings import AgentSettings, AgentTypeSettings, ProjectSettings, Settings
from lifecycle.model.status import Activity, Reason
from runtimes.agents.base import Endpoint
from tests.harness.site import Site

SETTINGS = Settings(
    agent_types={
        "claude": AgentTypeSettings(program="claude", key="SERVER_KEY"),
        "codex": AgentTypeSettings(program="codex"),
    },
    agents={
        "ada": AgentSettings(types=("claude", "codex"), model_keys={"claude": "ADA_KEY"}),
        "bob": AgentSettings(types=("claude",)),
    },
    projects={
        "widgets": ProjectSettings(repository="acme/widgets", model_keys={"claude": "WIDGETS_KEY"}),
        "gadgets": ProjectSettings(repository="acme/gadgets"),
    },
)


@pytest.mark.parametrize(
    ("kind", "agent", "project", "source"),
    [
        ("claude", "ada", "widgets", ("ADA_KEY", "agent")),
        ("claude", "bob", "widgets", ("WIDGETS_KEY", "project")),
        ("claude", "bob", "gadgets", ("SERVER_KEY", "server")),
        ("claude", "gone", "gadgets", ("SERVER_KEY", "server")),
        ("codex", "ada", "widgets", ("", "")),
    ],
)
def test_the_key_is_the_agents_the_projects_or_the_servers(
    kind: str, agent: str, project: str, source: tuple[str, str]
) -> None:
    assert key_source(SETTINGS, kind, agent, project) == source


def test_a_run_gets_a_token_and_never_the_key(site: Site) -> None:
    site.starts()
    granted = site.program.run_limits.endpoint
    assert granted.url == "http://proxy"
    assert "the key" not in granted.key
    assert site.models.of_token(granted.key) == Endpoint(url="http://models", key="the key")
    assert site.models.endpoint(site.session, 1) == granted
    assert site.paths.run_token(site.id, 1).stat().st_mode & 0o777 == 0o600


def test_a_run_token_is_deleted_when_its_run_ends(site: Site) -> None:
    site.starts()
    first = site.program.run_limits.endpoint.key
    site.starts(2)
    assert site.program.run_limits.endpoint.key != first
    refused(site, first, "run 1 of widgets-12 has ended")
    second = site.program.run_limits.endpoint.key
    site.agents.stop(site.session, 2)
    for shown in (first, second):
        refused(site, shown, "invalid run token")


def test_the_token_of_an_exited_program_is_refused(site: Site) -> None:
    site.starts()
    agent = replace(site.session.agent, activity=Activity.EXITED)
    site.scenario.store.observations.record(
        [Observation(session=site.id, run=1, agent=agent)], site.scenario.clock()
    )
    refused(site, site.program.run_limits.endpoint.key, "run 1 of widgets-12 has ended")


def test_only_the_exact_token_is_accepted(site: Site) -> None:
    site.starts()
    for shown in ("", "widgets-12_r1.", "widgets-12_r1.wrong", "../x_r1.y", "é"):
        refused(site, shown, "invalid run token")


def test_a_session_over_its_budget_is_refused(site: Site) -> None:
    site.starts()
    (loaded,) = site.scenario.store.facts.load([site.id])
    because = "this session's dollar budget is used up"
    over = SessionDecision(status="paused", reason=Reason.BUDGET_EXHAUSTED, because=because, run=1)
    site.scenario.store.decisions.record([(loaded, over)], site.scenario.clock())[0].result()
    refusal = refused(site, site.program.run_limits.endpoint.key, because)
    assert refusal.status == 402


def test_a_key_without_an_endpoint_is_an_error_with_a_remedy(site: Site) -> None:
    kinds = {"shell": AgentTypeSettings(program="shell", key="SHELL_KEY")}
    site.models.settings = replace(site.models.settings, agent_types=kinds)
    refusal = site.tries_to_start()
    assert isinstance(refusal, Rejected)
    assert "set `endpoint` of [agent-types.shell]" in refusal.why


def test_without_a_key_a_program_connects_to_its_endpoint_directly(site: Site) -> None:
    kinds = {"shell": AgentTypeSettings(program="shell", endpoint="http://models")}
    site.models.settings = replace(site.models.settings, agent_types=kinds)
    site.starts()
    assert site.program.run_limits.endpoint == Endpoint(url="http://models")
    assert not site.paths.run_token(site.id, 1).exists()


def refused(site: Site, shown: str, why: str) -> ModelUnavailable:
    with pytest.raises(ModelUnavailable, match=re.escape(why)) as refusal:
        site.models.of_token(shown)
    return refusal.value
