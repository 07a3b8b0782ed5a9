"""Polling: comments and issues become commands once, like webhooks."""

from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.demo.github.repository import Repository
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.rest import ListedIssue
from bot.intake.comment_poller import CommentPoller
from bot.intake.inbox import Inbox
from bot.store import DeliveryOutcome, Store, StoreFull
from config.settings import ProjectSettings
from tests.world.databases import empty_database
from tests.world.faulty_github import FaultyGitHub


class PolledRepository:
    """A repository with comments, and the poller that reads them."""

    def __init__(self, github: FaultyGitHub, repo: Repository, store: Store) -> None:
        self.github, self.repo, self.store = github, repo, store
        self.client = GitHub(f"{github.url}api/v3", Credentials(token="wrights"))
        self.inbox = Inbox(store, frozenset([repo.full_name]), lambda: None)
        self.later = timedelta()
        self.poller = self.new_poller()
        self.issue = repo.open_issue("Broken", body="@mergewright", by="alice")
        self.issue.created_at -= timedelta(hours=2)

    def new_poller(self) -> CommentPoller:
        """The poller after a restart of the bot."""
        project = ProjectSettings(repository=self.repo.full_name)
        return CommentPoller(self.client, self.inbox, {"widgets": project}, self.clock)

    def clock(self) -> datetime:
        """The time, with `later` added."""
        return datetime.now(UTC) + self.later

    def polls(self) -> int:
        """Poll; return the number of new deliveries."""
        self.poller.poll()
        return self.inbox.process()

    def used(self) -> int:
        """Points of the rate limit that were used."""
        return self.github.traffic.spend("wright", "core", 0)["used"]

    def commands(self) -> list[tuple[str, int, str]]:
        """The new commands: kind, number and actor."""
        return [(one.kind, one.number, one.actor) for one in self.store.commands.new()]


@pytest.fixture
def polled(tmp_path: Path) -> Iterator[PolledRepository]:
    store = Store(empty_database(tmp_path / "database"))
    with FaultyGitHub(tmp_path / "github") as github:
        github.user("wright", token="wrights")
        repo = github.repository("acme/widgets")
        for login in ("wright", "alice"):
            repo.permission(login, "write")
        polled = PolledRepository(github, repo, store)
        yield polled
        polled.client.close()
    store.close()


def test_a_polled_command_is_processed_once(polled: PolledRepository) -> None:
    polled.issue.comment("/mergewright start", by="alice")
    assert (polled.polls(), polled.polls()) == (1, 0)
    polled.poller = polled.new_poller()
    assert polled.polls() == 0
    assert polled.commands() == [("start", 1, "alice")]
    (refresh,) = polled.store.refreshes.due(datetime.now(UTC), ("issue:", "pull:"))
    assert refresh.subject == "issue:1"


def test_the_text_of_a_new_issue_is_processed_once(polled: PolledRepository) -> None:
    polled.polls()
    polled.repo.open_issue("Slow", body="It is.\n\n@mergewright", by="alice")
    assert (polled.polls(), polled.polls()) == (1, 0)
    assert polled.commands() == [("start", 2, "alice")]


def test_an_old_issue_is_not_processed_when_it_changes(polled: PolledRepository) -> None:
    polled.issue.label("bug", by="alice")
    polled.polls()
    assert polled.commands() == []


def test_a_polled_comment_on_a_pull_request_belongs_to_it(polled: PolledRepository) -> None:
    polled.repo.push("feat", {"new": "1\n"}, by="alice")
    pull = polled.repo.open_pull("feat", title="Mend", body="", by="alice")
    pull.comment("Hm.", by="alice")
    polled.polls()
    refreshed = [one.subject for one in polled.store.refreshes.due(datetime.now(UTC), ("other:",))]
    assert refreshed == [f"other:{pull.number}"]


def test_an_edited_comment_gives_no_command(polled: PolledRepository) -> None:
    comment = polled.issue.comment("/mergewright stop", by="alice")
    comment.updated_at += timedelta(seconds=1)
    assert polled.polls() == 0


def test_comments_that_cannot_be_listed_are_processed_later(polled: PolledRepository) -> None:
    polled.issue.comment("/mergewright stop", by="alice")
    polled.later = timedelta(minutes=5)
    polled.github.fail_next("GET", "/issues/comments", 502)
    assert (polled.polls(), polled.polls()) == (0, 1)


def test_polling_without_news_costs_no_points(polled: PolledRepository) -> None:
    polled.issue.comment("Hm.", by="alice")
    for minutes in range(5):
        polled.later = timedelta(minutes=minutes)
        polled.polls()
    before = polled.used()
    for minutes in range(5, 60):
        polled.later = timedelta(minutes=minutes)
        assert polled.polls() == 0
    assert polled.used() == before
    comment = polled.issue.comment("/mergewright stop", by="alice")
    comment.created_at = comment.updated_at = polled.issue.updated_at = polled.clock()
    # Both lists have changed: that of comments, and that of issues.
    assert (polled.polls(), polled.used()) == (1, before + 2)


def test_later_polls_start_later(polled: PolledRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[datetime] = []
    listed = polled.client.read.issues_since

    def spy(repo: str, since: datetime) -> list[ListedIssue]:
        asked.append(since)
        return listed(repo, since)

    monkeypatch.setattr(polled.client.read, "issues_since", spy)
    polled.polls()
    polled.issue.label("bug", by="alice")
    for minutes in range(5):
        polled.later = timedelta(minutes=minutes)
        polled.polls()
    assert polled.issue.updated_at < asked[-1]


def test_comments_that_could_not_be_stored_are_listed_again(
    polled: PolledRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    polled.polls()
    polled.issue.comment("/mergewright stop", by="alice")
    with monkeypatch.context() as broken:
        broken.setattr(polled.store.deliveries, "add", _full)
        with pytest.raises(StoreFull):
            polled.polls()
    assert polled.polls() == 1
    assert polled.github.requests[-1].status == 200


def _full(_: object) -> Future[list[DeliveryOutcome]]:
    kept: Future[list[DeliveryOutcome]] = Future()
    kept.set_exception(StoreFull("no space left"))
    return kept
