"""The inbox: deliveries in the store become refresh requests and commands."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.decide.policies import Policies
from bot.github.comment_markers import marker
from bot.intake.inbox import OWN_MARKER, Inbox
from bot.store import (
    ACCESS,
    Delivery,
    DeliveryOutcome,
    NewCommand,
    Store,
    StoreClosed,
)
from bot.system.redaction import Redaction
from config.settings import ProjectSettings
from lifecycle.model.policy import Policy
from tests.world.databases import empty_database

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
SUBJECTS = ("issue:", "pull:", "branch:", "sha:")
REPOSITORY = {"id": 1, "full_name": "Acme/Widgets"}
OUR_REPORT = f"It works.\n\n{marker('widgets-12/report:12')}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(empty_database(tmp_path / "store.db"))
    yield store
    store.close()


@pytest.fixture
def woken() -> threading.Event:
    return threading.Event()


@pytest.fixture
def inbox(store: Store, woken: threading.Event) -> Inbox:
    return Inbox(store, frozenset({"acme/widgets"}), woken.set)


def delivery(id: str, event: str, body: bytes | dict[str, Any]) -> Delivery:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Delivery(id=id, event=event, at=NOW, body=raw)


def labelled(repository: str = "acme/widgets") -> dict[str, Any]:
    return {
        "action": "labeled",
        "issue": {"number": 12},
        "repository": {"id": 1, "full_name": repository},
    }


def comment(body: str, type: str = "User", number: int = 12) -> dict[str, Any]:
    return {
        "action": "created",
        "issue": {"number": number},
        "comment": {
            "id": 99,
            "created_at": "2026-11-20T10:00:00Z",
            "body": body,
            "user": {"login": "mara", "type": type},
        },
        "repository": REPOSITORY,
    }


def refreshed(store: Store) -> list[tuple[str, str]]:
    due = store.refreshes.due(datetime.now(UTC), SUBJECTS)
    return [(refresh.repository, refresh.subject) for refresh in due]


def failure(store: Store, id: str) -> str:
    with sqlite3.connect(f"file:{store.path}?mode=ro", uri=True) as connection:
        (row,) = connection.execute("SELECT state, error FROM deliveries WHERE id = ?", (id,))
    connection.close()
    assert row[0] == "failed"
    return str(row[1])


def test_a_delivery_is_stored_before_the_inbox_is_woken(
    store: Store, inbox: Inbox, woken: threading.Event
) -> None:
    assert inbox.accept([delivery("a", "issues", labelled())]).result(5) == [DeliveryOutcome.NEW]
    assert woken.wait(5)
    assert [waiting.id for waiting in store.deliveries.waiting()] == ["a"]


def test_a_failing_store_is_reported(store: Store, inbox: Inbox) -> None:
    store.close()
    with pytest.raises(StoreClosed):
        inbox.accept([delivery("a", "issues", labelled())])


@pytest.mark.parametrize("event", ["issue_comment", "issues"])
def test_secrets_are_redacted_from_a_delivery_and_its_commands_still_count(
    tmp_path: Path, event: str
) -> None:
    store = Store(tmp_path / "redacting.db", redact=Redaction(["hunter2-of-the-bot"]))
    inbox = Inbox(store, frozenset({"acme/widgets"}), lambda: None)
    body = comment("/mergewright tell use hunter2-of-the-bot")
    inbox.accept([delivery("a", event, body)]).result(5)
    inbox.process()
    with sqlite3.connect(f"file:{store.path}?mode=ro", uri=True) as connection:
        (row,) = connection.execute("SELECT body, state FROM deliveries")
    connection.close()
    assert b"tell use ******************" in row[0]
    assert [command.text for command in store.commands.new()] == (
        ["use [secret]"] if event == "issue_comment" else []
    )
    store.close()


def test_the_app_can_be_mentioned_by_its_own_name(store: Store) -> None:
    inbox = Inbox(store, frozenset({"acme/widgets"}), lambda: None, app_slug="acme-bot")
    inbox.accept([delivery("a", "issue_comment", comment("@acme-bot stop"))]).result(5)
    inbox.process()
    assert [command.kind for command in store.commands.new()] == ["stop"]


def test_a_delivery_becomes_refreshes_once(store: Store, inbox: Inbox) -> None:
    inbox.accept([delivery("a", "issues", labelled())]).result(5)
    assert inbox.process() == 1
    assert refreshed(store) == [("acme/widgets", "issue:12")]
    assert inbox.process() == 0
    assert inbox.accept([delivery("a", "issues", labelled())]).result(5) == [
        DeliveryOutcome.DUPLICATE
    ]
    assert inbox.process() == 0


def test_a_repository_is_known_in_any_case_and_named_as_configured(
    store: Store, inbox: Inbox
) -> None:
    inbox.accept([delivery("a", "issues", labelled("ACME/Widgets"))]).result(5)
    inbox.process()
    assert refreshed(store) == [("acme/widgets", "issue:12")]


@pytest.mark.parametrize(
    ("event", "body"),
    [
        ("issues", labelled("other/repository")),
        ("deployment", b"\x00 not even JSON"),
        ("ping", {"zen": "Keep it logically awesome."}),
    ],
)
def test_unknown_events_and_repositories_have_no_effect(
    store: Store, inbox: Inbox, event: str, body: bytes | dict[str, Any]
) -> None:
    inbox.accept([delivery("a", event, body)]).result(5)
    assert inbox.process() == 1
    assert store.deliveries.waiting() == []
    assert refreshed(store) == []
    assert inbox.accept([delivery("a", event, body)]).result(5) == [DeliveryOutcome.DUPLICATE]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"action": "labe', "DecodeError: "),
        (b'{"action": "labeled"}', "ValidationError: "),
        (b'{"x":' + b"[" * 100_000, "RecursionError: "),
    ],
)
def test_a_malformed_delivery_stops_no_other(
    store: Store, inbox: Inbox, body: bytes, reason: str
) -> None:
    inbox.accept([delivery("bad", "issues", body)]).result(5)
    inbox.accept([delivery("good", "issues", labelled())]).result(5)
    assert inbox.process() == 2
    assert refreshed(store) == [("acme/widgets", "issue:12")]
    assert failure(store, "bad").startswith(reason)


def test_a_failed_delivery_is_processed_again_when_it_is_redelivered(
    store: Store, inbox: Inbox
) -> None:
    broken = delivery("a", "issues", b"{")
    inbox.accept([broken]).result(5)
    inbox.process()
    assert inbox.process() == 0
    assert inbox.accept([broken]).result(5) == [DeliveryOutcome.RETRIED]
    assert inbox.process() == 1


def test_a_command_becomes_a_command_of_its_author(store: Store, inbox: Inbox) -> None:
    inbox.accept([delivery("a", "issue_comment", comment("/mergewright stop"))]).result(5)
    inbox.process()
    assert store.commands.new() == [
        NewCommand(
            key="comment:99",
            repository="acme/widgets",
            number=12,
            kind="stop",
            actor="mara",
            at=NOW,
            comment=99,
        )
    ]
    assert refreshed(store) == [("acme/widgets", "issue:12")]


def test_each_line_is_a_command_with_a_key_of_its_own(store: Store, inbox: Inbox) -> None:
    text = "/mergewright merge\n/mergewright frobnicate"
    inbox.accept([delivery("a", "issue_comment", comment(text))]).result(5)
    inbox.process()
    commands = store.commands.new()
    assert [(command.key, command.kind) for command in commands] == [
        ("comment:99", "merge"),
        ("comment:99:1", "help"),
    ]
    assert "There is no command `frobnicate`" in commands[1].text


def test_a_comment_and_a_review_with_one_id_are_two_commands(store: Store, inbox: Inbox) -> None:
    comment_text = comment("/mergewright status")
    review = comment_text | {"pull_request": {"number": 34}, "action": "submitted"}
    review |= {"review": comment_text["comment"] | {"submitted_at": "2026-11-20T10:00:00Z"}}
    inbox.accept([delivery("a", "issue_comment", comment_text)]).result(5)
    inbox.accept([delivery("b", "pull_request_review", review)]).result(5)
    inbox.process()
    found = [(command.key, command.number, command.comment) for command in store.commands.new()]
    assert found == [("comment:99", 12, 99), ("review:99", 34, None)]


def test_a_replayed_comment_is_one_command(store: Store, inbox: Inbox) -> None:
    for name in ("a", "replayed"):
        inbox.accept([delivery(name, "issue_comment", comment("/mergewright stop"))]).result(5)
    assert inbox.process() == 2
    assert len(store.commands.new()) == 1


def test_a_bots_comment_gives_no_command(store: Store, inbox: Inbox) -> None:
    inbox.accept([delivery("a", "issue_comment", comment("/mergewright stop", "Bot"))]).result(5)
    inbox.process()
    assert store.commands.new() == []
    assert refreshed(store) == [("acme/widgets", "issue:12")]


def test_a_login_with_a_colon_is_refused(store: Store, inbox: Inbox) -> None:
    """An account whose login has a colon would count as a local user, who needs no permission."""
    forged = comment("/mergewright stop")
    forged["comment"]["user"]["login"] = "api:client"
    inbox.accept([delivery("a", "issue_comment", forged)]).result()
    inbox.process()
    assert store.commands.new() == []
    assert "user.login" in failure(store, "a")


def test_a_comment_in_another_repository_gives_no_command(store: Store, inbox: Inbox) -> None:
    body = comment("/mergewright stop") | {"repository": {"id": 2, "full_name": "other/one"}}
    inbox.accept([delivery("a", "issue_comment", body)]).result(5)
    inbox.process()
    assert store.commands.new() == []


def test_an_impossible_issue_number_stops_no_other_delivery(inbox: Inbox, store: Store) -> None:
    huge = comment("/mergewright stop", number=10**30)
    both = [delivery("a", "issue_comment", huge), delivery("b", "issues", labelled())]
    inbox.accept(both).result(5)
    assert inbox.process() == 2
    assert refreshed(store) == [("acme/widgets", "issue:12")]
    assert "ValidationError" in failure(store, "a")


def test_a_change_of_access_refreshes_every_repository(store: Store, inbox: Inbox) -> None:
    inbox.accept([delivery("a", "installation", {"action": "suspend"})]).result(5)
    inbox.process()
    due = store.refreshes.due(datetime.now(UTC), (ACCESS,))
    assert [refresh.repository for refresh in due] == ["acme/widgets"]


def commanded(inbox: Inbox, body: dict[str, Any]) -> list[str]:
    return [
        command.kind for command in inbox.interpret("issue_comment", json.dumps(body).encode())[1]
    ]


def test_a_bots_command_counts_only_where_it_is_listed(store: Store, inbox: Inbox) -> None:
    robot = comment("/mergewright pause", type="Bot")
    robot["comment"]["user"]["login"] = "Ci-Bot[bot]"
    assert commanded(inbox, robot) == []
    policies = Policies(store, {}, Policy(bots=("ci-bot",)))
    listing = Inbox(store, frozenset({"acme/widgets"}), lambda: None, policies.is_listed)
    assert commanded(listing, robot) == ["pause"]


@pytest.mark.parametrize(
    ("entry", "counts"), [("ci-bot[bot]", True), ("CI-Bot[bot]", True), ("ci-bot", False)]
)
def test_the_people_of_a_project_may_be_bots(store: Store, entry: str, counts: bool) -> None:
    """An entry without the suffix `[bot]` is a person's login."""
    robot = comment("/mergewright pause", type="Bot")
    robot["comment"]["user"]["login"] = "Ci-Bot[bot]"
    project = ProjectSettings(repository="acme/widgets", people=(entry,))
    policies = Policies(store, {"widgets": project}, Policy())
    listing = Inbox(store, ["acme/widgets"], lambda: None, policies.is_listed)
    assert commanded(listing, robot) == ["pause"] * counts


def test_a_comment_with_the_bots_marker_gives_no_command(
    inbox: Inbox,
) -> None:
    assert OWN_MARKER in marker("comment:started")
    copied = f"/mergewright stop\n\n{marker('comment:started')}"
    assert commanded(inbox, comment(copied)) == []
    assert commanded(inbox, comment("/mergewright stop")) == ["stop"]


@pytest.mark.parametrize(("action", "kinds"), [("opened", ["start"]), ("edited", [])])
def test_a_new_issues_text_may_give_commands_and_an_edit_may_not(
    inbox: Inbox, action: str, kinds: list[str]
) -> None:
    issue = {
        "number": 12,
        "created_at": "2026-11-20T10:00:00Z",
        "body": "It breaks.\n\n@mergewright",
        "user": {"login": "mara", "type": "User"},
    }
    body = {"action": action, "issue": issue, "repository": REPOSITORY}
    _, commands = inbox.interpret("issues", json.dumps(body).encode())
    assert [command.kind for command in commands] == kinds
    for command in commands:
        assert (command.key, command.comment, command.actor) == (
            "issue:acme/widgets#12",
            None,
            "mara",
        )


@pytest.mark.parametrize(
    ("author", "sender", "body", "looked_at"),
    [
        pytest.param("wright", "wright", OUR_REPORT, False, id="our report"),
        pytest.param("wright", "ada", OUR_REPORT, True, id="ours, changed by a person"),
        pytest.param("ada", "ada", OUR_REPORT, True, id="a copy of ours"),
        pytest.param("wright", "wright", "As I said.", True, id="by a person with our account"),
    ],
)
@pytest.mark.parametrize("action", ["created", "edited"])
def test_a_comment_of_the_bots_own_leads_to_no_refresh(
    store: Store, author: str, sender: str, body: str, looked_at: bool, action: str
) -> None:
    if action == "created" and author != sender:
        pytest.skip("Nobody writes a comment as somebody else.")
    inbox = Inbox(store, frozenset({"acme/widgets"}), lambda: None, is_me=lambda it: it == "wright")
    edited = {**comment(body), "action": action, "sender": {"login": sender, "type": "User"}}
    edited["comment"]["user"]["login"] = author
    inbox.accept([delivery("a", "issue_comment", edited)]).result(5)
    inbox.process()
    assert refreshed(store) == ([("acme/widgets", "issue:12")] if looked_at else [])
