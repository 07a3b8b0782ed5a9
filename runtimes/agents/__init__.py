"""The registry of agent types: one package and one line each."""

from collections.abc import Mapping

from runtimes.agents.aider.launch import Aider
from runtimes.agents.claude.launch import Claude
from runtimes.agents.codex.launch import Codex
from runtimes.agents.gemini.launch import Gemini
from runtimes.agents.opencode.launch import OpenCode
from runtimes.agents.shared.adapter import AgentAdapter
from runtimes.agents.shell import Shell

AGENTS: Mapping[str, type[AgentAdapter]] = {
    "aider": Aider,
    "claude": Claude,
    "codex": Codex,
    "gemini": Gemini,
    "opencode": OpenCode,
    "shell": Shell,
}
