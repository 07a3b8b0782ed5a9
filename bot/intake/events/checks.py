"""Events about checks: check runs, check suites, commit statuses and workflow runs."""

import msgspec
from msgspec import Struct

from bot.intake.events.payloads import Id, ParsedEvent, RepositoryPayload


class _BaseRepository(Struct, frozen=True):
    id: int


class _Base(Struct, frozen=True):
    repo: _BaseRepository


class _ListedPull(Struct, frozen=True):
    number: Id
    base: _Base


class _Checked(Struct, frozen=True):
    """`check_run`, `check_suite` or `workflow_run`."""

    head_sha: str
    pull_requests: tuple[_ListedPull, ...] = ()

    def parsed(self, repository: RepositoryPayload) -> ParsedEvent:
        """The pull requests that GitHub lists for the commit, or the commit itself.

        The list is empty for a commit of a fork, and may name pull requests of other repositories,
        which are ignored.
        """
        pulls = tuple(
            repository.subject("pull", pull.number)
            for pull in self.pull_requests
            if pull.base.repo.id == repository.id
        )
        return ParsedEvent(changed=pulls or (repository.subject("sha", self.head_sha),))


class _CheckRunEvent(Struct, frozen=True):
    repository: RepositoryPayload
    check_run: _Checked


class _CheckSuiteEvent(Struct, frozen=True):
    repository: RepositoryPayload
    check_suite: _Checked


class _StatusEvent(Struct, frozen=True):
    repository: RepositoryPayload
    sha: str


class _WorkflowRunEvent(Struct, frozen=True):
    repository: RepositoryPayload
    workflow_run: _Checked


def check_run(body: bytes) -> ParsedEvent:
    """A check run was created, completed or rerun."""
    event = msgspec.json.decode(body, type=_CheckRunEvent)
    return event.check_run.parsed(event.repository)


def check_suite(body: bytes) -> ParsedEvent:
    """All check runs of one App on a commit completed."""
    event = msgspec.json.decode(body, type=_CheckSuiteEvent)
    return event.check_suite.parsed(event.repository)


def status(body: bytes) -> ParsedEvent:
    """A commit status was set, the older way to report a check."""
    event = msgspec.json.decode(body, type=_StatusEvent)
    return event.repository.changed("sha", event.sha)


def workflow_run(body: bytes) -> ParsedEvent:
    """A GitHub Actions workflow run was requested, started or completed."""
    event = msgspec.json.decode(body, type=_WorkflowRunEvent)
    return event.workflow_run.parsed(event.repository)
