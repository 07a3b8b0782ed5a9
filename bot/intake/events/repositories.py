"""Events about repositories, their branches, and the App's access to them."""

import msgspec
from msgspec import Struct

from bot.intake.events.payloads import ParsedEvent, RepositoryPayload

#: After these the bot can read nothing any more.
_LOST_ACCESS = frozenset({"deleted", "suspend"})
#: A new repository has no content yet, a deleted one none any more.
_EMPTY = frozenset({"created", "deleted"})
_BRANCH = "refs/heads/"


class _PushEvent(Struct, frozen=True):
    repository: RepositoryPayload
    ref: str


class _RepositoryEvent(Struct, frozen=True):
    action: str
    repository: RepositoryPayload


class _InstallationEvent(Struct, frozen=True):
    action: str
    #: Listed when the App is installed, but not when its suspension ends.
    repositories: tuple[RepositoryPayload, ...] = ()


class _InstallationRepositoriesEvent(Struct, frozen=True):
    repositories_added: tuple[RepositoryPayload, ...]


def push(body: bytes) -> ParsedEvent:
    """A branch was pushed, created or deleted; tags are ignored."""
    event = msgspec.json.decode(body, type=_PushEvent)
    if not event.ref.startswith(_BRANCH):
        return ParsedEvent()
    return event.repository.changed("branch", event.ref[len(_BRANCH) :])


def repository(body: bytes) -> ParsedEvent:
    """A repository was renamed, transferred, archived or edited."""
    event = msgspec.json.decode(body, type=_RepositoryEvent)
    if event.action in _EMPTY:
        return ParsedEvent(access_changed=True)
    return ParsedEvent(changed=(event.repository.subject("repository"),), access_changed=True)


def installation(body: bytes) -> ParsedEvent:
    """The App was installed, uninstalled or suspended, or got new permissions."""
    event = msgspec.json.decode(body, type=_InstallationEvent)
    if event.action in _LOST_ACCESS:
        return ParsedEvent(access_changed=True)
    changed = tuple(one.subject("repository") for one in event.repositories)
    return ParsedEvent(changed=changed, access_changed=True)


def installation_repositories(body: bytes) -> ParsedEvent:
    """Repositories were added to the App's installation or removed from it."""
    event = msgspec.json.decode(body, type=_InstallationRepositoriesEvent)
    added = tuple(one.subject("repository") for one in event.repositories_added)
    return ParsedEvent(changed=added, access_changed=True)


def ping(_body: bytes) -> ParsedEvent:
    """GitHub tests a new webhook."""
    return ParsedEvent()
