"""No file of the product names an agent, except in that agent's package and in `EXCEPTIONS`.

A new agent is then a package and a line in the registry, and no other file decides by an agent's
name.
"""

import re

from runtimes.agents import AGENTS
from tests.house.source import PACKAGES, ROOT, texts

#: Files that have to name agents, and why.
EXCEPTIONS = {
    "runtimes/agents/__init__.py": "the registry",
    "bot/cli/installing.py": "the default value of `setup --agent`, as in the configuration",
    "config/settings.py": "default values that people override: agent and steering files",
    "config/default.toml": "the same default values, for reading",
    "config/prices.toml": "the names of models contain those of agents",
    "config/example.toml": "an example configuration",
    "config/prompts/start.md": "the names of instruction files in people's repositories",
    "lifecycle/model/policy.py": "the default value of the protected paths",
}
#: `shell` is an ordinary word.
NAMES = [name for name in AGENTS if name != "shell"]
#: The variable of Google's API, which several agents read.
_VARIABLES = re.compile(r"\bGEMINI_API_KEY\b")


def named_agents(path: str, text: str) -> set[str]:
    """The agents that a file names, without the one whose package it is in."""
    words = re.findall("|".join(NAMES), _VARIABLES.sub("", text).lower())
    return {name for name in words if not path.startswith(f"runtimes/agents/{name}/")}


def product_texts() -> dict[str, str]:
    """Return the text of each product file by path, except `bot/demo`, which may name agents."""
    return {
        path: text
        for path, text in texts().items()
        if path.startswith(tuple(f"{package}/" for package in PACKAGES))
        and not path.startswith("bot/demo/")
    }


def test_only_an_agents_own_package_names_it() -> None:
    wrong = {path: named_agents(path, text) for path, text in product_texts().items()}
    assert {path: names for path, names in wrong.items() if names and path not in EXCEPTIONS} == {}


def test_every_exception_is_needed() -> None:
    for path in EXCEPTIONS:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert named_agents(path, text), path
