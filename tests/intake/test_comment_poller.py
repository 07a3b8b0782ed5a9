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


class House:
    """A repository that people comment in, and who looks for what they write."""

    def __init__(self, github: FaultyGitHub, repo: Repository, store: Store) -> None:
        self.github, self.repo, self.store = github, repo, store
        self.client = GitHub(f"{github.url}api/v3", Credentials(token="wrights"))
        self.inbox = Inbox(store, frozenset([repo.full_name]), lambda: None)
        self.later = timedelta()
        self.watch = self.new_watch()
        self.issue = repo.open_issue("Broken", body="@mergewright", by="alice")
        self.issue.created_at -= timedelta(hours=2)

    def new_watch(self) -> CommentPoller:
        """What looks after the bot was started anew."""
        project = ProjectSettings(repository=self.repo.full_name)
        return CommentPoller(self.client, self.inbox, [project], self.clock)

    def clock(self) -> datetime:
        """The time, as much later as it was told to be."""
        return datetime.now(UTC) + self.later

    def hears(self) -> int:
        """How many comments are new."""
        self.watch.poll()
        return self.inbox.process()

    def used(self) -> int:
        """How much of what may be asked in an hour was."""
        return self.github.traffic.spend("wright", "core", 0)["used"]

    def commands(self) -> list[tuple[str, int, str]]:
        """What was asked for: the word, where, by whom."""
        return [(one.kind, one.number, one.actor) for one in self.store.commands.new()]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    store = Store(empty_database(tmp_path / "database"))
    with FaultyGitHub(tmp_path / "github") as github:
        github.user("wright", token="wrights")
        repo = github.repository("acme/widgets")
        for login in ("wright", "alice"):
            repo.permission(login, "write")
        house = House(github, repo, store)
        yield house
        house.client.close()
    store.close()


def test_a_polled_command_is_processed_once(house: House) -> None:
    house.issue.comment("/mergewright start", by="alice")
    assert (house.hears(), house.hears()) == (1, 0)
    house.watch = house.new_watch()
    assert house.hears() == 0
    assert house.commands() == [("start", 1, "alice")]
    (refresh,) = house.store.refreshes.due(datetime.now(UTC), ("issue:", "pull:"))
    assert refresh.subject == "issue:1"


def test_the_text_of_a_new_issue_is_processed_once(house: House) -> None:
    house.hears()
    house.repo.open_issue("Slow", body="It is.\n\n@mergewright", by="alice")
    assert (house.hears(), house.hears()) == (1, 0)
    assert house.commands() == [("start", 2, "alice")]


def test_an_old_issue_is_not_processed_when_it_changes(house: House) -> None:
    house.issue.label("bug", by="alice")
    house.hears()
    assert house.commands() == []


def test_a_polled_comment_on_a_pull_request_belongs_to_it(house: House) -> None:
    house.repo.push("feat", {"new": "1\n"}, by="alice")
    pull = house.repo.open_pull("feat", title="Mend", body="", by="alice")
    pull.comment("Hm.", by="alice")
    house.hears()
    refreshed = [one.subject for one in house.store.refreshes.due(datetime.now(UTC), ("pull:",))]
    assert refreshed == [f"pull:{pull.number}"]


def test_an_edited_comment_gives_no_command(house: House) -> None:
    comment = house.issue.comment("/mergewright stop", by="alice")
    comment.updated_at += timedelta(seconds=1)
    assert house.hears() == 0


def test_comments_that_cannot_be_listed_are_processed_later(house: House) -> None:
    house.issue.comment("/mergewright stop", by="alice")
    house.later = timedelta(minutes=5)
    house.github.fail_next("GET", "/issues/comments", 502)
    assert (house.hears(), house.hears()) == (0, 1)


def test_polling_without_news_costs_no_points(house: House) -> None:
    house.issue.comment("Hm.", by="alice")
    for minutes in range(5):
        house.later = timedelta(minutes=minutes)
        house.hears()
    before = house.used()
    for minutes in range(5, 60):
        house.later = timedelta(minutes=minutes)
        assert house.hears() == 0
    assert house.used() == before
    comment = house.issue.comment("/mergewright stop", by="alice")
    comment.created_at = comment.updated_at = house.clock()
    assert (house.hears(), house.used()) == (1, before + 1)


def test_later_polls_start_later(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[datetime] = []
    listed = house.client.read.issues_since

    def spy(repo: str, since: datetime) -> list[ListedIssue]:
        asked.append(since)
        return listed(repo, since)

    monkeypatch.setattr(house.client.read, "issues_since", spy)
    house.hears()
    house.issue.label("bug", by="alice")
    for minutes in range(5):
        house.later = timedelta(minutes=minutes)
        house.hears()
    assert house.issue.updated_at < asked[-1]


def test_comments_that_could_not_be_stored_are_listed_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.hears()
    house.issue.comment("/mergewright stop", by="alice")
    with monkeypatch.context() as broken:
        broken.setattr(house.store.deliveries, "add", _full)
        with pytest.raises(StoreFull):
            house.hears()
    assert house.hears() == 1
    assert house.github.requests[-1].status == 200


def _full(_: object) -> Future[list[DeliveryOutcome]]:
    kept: Future[list[DeliveryOutcome]] = Future()
    kept.set_exception(StoreFull("no room"))
    return kept
