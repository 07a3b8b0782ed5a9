"""Caches results that every bot started in the same process would compute again."""

import functools
import ssl
from typing import Any

import jwt.algorithms


def cache_certificates_and_keys() -> None:
    """Load TLS certificates and private keys once: each load takes as long as a test."""
    _cache(ssl, "create_default_context")
    _cache(jwt.algorithms, "load_pem_private_key")


def cache_routes() -> None:
    """Parse the signature of each route once: bots create new functions from the same code."""
    from litestar.utils.signature import ParsedSignature

    read: Any = ParsedSignature.from_fn
    known: dict[object, ParsedSignature] = {}

    def from_fn(function: Any, namespace: dict[str, Any]) -> ParsedSignature:
        code = getattr(function, "__code__", function)
        if code not in known:
            known[code] = read(function, namespace)
        return known[code]

    setattr(ParsedSignature, "from_fn", from_fn)  # noqa: B010 - it is a class method


def _cache(place: Any, name: str) -> None:
    setattr(place, name, functools.cache(getattr(place, name)))
