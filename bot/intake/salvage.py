"""Finds what a payload is about that cannot be decoded as its event, so that it is read again."""

from contextlib import suppress

import msgspec
from msgspec import Raw, Struct

from bot.intake.changes import ChangedSubject, RepositoryPayload
from bot.intake.events import Numbered

#: What decoding a body raises that is not a payload of its event.
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Unchecked(Struct, frozen=True):
    """The parts of any payload that name a subject, each checked alone."""

    repository: Raw = Raw(b"null")
    issue: Raw = Raw(b"null")
    pull_request: Raw = Raw(b"null")


class _NamedRepository(Struct, frozen=True):
    full_name: str


def salvage(body: bytes) -> tuple[ChangedSubject, ...]:
    """The subjects that a payload names which `parse_event` cannot decode; never raises.

    The whole repository if it names no issue and no pull request.
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
