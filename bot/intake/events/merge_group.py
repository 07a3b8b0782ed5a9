"""`merge_group`: GitHub's merge queue made a group of pull requests, or took one apart."""

import re

import msgspec
from msgspec import Struct

from bot.intake.events.base import Outcome, Repository

#: `refs/heads/gh-readonly-queue/main/pr-34-SHA`: the last pull request of the group.
_QUEUED = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-(?P<number>[0-9]+)-[0-9a-f]+")


class _Group(Struct, frozen=True):
    head_ref: str


class _Payload(Struct, frozen=True):
    repository: Repository
    merge_group: _Group


def read(body: bytes) -> Outcome:
    """Look at the pull request again; the checks of a group run on a commit that is not its head.

    The others of the group are told of by `pull_request`, when they leave the queue.
    """
    payload = msgspec.json.decode(body, type=_Payload)
    queued = _QUEUED.fullmatch(payload.merge_group.head_ref)
    if queued is None:
        return Outcome()
    return Outcome(refreshes=(payload.repository.refresh("pull", int(queued["number"])),))
