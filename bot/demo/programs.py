"""The programs of coding agents in the demo: where they are, and how the bot is to run them."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType

#: For each program, what it has to be told for a model that is the scripted one.
MODELS: Mapping[str, str] = {
    "aider": "openai/gpt-4o",  # Only of one it knows it takes parts of files.
    "claude": "",
    "codex": "scripted",
    "gemini": "",
    "opencode": "scripted/scripted",
}

#: The word for it on the command line.
SCRIPTED = "scripted"
#: The server's variable with the key for it.
KEY = "DEMO_MODEL_KEY"

_TYPE = """
[agent-types.{program}]
program = "{program}"
command = [{command}]
model = "{model}"
"""
_AT_THE_SCRIPTED_MODEL = """endpoint = "{url}"
key = "{key}"
env = {{ IS_SANDBOX = "1" }}  # It does what the script tells, and nothing else.
"""
_AT_ITS_OWN = """pass-env = {variables}
"""


def cached(program: str, version: str) -> Path:
    """The folder into which `scripts/test-agents` installs a program; it stands in `bin` there."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "mergewright" / "agents" / f"{program}-{version}"


def found(program: str) -> Path | None:
    """The program on PATH, or the one that was last installed into the cache."""
    if there := shutil.which(program):
        return Path(there)
    folder = cached(program, "*")
    programs = folder.parent.glob(f"{folder.name}/bin/{program}")
    return max(programs, key=lambda path: path.lstat().st_mtime, default=None)


def lacking(program: str, model: str) -> Sequence[str]:
    """What stands in the way of a demo with it, each with its remedy; empty: nothing."""
    place = found(program)
    if place is None:
        return [
            f"{program} is neither on PATH nor in the cache: install it, or have"
            f" `scripts/test-agents --only {program} --step start` fetch it"
        ]
    if model == SCRIPTED:
        return []
    kind = AgentType(
        program=program, command=(str(place),), model=model, pass_env=_variables(program)
    )
    return AGENTS[program](kind).check(os.environ)


def table(program: str, model: str, url: str) -> str:
    """The configuration's `[agent-types.NAME]`; `url` is where the scripted model is."""
    command = json.dumps(str(found(program)))
    if model == SCRIPTED:
        own = _TYPE.format(program=program, command=command, model=MODELS[program])
        return own + _AT_THE_SCRIPTED_MODEL.format(url=url, key=KEY)
    own = _TYPE.format(program=program, command=command, model=model)
    return own + _AT_ITS_OWN.format(variables=json.dumps(_variables(program)))


def _variables(program: str) -> tuple[str, ...]:
    return (*AGENTS[program].login_variables, "ANTHROPIC_BASE_URL", "IS_SANDBOX")
