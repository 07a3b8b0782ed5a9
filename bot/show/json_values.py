"""Converts values to JSON, with action keys as text."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct

from lifecycle.model.key import Key


def json_value(value: object) -> object:
    """Convert structs and mappings to dicts, sets and tuples to lists, and action keys to text.

    Other values, such as times, are returned as they are; msgspec encodes them. Action keys become
    text not only as keys of JSON objects, which have to be text, but also as values, so that
    programs can compare the two.
    """
    match value:
        case Key():
            return str(value)
        case Struct():
            config = value.__struct_config__
            tag = {config.tag_field: config.tag} if config.tag_field else {}
            pairs = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
            return {**tag, **{name: json_value(getattr(value, field)) for name, field in pairs}}
        case Mapping():
            return {str(key): json_value(one) for key, one in value.items()}
        case AbstractSet():
            return sorted((json_value(one) for one in value), key=str)
        case list() | tuple():
            return [json_value(one) for one in value]
        case _:
            return value
