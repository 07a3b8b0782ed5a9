"""When and how something is merged: by whose word, at once or by GitHub's queue, and once."""

from typing import Any

import pytest

from lifecycle.model import actions as do
from lifecycle.model.facts import Dequeued, Facts
from lifecycle.model.key import parse
from lifecycle.model.policy import AutoMerge, MergeMethod, Mode
from lifecycle.model.status import CheckState, Merge, Reason, Status
from tests.lifecycle.asking import READY, asked, decision, deeds, keys, of
from tests.lifecycle.life import until_reviewed
from tests.lifecycle.test_commands import answers
from tests.lifecycle.universe import HEAD, NEXT, ago, approval, check, command, done, in_key

ASKED = command("merge", head=HEAD)
CANCEL = command("cancel", at=ago(5))
ASKED_AGAIN = command("merge", head=HEAD, at=ago(1))
RED = check(CheckState.FAILED, "queue's", required=True, log="boom")
OUT = Dequeued(at=ago(60), reason="manual")
AGAIN = f"merge:{HEAD}:{in_key(OUT.at)}"
QUEUED = done(f"merge:{HEAD}", seconds_ago=120)


def ready(*commands: Any, **given: Any) -> Facts:
    return of({**READY, **given}, commands=commands)


def dequeued(*checks: Any, **given: Any) -> Facts:
    """Ready, queued by us two minutes ago, and put out by the queue one minute ago."""
    out = Dequeued(at=OUT.at, reason="failed_checks" if checks else "manual", checks=checks)
    pulls = {**READY, "queue": True, "dequeued": out, **given.pop("pulls", {})}
    return of(pulls, **{"done": QUEUED, **given})


def lands(given: Facts, **policy: Any) -> list[do.MergePull | do.Enqueue]:
    merger = (do.MergePull, do.Enqueue)
    return [action for action in asked(given, **policy) if isinstance(action, merger)]


@pytest.mark.parametrize(
    ("mode", "auto", "commands", "merges"),
    [
        (Mode.MERGE, AutoMerge.WHEN_APPROVED, (), True),
        (Mode.MERGE, AutoMerge.ON_COMMAND, (), False),
        (Mode.MERGE, AutoMerge.ON_COMMAND, (ASKED,), True),
        (Mode.MERGE, AutoMerge.OFF, (), False),
        (Mode.MERGE, AutoMerge.OFF, (ASKED,), False),
        (Mode.PROPOSE, AutoMerge.WHEN_APPROVED, (), False),
        (Mode.PROPOSE, AutoMerge.WHEN_APPROVED, (ASKED,), True),
        (Mode.PROPOSE, AutoMerge.OFF, (ASKED,), False),
    ],
)
def test_the_stricter_of_mode_and_auto_merge_applies(
    mode: Mode, auto: AutoMerge, commands: tuple[Any, ...], merges: bool
) -> None:
    assert bool(lands(ready(*commands), mode=mode, auto_merge=auto)) is merges


def test_with_auto_merge_off_people_are_asked_to_merge_by_hand() -> None:
    (comment,) = asked(ready(), auto_merge=AutoMerge.OFF)
    assert isinstance(comment, do.Comment)
    assert comment.topic == "ready_by_hand"
    said = answers(decision(ready(ASKED), auto_merge=AutoMerge.OFF))
    assert said["command_refused:comment-merge"].startswith("The configuration turns merging off")


def test_a_merge_command_from_before_auto_merge_was_turned_off_merges_nothing() -> None:
    applied = of(READY, commands=(ASKED,), done=done("command_applied:comment-merge"))
    assert lands(applied)
    assert lands(applied, auto_merge=AutoMerge.OFF) == []


@pytest.mark.parametrize("queue", [False, True])
def test_a_merge_names_its_requester_unless_policy_merges(queue: bool) -> None:
    given = of({**READY, "queue": queue}, commands=(ASKED,))
    assert [action.by for action in lands(given)] == [ASKED.actor]
    assert [action.by for action in lands(given, mode=Mode.MERGE)] == [""]


def test_a_merge_method_named_in_a_command_is_marked_as_requested() -> None:
    (merge,) = lands(ready(command("merge", head=HEAD, text="rebase")))
    assert isinstance(merge, do.MergePull)
    assert (merge.method, merge.asked) == (MergeMethod.REBASE, True)


def test_with_a_merge_queue_the_judged_commit_is_enqueued() -> None:
    assert lands(ready(queue=True), mode=Mode.MERGE) == [
        do.Enqueue(key=parse(f"merge:{HEAD}"), number=34, sha=HEAD)
    ]


def test_a_queued_pull_request_waits_and_lists_the_queue_as_its_blocker() -> None:
    found = decision(of({**READY, "queue": True, "merge": Merge.QUEUED}, done=QUEUED))
    assert found.status is Status.APPROVED
    assert found.blockers == ("queued: it is in GitHub's merge queue",)
    assert deeds(found) == []


def test_checks_that_failed_in_the_merge_queue_go_to_the_agent() -> None:
    given = dequeued(RED)
    found = decision(given, mode=Mode.MERGE)
    assert (found.status, found.blockers[0]) == (
        Status.CI_FAILED,
        "ci_failing: failing checks: queue's",
    )
    (told,) = asked(given, mode=Mode.MERGE)
    assert isinstance(told, do.SendMessage)
    assert told.prompt.items[0]["log"] == "boom"


def test_a_flaky_check_that_failed_in_the_merge_queue_is_not_rerun() -> None:
    flaky = check(CheckState.FAILED, "queue's", required=True, flaky=True, run_id=8)
    (told,) = asked(dequeued(flaky), mode=Mode.MERGE)
    assert isinstance(told, do.SendMessage)


def test_a_conflict_found_by_the_merge_queue_goes_to_the_agent() -> None:
    given = dequeued(pulls={"merge": Merge.CONFLICT})
    assert [key.split(":")[0] for key in keys(given)] == ["resolve_conflict"]


def test_a_removal_from_the_merge_queue_for_another_reason_escalates() -> None:
    found = decision(dequeued(), mode=Mode.MERGE)
    assert (found.status, found.reason) == (Status.NEEDS_INPUT, Reason.DEQUEUED)
    assert found.because == "GitHub's merge queue removed it: manual"
    assert lands(dequeued(), mode=Mode.MERGE) == []


@pytest.mark.parametrize("checks", [(), (RED,)])
def test_a_merge_command_enqueues_a_removed_pull_request_once_more(checks: tuple[Any, ...]) -> None:
    again = dequeued(*checks, commands=(ASKED,))
    assert lands(again) == [do.Enqueue(key=parse(AGAIN), number=34, sha=HEAD, by=ASKED.actor)]
    both = {**QUEUED, **done(AGAIN, seconds_ago=5)}
    assert lands(dequeued(*checks, commands=(ASKED,), done=both)) == []


def test_a_merge_command_from_before_the_removal_does_not_enqueue_again() -> None:
    assert lands(dequeued(commands=(command("merge", head=HEAD, at=ago(90)),))) == []


def test_a_removal_from_before_our_own_enqueue_is_ignored() -> None:
    ours = dequeued(RED, done=done(AGAIN, seconds_ago=30))
    assert decision(ours, mode=Mode.MERGE).status is Status.MERGEABLE


def in_queue(*commands: Any, **given: Any) -> Facts:
    return of({**READY, "queue": True, "merge": Merge.QUEUED}, commands=commands, **given)


def test_a_cancel_dequeues_what_the_bot_enqueued() -> None:
    out = do.Dequeue(key=parse(f"dequeue:{HEAD}"), number=34)
    assert out in asked(in_queue(ASKED, CANCEL, done=QUEUED))
    assert out in asked(in_queue(CANCEL, done=QUEUED), mode=Mode.MERGE)
    assert out not in asked(in_queue(ASKED, CANCEL))
    assert out not in asked(in_queue(ASKED, CANCEL, ASKED_AGAIN, done=QUEUED))


def test_a_removal_after_a_cancel_does_not_escalate() -> None:
    for mode in (Mode.MERGE, Mode.PROPOSE):
        found = decision(dequeued(RED, commands=(ASKED, CANCEL)), mode=mode)
        assert found.status is Status.MERGEABLE
        assert [
            str(a.key) for a in deeds(found) if str(a.key).startswith(("merge:", "merge_branch:"))
        ] == []
    again = dequeued(commands=(CANCEL, ASKED_AGAIN))
    assert lands(again) == [do.Enqueue(key=parse(AGAIN), number=34, sha=HEAD, by=ASKED.actor)]


def test_policy_merges_nothing_after_a_cancel() -> None:
    assert lands(ready(CANCEL), mode=Mode.MERGE) == []
    said = answers(decision(ready(CANCEL), mode=Mode.MERGE))
    assert said == {"command_applied:comment-cancel": "Merge request cancelled."}


def test_a_new_head_after_a_removal_is_enqueued() -> None:
    given = dequeued(RED, pulls={"head": NEXT, "verdicts": (approval(NEXT),)})
    (queue,) = lands(given, mode=Mode.MERGE)
    assert str(queue.key) == f"merge:{NEXT}:{in_key(OUT.at)}"


def test_an_approval_of_an_older_commit_merges_nothing() -> None:
    life = until_reviewed(mode=Mode.MERGE)
    approved = approval(life.pull.head)
    life.agent_commits().agent_rests().ci_passes()
    life.verdicts_are(approved)
    assert life.sent("merge:") == []
    assert "review_required: a review is required" in life.decision.blockers
    life.reviewer_approves()
    assert life.sent("merge:") == [f"merge:{life.pull.head}"]
