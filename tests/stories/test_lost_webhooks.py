"""Lost webhooks cost time, never a stuck session."""

from unittest.mock import Mock

import httpx
import pytest

from bot.store import OutboxEntry
from lifecycle.model.key import parse
from runtimes.tmux import Tmux
from tests.world.waiting import eventually
from tests.world.world import ALICE, IssueStory, World


def test_resync_finds_every_change_while_all_webhooks_are_lost(world: World) -> None:
    world.bot_starts(resync_seconds=0.5)
    issue = world.issue("Add widgets")
    world.github.lose_next(1000)
    issue.is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
    pull = issue.pull.ci_fails("unit", log="it broke without a webhook")
    world.time_passes(minutes=10)
    issue.agent.receives("it broke without a webhook")
    pull.reviewer_asks_for("another test")
    world.time_passes(minutes=10)
    issue.agent.commits({"widgets.txt": "two\n"}).ends_its_turn()
    issue.agent.receives("another test")
    issue.issue.unlabel("mergewright", by=ALICE)
    issue.becomes("terminated")


def test_a_bot_without_webhooks_polls_for_changes(world: World) -> None:
    world.github.lose_next(1000)
    world.bot_starts(resync_seconds=0.5, events="polling")
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
    pull = issue.pull
    issue.becomes("review_pending")
    pull.ci_fails("unit", log="it broke without a webhook")
    issue.agent.receives("it broke without a webhook")
    issue.issue.comment("/mergewright stop", by=ALICE)
    issue.becomes("killed")


def test_changes_during_downtime_are_found_at_the_next_start(world: World) -> None:
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
    pull = issue.pull
    issue.becomes("review_pending")
    world.bot_stops()
    pull.ci_fails("unit", log="it broke during the downtime")
    world.bot_starts()
    issue.agent.receives("it broke during the downtime")
    assert len(world.repo.pulls) == 1
    assert [entry["run"] for entry in issue.agent.received] == [1, 1]


def test_agents_are_observed_before_they_are_judged_after_downtime(world: World) -> None:
    issue = world.agent_starts()
    issue.becomes("working")
    world.bot_stops()
    issue.agent.asks("Which colour?")
    orders = world.agent_folders / issue.id / "done"
    eventually(orders.exists, "it asks during the downtime")
    world.time_passes(minutes=20)
    world.bot_starts()
    issue.becomes("needs_input")
    eventually(lambda: "Which colour?" in "".join(issue.comments_by()), "the question is posted")
    assert "no progress" not in "".join(issue.comments_by())


def test_downtime_does_not_count_against_the_start_timeout(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.bot_starts()
    with monkeypatch.context() as broken:
        broken.setattr(Tmux, "start", Mock(side_effect=OSError("no space left")))
        issue = world.issue("Add widgets").is_labelled()
        eventually(lambda: [one.attempts for one in _outbox(issue) if one.attempts], "it was tried")
        world.bot_stops()
    world.time_passes(minutes=20)
    world.bot_starts()
    assert issue.agent.starts()["run"] == 1
    issue.becomes("working")


def _outbox(issue: IssueStory) -> list[OutboxEntry]:
    starts = issue.world.store.outbox.of(issue.id) if issue.session else []
    return [one for one in starts if one.key == parse("start:first#1")]


def test_lost_commands_are_redelivered_and_carried_out(
    world: World,
) -> None:
    world.has_an_app()
    issue = world.agent_starts()
    world.bot_stops()
    before = len(world.github.deliveries)
    issue.issue.comment("/mergewright pause", by=ALICE)
    lost = world.github.deliveries[before:]
    eventually(lambda: all(one.status_code for one in lost), "every delivery failed")
    world.time_passes(minutes=10)
    world.bot_starts()
    issue.becomes("paused")


def test_a_redelivered_webhook_has_no_second_effect(world: World) -> None:
    issue = world.agent_starts()
    eventually(issue.comments_by, "the start is reported")
    for delivery in [d for d in world.github.deliveries if d.event == "issues"]:
        again = world.github.redeliver(delivery.id)
        eventually(lambda again=again: again.status_code, "an answer")  # type: ignore[misc]
        assert again.status_code == 200
    assert len(world.store.sessions.all()) == 1
    assert len(issue.comments_by()) == 1


def test_a_replayed_body_under_a_new_delivery_id_changes_nothing(world: World) -> None:
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
    comment = issue.pull.pull.comment("/mergewright help", by=ALICE)
    issue.pull.has_comment("Write a command at the start of a line")
    for number, delivery in enumerate(list(world.github.deliveries)):
        headers = {**delivery.headers, "X-GitHub-Delivery": f"replay-{number}"}
        url = f"http://127.0.0.1:{world.port}/webhooks/github"
        answer = httpx.post(url, content=delivery.body, headers=headers)
        assert answer.status_code == 202
    eventually(lambda: not world.store.deliveries.waiting(), "all are read")
    issue.pull.pull.comment("Please write two.", by=ALICE)
    issue.agent.receives("Please write two.")
    assert (
        sum(
            "Write a command at the start of a line" in posted
            for posted in issue.pull.comments_by()
        )
        == 1
    )
    assert len(comment.reactions) == 1
    assert len(world.repo.pulls) == 1
