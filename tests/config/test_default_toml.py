"""`default.toml` documents every setting with its default."""

import re
import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

from config import load
from config.settings import (
    AgentSettings,
    AgentTypeSettings,
    ModelPrice,
    ProfileSettings,
    ProjectSettings,
    Settings,
)
from lifecycle.model.policy import Policy

CONFIG = Path(load.__file__).parent


def documented() -> dict[str, Any]:
    """Parse `default.toml` as if none of its tables were commented out."""
    text = (CONFIG / "default.toml").read_text()
    return tomllib.loads(re.sub(r"^#(?! )", "", text, flags=re.MULTILINE))


def settings_of(kind: Any, where: str = "") -> set[str]:
    """Every declared key, with `*` for a free name."""
    if get_origin(kind) in (dict, Mapping) and issubclass(get_args(kind)[1], msgspec.Struct):
        return settings_of(get_args(kind)[1], f"{where}*.")
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return set().union(
            *(
                settings_of(one.type, f"{where}{one.encode_name}.")
                for one in msgspec.structs.fields(kind)
            )
        )
    return {where.rstrip(".")}


def keys(table: Any, kind: Any, where: str = "") -> set[str]:
    """Every key in a parsed TOML table, as a dotted path, e.g. `agents.*.types` for any agent."""
    if get_origin(kind) in (dict, Mapping) and issubclass(get_args(kind)[1], msgspec.Struct):
        return set().union(*(keys(one, get_args(kind)[1], f"{where}*.") for one in table.values()))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        types = {one.encode_name: one.type for one in msgspec.structs.fields(kind)}
        return set().union(*(keys(table[key], types[key], f"{where}{key}.") for key in table))
    return {where.rstrip(".")}


def test_every_setting_is_documented() -> None:
    assert keys(documented(), Settings) == settings_of(Settings)


def test_the_documented_file_decodes_to_the_defaults() -> None:
    assert load.load_settings(CONFIG / "default.toml") == Settings()


def test_the_tables_shown_as_comments_have_the_defaults_too() -> None:
    shown = msgspec.convert(documented(), Settings)
    same = Policy()  # It differs in nothing.
    assert shown.projects == {"widgets": ProjectSettings(repository="acme/widgets", policy=same)}
    assert shown.profiles == {"careful": ProfileSettings()}
    assert shown.agents == {"ada": AgentSettings(types=("claude",))}
    looked_up = date(2026, 11, 21)
    price = ModelPrice(input=1.25, output=10.0, cache_read=1.25, cache_write=1.25, as_of=looked_up)
    assert shown.prices == {"some-model*": price}
    assert shown.agent_types == {"claude": AgentTypeSettings(program="claude")}


def test_every_setting_has_a_comment() -> None:
    lines = (CONFIG / "default.toml").read_text().splitlines()
    bare = [
        line for line in lines if "=" in line and not line.startswith("# ") and " # " not in line
    ]
    assert bare == []


def test_the_example_is_a_valid_configuration() -> None:
    settings = load.load_settings(CONFIG / "example.toml")
    assert settings.projects["widgets"].agent in settings.agent_types
