"""The tool calls of the scripted model, chosen from the tools that each program offers."""

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from msgspec import Struct

Given = Mapping[str, Any]


class Call(Struct, frozen=True):
    """One use of a tool."""

    name: str
    arguments: Given


def call(verb: str, rest: str, tools: frozenset[str], folder: str) -> Call:
    """Return the tool call that carries out a step.

    `verb` and `rest` are the step, and `tools` the names of the tools that the program offers.
    Relative paths are taken from `folder`, the program's working directory, because some tools need
    absolute ones. Raises `ValueError` if no tool fits.
    """
    if verb == "tool":
        name, _, given = rest.partition(" ")
        return Call(name, json.loads(given or "{}"))
    if verb in ("write", "read"):
        path, _, text = rest.partition(" ")
        rest = f"{PurePath(folder, path)} {text}".rstrip(" ")
    for name, made in _TOOLS[verb].items():
        if name in tools:
            return Call(name, made(rest))
    raise ValueError(f"no tool for {verb!r} among {', '.join(sorted(tools))}")


def written(rest: str) -> tuple[str, str]:
    """Return the path and the text of a `write`. The text ends with a newline."""
    path, _, text = rest.partition(" ")
    return path, text.replace("\\n", "\n") + "\n"


def _file(name: str) -> Callable[[str], Given]:
    def given(rest: str) -> Given:
        path, text = written(rest)
        return {name: path, "content": text}

    return given


def _written_by_shell(rest: str) -> Given:
    path, text = written(rest)
    return {"cmd": f"printf %s {shlex.quote(text)} > {shlex.quote(path)}"}


def _named(name: str) -> Callable[[str], Given]:
    return lambda rest: {name: rest}


def _command(rest: str) -> Given:
    return {"command": rest, "description": "run the scripted command"}


def _asked(**more: object) -> Callable[[str], Given]:
    colours = [
        {"label": colour, "description": f"the {colour.lower()} one"} for colour in ("Red", "Blue")
    ]
    return lambda rest: {
        "questions": [{"question": rest, "header": "Choice", "options": colours, **more}]
    }


#: For each verb, the tools of Claude Code, Gemini CLI, OpenCode and Codex, with their arguments.
_TOOLS: Mapping[str, Mapping[str, Callable[[str], Given]]] = {
    "write": {
        "Write": _file("file_path"),
        "write_file": _file("file_path"),
        "write": _file("filePath"),
        "exec_command": _written_by_shell,
    },
    "bash": {
        "Bash": _command,
        "run_shell_command": _command,
        "bash": _command,
        "exec_command": _named("cmd"),
    },
    "read": {
        "Read": _named("file_path"),
        "read_file": _named("file_path"),
        "read": _named("filePath"),
        "exec_command": lambda rest: {"cmd": f"cat {shlex.quote(rest)}"},
    },
    "ask": {
        "AskUserQuestion": _asked(multiSelect=False),
        "ask_user": _asked(type="choice", multiSelect=False),
        "question": _asked(),
        "request_user_input": _asked(id="colour"),
    },
    "plan": {
        "ExitPlanMode": _named("plan"),
        "exit_plan_mode": _named("plan"),
        "update_plan": lambda rest: {"plan": [{"step": rest, "status": "in_progress"}]},
    },
}
