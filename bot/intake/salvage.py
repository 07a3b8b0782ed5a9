"""Finds the subjects that an undecodable payload names, so that GitHub is asked about them."""

from contextlib import suppress

import msgspec
from msgspec import Raw, Struct

from bot.intake.changes import ChangedSubject, RepositoryPayload
from bot.intake.events import Numbered

#: The exceptions of decoding a body that is not a payload of its event.
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Unchecked(Struct, frozen=True):
    """The parts of any payload that name a subject. Each is decoded separately later."""

    repository: Raw = Raw(b"null")
    issue: Raw = Raw(b"null")
    pull_request: Raw = Raw(b"null")


class _NamedRepository(Struct, frozen=True):
    full_name: str


def salvage(body: bytes) -> tuple[ChangedSubject, ...]:
    """Return the subjects that an undecodable payload names. Never raises.

    If it names only a repository, the subject is the whole repository. Empty if it names none.
    """
    try:
        parts = msgspec.json.decode(body, type=_Unchecked)
        name = msgspec.json.decode(parts.repository, type=_NamedRepository).full_name
    except UNDECODABLE:
        return ()
    try:
        repository = msgspec.json.decode(parts.repository, type=RepositoryPayload)
    except UNDECODABLE:
        repository = RepositoryPayload(0, name)
    found = []
    for kind, part in (("issue", parts.issue), ("pull", parts.pull_request)):
        with suppress(*UNDECODABLE):
            found.append(repository.subject(kind, msgspec.json.decode(part, type=Numbered).number))
    return tuple(found) or (repository.subject("repository"),)
