"""The agent types: one file each, one line each here."""

from collections.abc import Mapping

from runtimes.agents.aider import Aider
from runtimes.agents.base import Program
from runtimes.agents.claude import Claude
from runtimes.agents.codex import Codex
from runtimes.agents.gemini import Gemini
from runtimes.agents.opencode import OpenCode
from runtimes.agents.shell import Shell

AGENTS: Mapping[str, type[Program]] = {
    "aider": Aider,
    "claude": Claude,
    "codex": Codex,
    "gemini": Gemini,
    "opencode": OpenCode,
    "shell": Shell,
}
