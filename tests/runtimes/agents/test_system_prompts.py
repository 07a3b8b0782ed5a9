"""Every agent type gets its system prompt where the preamble setting says, and only there."""

from itertools import product

import pytest

from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, RunFiles, RunLimits

SAID = "Be kind to parsers."


def places(files: RunFiles, *words: str) -> set[str]:
    """Return the names of the files with the system prompt, and whether the command has it."""
    files_there = (path for path in files.dir.parent.rglob("*") if path.is_file())
    holding = {path.name for path in files_there if SAID in path.read_text()}
    return holding | ({"command"} if any(SAID in word for word in words) else set())


@pytest.mark.parametrize(
    ("name", "way"),
    [
        *((name, way) for name, adapter in AGENTS.items() for way in adapter.preambles),
        *product(AGENTS, ("first-message",)),
    ],
)
def test_the_system_prompt_goes_where_the_preamble_setting_says(
    name: str, way: str, files: RunFiles
) -> None:
    adapter = AGENTS[name](AgentType(program=name, preamble=way))
    launch = adapter.prepare(files, "Do it.", "", RunLimits(system=SAID))
    found = places(files, *launch.argv, *launch.env.values())
    if way == "first-message":
        assert files.prompt.read_text() == f"{SAID}\n\nDo it."
        assert found <= {"prompt.md", "command"}
    elif way == "system-prompt":
        assert found == {"command"}
    else:
        (file,) = found
        assert file.endswith(".md")
        assert file != "prompt.md"
    adapter.prepare(files, "Do it.", "")
    assert places(files) <= {"aider-system.md", "opencode-system.md"}  # Of that run only.
