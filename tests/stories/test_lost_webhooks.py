"""Webhooks are hints: what they would have said is found all the same."""

from unittest.mock import Mock

import httpx
import pytest

from bot.store import OutboxEntry
from runtimes.tmux import Tmux
from tests.world.waiting import eventually
from tests.world.world import ALICE, IssueStory, World


def test_while_every_webhook_is_lost_resync_finds_what_happened(world: World) -> None:
    world.bot_starts(resync_seconds=0.5)
    issue = world.issue("Add widgets")
    world.github.lose_next(1000)
    issue.is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
    pull = issue.pull.ci_fails("unit", log="it broke and nobody told")
    world.time_passes(minutes=10)
    issue.agent.hears("it broke and nobody told")
    pull.reviewer_asks_for("another test")
    world.time_passes(minutes=10)
    issue.agent.commits({"widgets.txt": "two\n"}).ends_its_turn()
    issue.agent.hears("another test")
    issue.issue.unlabel("mergewright", by=ALICE)
    issue.becomes("terminated")


def test_a_bot_that_github_cannot_reach_asks_for_what_happened(world: World) -> None:
    world.github.lose_next(1000)
    world.bot_starts(resync_seconds=0.5, events="polling")
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
    pull = issue.pull
    issue.becomes("review_pending")
    pull.ci_fails("unit", log="it broke and nobody told")
    issue.agent.hears("it broke and nobody told")
    issue.issue.comment("/mergewright stop", by=ALICE)
    issue.becomes("killed")


def test_what_happened_while_the_bot_was_away_is_found_when_it_comes_back(world: World) -> None:
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
    pull = issue.pull
    issue.becomes("review_pending")
    world.bot_stops()
    pull.ci_fails("unit", log="it broke while nobody looked")
    world.bot_starts()
    issue.agent.hears("it broke while nobody looked")
    assert len(world.repo.pulls) == 1
    assert [entry["run"] for entry in issue.agent.heard] == [1, 1]


def test_after_an_absence_agents_are_looked_at_before_they_are_judged(world: World) -> None:
    issue = world.agent_begins()
    issue.becomes("working")
    world.bot_stops()
    issue.agent.asks("Which colour?")
    orders = world.puppets / issue.id / "done"
    eventually(orders.exists, "it asks while nobody looks")
    world.time_passes(minutes=20)
    world.bot_starts()
    issue.becomes("needs_input")
    eventually(lambda: "Which colour?" in "".join(issue.said()), "the question is told")
    assert "no progress" not in "".join(issue.said())


def test_a_start_that_was_due_while_no_bot_ran_has_not_used_up_its_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.bot_starts()
    with monkeypatch.context() as broken:
        broken.setattr(Tmux, "start", Mock(side_effect=OSError("no room")))
        issue = world.issue("Add widgets").is_labelled()
        eventually(lambda: [one.attempts for one in _outbox(issue) if one.attempts], "it was tried")
        world.bot_stops()
    world.time_passes(minutes=20)
    world.bot_starts()
    assert issue.agent.starts()["run"] == 1
    issue.becomes("working")


def _outbox(issue: IssueStory) -> list[OutboxEntry]:
    starts = issue.world.store.outbox.of(issue.id) if issue.session else []
    return [one for one in starts if one.key == "start:first:r1"]


def test_what_people_asked_for_while_webhooks_were_lost_is_sent_again_and_done(
    world: World,
) -> None:
    world.has_an_app()
    issue = world.agent_begins()
    world.bot_stops()
    before = len(world.github.deliveries)
    issue.issue.comment("/mergewright pause", by=ALICE)
    lost = world.github.deliveries[before:]
    eventually(lambda: all(one.status_code for one in lost), "nobody answered")
    world.time_passes(minutes=10)
    world.bot_starts()
    issue.becomes("paused")


def test_a_delivery_that_is_sent_again_is_not_done_again(world: World) -> None:
    issue = world.agent_begins()
    eventually(issue.said, "the start is told")
    for delivery in [d for d in world.github.deliveries if d.event == "issues"]:
        again = world.github.redeliver(delivery.id)
        eventually(lambda again=again: again.status_code, "an answer")  # type: ignore[misc]
        assert again.status_code == 200
    assert len(world.store.sessions.all()) == 1
    assert len(issue.said()) == 1


def test_a_replayed_body_under_a_new_delivery_id_changes_nothing(world: World) -> None:
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
    comment = issue.pull.pull.comment("/mergewright help", by=ALICE)
    issue.pull.is_answered("Write a command at the start of a line")
    for number, delivery in enumerate(list(world.github.deliveries)):
        headers = {**delivery.headers, "X-GitHub-Delivery": f"replay-{number}"}
        url = f"http://127.0.0.1:{world.port}/webhooks/github"
        answer = httpx.post(url, content=delivery.body, headers=headers)
        assert answer.status_code == 202
    eventually(lambda: not world.store.deliveries.waiting(), "all are read")
    issue.pull.pull.comment("Please write two.", by=ALICE)
    issue.agent.hears("Please write two.")
    assert sum("Write a command at the start of a line" in said for said in issue.pull.said()) == 1
    assert len(comment.reactions) == 1
    assert len(world.repo.pulls) == 1
