"""The registry of adapters, one for each program that can be an agent."""

from collections.abc import Mapping

from runtimes.agents.aider import Aider
from runtimes.agents.claude import Claude
from runtimes.agents.codex import Codex
from runtimes.agents.gemini import Gemini
from runtimes.agents.opencode import OpenCode
from runtimes.agents.shared.adapter import AgentAdapter
from runtimes.agents.shell import Shell

#: The adapters by `AgentType.program`.
AGENTS: Mapping[str, type[AgentAdapter]] = {
    "aider": Aider,
    "claude": Claude,
    "codex": Codex,
    "gemini": Gemini,
    "opencode": OpenCode,
    "shell": Shell,
}
