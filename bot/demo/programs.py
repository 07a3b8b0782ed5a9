"""Finds and configures the agents' programs for the demo."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType

#: The name of the scripted model in each program's configuration; empty for the program's default.
MODELS: Mapping[str, str] = {
    "aider": "openai/gpt-4o",  # It accepts partial edits only from models it knows.
    "claude": "",
    "codex": "scripted",
    "gemini": "",
    "opencode": "scripted/scripted",
}

#: The scripted model's name on the command line.
SCRIPTED = "scripted"
#: The environment variable with the scripted model's key.
KEY = "DEMO_MODEL_KEY"

_TYPE = """
[agent-types.{program}]
program = "{program}"
command = [{command}]
model = "{model}"
"""
_AT_THE_SCRIPTED_MODEL = """endpoint = "{url}"
key = "{key}"
env = {{ IS_SANDBOX = "1" }}  # It carries out the script and nothing else.
"""
_AT_ITS_OWN = """pass-env = {variables}
"""


def cached(program: str, version: str) -> Path:
    """Return the folder into which `scripts/test-agents` installs a program.

    The program itself is in its folder `bin`. With "*" as `version`, the folder's name is a
    pattern.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "mergewright" / "agents" / f"{program}-{version}"


def found(program: str) -> Path | None:
    """Find the program on PATH or, if it is not there, in the cache of `scripts/test-agents`.

    Of several versions in the cache, returns the one that was installed last. Returns None if the
    program is in neither place.
    """
    if there := shutil.which(program):
        return Path(there)
    folder = cached(program, "*")
    programs = folder.parent.glob(f"{folder.name}/bin/{program}")
    return max(programs, key=lambda path: path.lstat().st_mtime, default=None)


def lacking(program: str, model: str) -> Sequence[str]:
    """Return the problems that prevent a demo with this program, each with its remedy."""
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
    """Return the configuration of an agent type that runs `program` with `model`, as TOML.

    `url` is the scripted model's address, used only with that model.
    """
    command = json.dumps(str(found(program)))
    if model == SCRIPTED:
        own = _TYPE.format(program=program, command=command, model=MODELS[program])
        return own + _AT_THE_SCRIPTED_MODEL.format(url=url, key=KEY)
    own = _TYPE.format(program=program, command=command, model=model)
    return own + _AT_ITS_OWN.format(variables=json.dumps(_variables(program)))


def _variables(program: str) -> tuple[str, ...]:
    return (*AGENTS[program].login_variables, "ANTHROPIC_BASE_URL", "IS_SANDBOX")
