"""Builds the schemas of commands and of a new session in the OpenAPI document."""

from collections.abc import Mapping
from typing import Any, Final

from bot.intake.local_commands import LOCAL_COMMANDS, METADATA_KEY
from bot.intake.spawning import BRANCH
from lifecycle.model.names import MODE, PERMISSION_MODES
from lifecycle.model.policy import MergeMethod

#: The pattern of a full commit hash, SHA-1 or SHA-256.
COMMIT: Final = "[0-9a-f]{40}([0-9a-f]{24})?"

_AGENT: Final = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,38}(\s+[A-Za-z0-9][A-Za-z0-9_.-]{0,38})?"
_MODE: Final = f"[{MODE}MODE]"
_MODES: Final = f"{MODE}({'|'.join(PERMISSION_MODES)})"
_USD: Final = r"[+]?\s?[$]?(?=[0-9.]*[1-9])[0-9]{1,5}([.][0-9]{1,2})?(\s?([uU][sS][dD]|[$]))?"
#: The schema of a command's text, by the argument in its usage.
_TEXTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "TEXT": {"pattern": r"\S", "examples": ["Keep the old name."]},
    f"NAME [TYPE] {_MODE}": {"pattern": rf"^\s*{_AGENT}(\s+{_MODES})?\s*$", "examples": ["ada"]},
    f"[AGENT [TYPE]] {_MODE}": {
        "pattern": rf"^\s*({_AGENT}(\s+|\s*$))?({_MODES})?\s*$",
        "examples": ["ada"],
    },
    "[AGENT [TYPE]]": {"pattern": rf"^\s*({_AGENT})?\s*$", "examples": ["ada"]},
    _MODE: {"pattern": rf"^\s*({_MODES})?\s*$", "examples": [f"{MODE}{PERMISSION_MODES[0]}"]},
    "[METHOD]": {"enum": ["", *MergeMethod], "description": "If empty, the configured method."},
    "COMMIT": {"pattern": r"^\s*[0-9a-fA-F]{7,40}\s*$", "examples": ["0a1b2c3"]},
    "+USD": {"pattern": rf"^\s*{_USD}\s*$", "examples": ["+5"]},
}
_HEAD: Final[Mapping[str, Any]] = {
    "type": "string",
    "pattern": f"^({COMMIT})?$",
    "description": "The reviewed commit: status 409 if the pull request is at another one.",
}


def schema_name(kind: str) -> str:
    """Return the name of a command's schema, such as `PullRequestCommand`."""
    return f"{kind.title().replace('-', '')}Command"


def command_schemas(name: str) -> dict[str, Any]:
    """Return a schema for each command, and a schema `name` that accepts any command."""
    found = {schema_name(kind): _schema(kind) for kind in LOCAL_COMMANDS}
    references = {title: {"$ref": f"#/components/schemas/{title}"} for title in found}
    return {**found, name: {"title": name, "oneOf": list(references.values())}}


def _schema(kind: str) -> dict[str, Any]:
    syntax = LOCAL_COMMANDS[kind]
    properties: dict[str, Any] = {"kind": {"type": "string", "const": kind}}
    if syntax.argument:
        properties["text"] = {"type": "string", **_TEXTS[syntax.argument]}
    if kind == "merge":
        properties["head"] = _HEAD
    optional = not syntax.argument or syntax.argument.startswith("[")
    return {
        "title": schema_name(kind),
        "description": f"{syntax.description[0].upper()}{syntax.description[1:]}.",
        "type": "object",
        "required": ["kind"] if optional else ["kind", "text"],
        "properties": properties,
        "additionalProperties": False,
    }


def session_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a new session, with the rules that involve several fields.

    A chat has no issue; any other session has either an issue or a prompt.
    """
    properties = {name: dict(value) for name, value in schema["properties"].items()}
    properties["branch"]["pattern"] = f"^({BRANCH.pattern})?$"
    properties["metadata"]["propertyNames"] = {"pattern": f"^{METADATA_KEY.pattern}$"}
    without_issue = {"properties": {"issue": {"type": "null"}}}
    return {
        **schema,
        "properties": properties,
        "if": {"required": ["chat"], "properties": {"chat": {"const": True}}},
        "then": without_issue,
        "else": {
            "if": {"required": ["issue"], "properties": {"issue": {"type": "integer"}}},
            "then": {"properties": {"prompt": {"const": ""}}},
            "else": {"required": ["prompt"], "properties": {"prompt": {"pattern": r"\S"}}},
        },
    }
