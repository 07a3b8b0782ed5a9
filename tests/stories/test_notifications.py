"""People are notified by other ways than comments, and no receiver holds up a session."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from bot.notify import notifier
from bot.system.log import NOISY
from tests.stories.test_secrets import kept, shown
from tests.world.notification_receivers import HttpReceiver, http_receiver
from tests.world.waiting import eventually
from tests.world.world import ALICE, World

TOKEN, KEY = "t0ken-of-the-receiver", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def receiver(world: World) -> Iterator[HttpReceiver]:
    """The receiver of a webhook that the bot is configured with."""
    with http_receiver() as receiver:
        world.notifiers = (
            '[notify.team]\nkind = "webhook"\nurl = "TEAM_URL"\nsecret = "TEAM_SECRET"\n'
        )
        secrets = {"TEAM_URL": f"{receiver.url}/{TOKEN}", "TEAM_SECRET": KEY}
        world.secrets = replace(world.secrets, notifiers=secrets)
        yield receiver


def events(receiver: HttpReceiver, type: str) -> list[dict[str, Any]]:
    """What a receiver got of one type."""
    got = [request.json for request in receiver.requests]
    return [one["data"] for one in got if one["type"] == type]


def test_a_question_can_be_answered_from_its_notification(
    world: World, receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier, "_GONE_SECONDS", 0)
    issue = world.agent_starts()
    issue.agent.asks("Which colour? (Blue / Green)")
    eventually(lambda: events(receiver, "session.needs_person"), "the notification")
    (asked,) = events(receiver, "session.needs_person")
    assert asked["choices"] == ["Blue", "Green"]
    assert asked["session"] == issue.id
    bearer = {"authorization": "Bearer the page's token"}
    page = httpx.get(asked["url"], headers=bearer).raise_for_status().text
    for choice in asked["choices"]:
        assert f'<button name="text" value="{choice}">' in page
    assert '<textarea id="text"' in page

    issue.issue.comment("/mergewright answer Blue", by=ALICE)
    issue.agent.receives("Blue")
    eventually(lambda: events(receiver, "session.resolved"), "it is resolved")
    issue.agent.commits({"widgets.txt": "blue\n"}, "Make it blue").ends_its_turn()
    issue.pull.ci_passes("unit").reviewer_approves()
    issue.becomes("merged")
    (ended,) = eventually(lambda: events(receiver, "session.ended"), "its end")
    assert ended["status"] == "merged"
    assert len(receiver.requests) == 3


def test_a_receiver_that_hangs_holds_up_no_session_and_nothing_shows_its_url(
    world: World,
    receiver: HttpReceiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for library, level in NOISY.items():
        caplog.set_level(level, library)
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(notifier, "_INCIDENT_SECONDS", 0)
    receiver.answers.clear()
    issue = world.agent_starts()
    issue.agent.asks("Which colour?")
    eventually(receiver.asked.is_set, "the request")
    issue.issue.comment("/mergewright answer Blue", by=ALICE)
    issue.agent.receives("Blue")
    issue.agent.commits({"widgets.txt": "blue\n"}, "Make it blue").ends_its_turn()
    issue.pull.ci_passes("unit").reviewer_approves()
    issue.becomes("merged")
    assert receiver.requests == []
    receiver.status = 503
    receiver.answers.set()
    incident = eventually(
        lambda: [one.text for one in world.store.incidents.current()], "the incident"
    )
    assert "the receiver answers 503" in incident[0]
    texts = {
        "log": "\n".join(record.getMessage() for record in caplog.records),
        "notifications": json.dumps([one.message for one in world.store.notifications.raised()]),
        **dict(shown(world, issue)),
        **dict(kept(world)),
    }
    assert [
        (where, one) for where, text in texts.items() for one in (TOKEN, KEY) if one in text
    ] == []
    receiver.status = 200
    eventually(lambda: events(receiver, "session.ended"), "its end")
