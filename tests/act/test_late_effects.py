"""A new leader removes late effects of the former leader until the former one has ended."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from msgspec.structs import replace

from bot.act.late_effects import LateEffects
from bot.act.results import Completed, RetryLater
from bot.github.errors import TryLater
from bot.store import SessionDecision
from lifecycle.model import actions, keys
from lifecycle.model.actions import Action
from lifecycle.model.facts import Ended
from lifecycle.model.key import parse
from lifecycle.model.status import Reason, Status

WORKING = actions.ShowStatus(key=parse("show_status:12:0:a"), number=12, status=Status.WORKING)
MERGED = actions.ShowStatus(key=parse("show_status:12:1:b"), number=12, status=Status.MERGED)
COMMENT = actions.Comment(key=keys.ready_to_merge("a"), number=34, topic="ready")
REPLY = actions.Reply(key=parse("reply:a"), number=34, threads=("T1", "T2"), topic="done_in")
CHECKS = [
    actions.ReportCheck(
        key=parse(f"report_check:a:{edits}:x"),
        head="a",
        check=7,
        summary=actions.StatusSummary(session="", agent="", branch="", status=status, because=""),
    )
    for edits, status in enumerate((Status.WORKING, Status.MERGED))
]
PUSH = actions.Publish(key=keys.push("a" * 40), head="a" * 40)
DELETION = actions.DeleteBranch(
    key=keys.delete_branch("mergewright/12-it-breaks"), branch="mergewright/12-it-breaks", sha="a"
)


class Late:
    """A bot that replaces the leader while the actions `due` of a session are due."""

    def __init__(self, scenario: Any, *due: Action) -> None:
        self.store, self.clock = scenario.store, scenario.clock
        self.id: str = scenario.session()
        scenario.orders(self.id, *due, run=1)
        self.running, self.leads = {"former", "second"}, True
        self.dispatcher = MagicMock()
        self.dispatcher.locations.projects = {"widgets": SimpleNamespace(home="acme/widgets")}
        self.leader_is("former")
        self.leader_is("second")

    def leader_is(self, name: str) -> None:
        """Replace the leader, whose lease has run out."""
        assert self.store.lease.acquire(name, self.clock(), 0.0)
        self.effects = LateEffects(
            *(self.store.outbox, self.store.sessions, self.store.facts, self.dispatcher),
            *(self.running.__contains__, lambda: self.leads, self.clock),
        )

    @property
    def github(self) -> Any:
        return self.dispatcher.github

    def is_merged(self) -> None:
        """End the session."""
        (loaded,) = self.store.facts.load([self.id])
        status, reason, because = Status.MERGED, Reason.PR_MERGED, "it was merged"
        decided = SessionDecision(
            status=status,
            reason=reason,
            because=because,
            run=1,
            ended=Ended(status=status, reason=reason, because=because, at=self.clock()),
        )
        self.store.decisions.record([(loaded, decided)], self.clock())[0].result()

    def does_all(self) -> None:
        """Mark all actions of the session as done."""
        for entry in self.store.outbox.of(self.id):
            self.store.outbox.mark_done(entry.seq, "", self.clock())


def test_duplicates_of_comments_and_replies_are_removed_by_their_keys(scenario: Any) -> None:
    late = Late(scenario, COMMENT, REPLY)
    late.does_all()
    late.effects.remove()
    late.github.write.remove_duplicates.assert_called_once_with(
        "acme/widgets", 34, keys.marker(late.id, COMMENT.key)
    )
    late.github.reviews.remove_duplicates.assert_called_once_with(
        "acme/widgets", 34, ("T1", "T2"), keys.marker(late.id, REPLY.key)
    )


def test_an_older_state_is_replaced_by_the_newest(scenario: Any) -> None:
    late = Late(scenario, WORKING)
    late.does_all()
    late.effects.remove()
    late.dispatcher.do.assert_not_called()
    scenario.orders(late.id, MERGED, run=1)
    late.does_all()
    late.effects.remove()
    ((due, _),) = [call.args for call in late.dispatcher.do.call_args_list]
    assert due.action == MERGED


def test_the_check_run_that_came_last_gets_the_newest_state(scenario: Any) -> None:
    late = Late(scenario, *CHECKS)
    late.does_all()
    late.effects.remove()
    ((due, _),) = [call.args for call in late.dispatcher.do.call_args_list]
    assert due.action == replace(CHECKS[1], check=None)


def test_a_branch_that_is_pushed_again_is_deleted_only_after_its_deletion(scenario: Any) -> None:
    late = Late(scenario, PUSH, DELETION)
    late.effects.remove()
    late.github.write.delete_branch.assert_not_called()
    late.does_all()
    late.is_merged()
    late.effects.remove()
    late.github.write.delete_branch.assert_called_once_with(
        "acme/widgets", "mergewright/12-it-breaks", "a" * 40
    )


def looks(late: Late, times: int) -> int:
    late.github.write.remove_duplicates.reset_mock()
    for _ in range(times):
        late.effects.remove()
    count: int = late.github.write.remove_duplicates.call_count
    return count


def test_a_leader_looks_until_the_former_one_has_ended_and_twice_after(scenario: Any) -> None:
    late = Late(scenario, COMMENT)
    assert looks(late, 5) == 5
    late.running.clear()
    assert looks(late, 5) == 2


def test_a_leader_that_replaces_the_next_one_looks_too(scenario: Any) -> None:
    late = Late(scenario, COMMENT)
    late.does_all()
    late.leader_is("third")
    assert looks(late, 5) == 5
    late.running.remove("former")
    assert looks(late, 5) == 2


def test_a_failed_look_is_repeated(scenario: Any) -> None:
    late = Late(scenario, COMMENT)
    late.running.clear()
    late.github.write.remove_duplicates.side_effect = TryLater("GitHub cannot be reached")
    assert looks(late, 5) == 5
    late.github.write.remove_duplicates.side_effect = None
    assert looks(late, 5) == 2


def test_a_state_that_could_not_be_shown_again_is_tried_again(scenario: Any) -> None:
    late = Late(scenario, WORKING)
    late.does_all()
    scenario.orders(late.id, MERGED, run=1)
    late.does_all()
    late.running.clear()
    late.dispatcher.do.return_value = RetryLater("GitHub cannot be reached")
    assert looks(late, 5) == 0
    assert late.dispatcher.do.call_count == 5
    late.dispatcher.do.return_value = Completed()
    assert looks(late, 5) == 0
    assert late.dispatcher.do.call_count == 5 + 2


def test_a_former_leader_whose_end_cannot_be_seen_is_expected_for_a_day(scenario: Any) -> None:
    late = Late(scenario, COMMENT)
    scenario.clock.passes(86_401)
    assert looks(late, 5) == 2


@pytest.mark.parametrize("due", [(), (COMMENT,)])
def test_a_bot_that_does_not_lead_or_took_over_nothing_removes_nothing(
    scenario: Any, due: tuple[Action, ...]
) -> None:
    late = Late(scenario, *due)
    late.leads = False
    assert looks(late, 3) == 0
