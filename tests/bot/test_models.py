"""Whose model key an agent works with: its own, its project's, its type's, in that order."""

import pytest

from bot.models import key_source
from config.settings import AgentSettings, AgentTypeSettings, Project, Settings

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
        "widgets": Project(repository="acme/widgets", model_keys={"claude": "WIDGETS_KEY"}),
        "gadgets": Project(repository="acme/gadgets"),
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
