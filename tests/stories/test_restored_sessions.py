"""Restored sessions and retried actions."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from lifecycle.model import keys
from lifecycle.model.key import Key, KeyKind, parse
from tests.world.waiting import eventually
from tests.world.world import ALICE, MALLORY, IssueStory, World


def stopped(world: World) -> IssueStory:
    """A session a person stopped after its first commit."""
    issue = world.agent_starts()
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget")
    eventually(lambda: _committed(issue), "its commit is seen")
    issue.issue.comment("/mergewright stop", by=ALICE)
    issue.becomes("killed")
    eventually(
        lambda: parse("stop#1") in world.store.facts.get(issue.id).done, "its program is ended"
    )
    return issue


def _committed(issue: IssueStory) -> bool:
    session = issue.session
    return session is not None and session.work.head != session.work.base


def test_adding_the_label_again_restores_a_stopped_session(world: World) -> None:
    issue = stopped(world)
    world.waits_for_the_next_second()
    issue.issue.unlabel("mergewright", by=ALICE)
    issue.is_labelled()
    assert issue.agent.resumes()["run"] == 2
    issue.agent.ends_its_turn()
    assert issue.pull.pull.title == "Add a widget"
    assert len(issue.comments_by()) == 3


def test_an_outsider_cannot_restore_a_session(world: World) -> None:
    issue = stopped(world)
    world.repo.permission(MALLORY, "triage")
    world.waits_for_the_next_second()
    issue.issue.unlabel("mergewright", by=ALICE)
    issue.is_labelled(by=MALLORY)
    other = world.issue("Other").is_labelled()
    other.agent.starts()
    session = issue.session
    assert session is not None
    assert session.status == "killed"


def test_adding_the_label_again_retries_a_failed_start(world: World) -> None:
    path = Path(world.repo.git.path)
    world.bot_starts()
    path.rename(path.with_suffix(".away"))
    issue = world.issue("Add widgets").is_labelled()
    issue.becomes("errored")
    path.with_suffix(".away").rename(path)
    world.waits_for_the_next_second()
    issue.issue.unlabel("mergewright", by=ALICE)
    issue.is_labelled()
    assert issue.agent.starts()["run"] == 1


def test_the_retry_command_retries_failed_actions(world: World) -> None:
    issue = world.agent_starts()
    world.github.fail_next("POST", r"/pulls$", status=403)
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    issue.becomes("needs_input")
    issue.issue.comment("/mergewright retry", by=ALICE)
    assert issue.pull


def test_a_push_observed_before_it_was_marked_done_counts_as_the_bots(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.bot_starts()
    issue = world.issue("Add widgets").is_labelled()
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn()
    pull = issue.pull.ci_passes().reviewer_asks_for("a second widget")
    issue.agent.receives("a second widget")
    store, unmarked = world.store, list[Key]()
    mark = store.outbox.mark_done

    def crashes(seq: int, result: str, now: datetime, **learned: Any) -> None:
        (key,) = (one.key for one in store.outbox.of(issue.id) if one.seq == seq)
        if key.kind is KeyKind.PUSH and not unmarked:
            unmarked.append(key)
            eventually(lambda: _seen(issue) == pull.pull.head, "the pushed head is seen")
            raise OSError("as if the bot had died here")
        mark(seq, result, now, **learned)

    monkeypatch.setattr(store.outbox, "mark_done", crashes)
    issue.agent.commits({"widgets.txt": "two\n"}, "Add another").ends_its_turn()
    pull.has_comment("read this conversation and then pushed")
    assert unmarked == [keys.push(pull.pull.head)]
    assert unmarked[0] in store.facts.get(issue.id).done


def _seen(issue: IssueStory) -> str:
    """The head of its pull request, as last read."""
    session = issue.session
    return session.pulls[0].head if session and session.pulls else ""
