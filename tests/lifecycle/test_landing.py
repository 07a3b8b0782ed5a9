"""Merging: who may request it, directly or by GitHub's merge queue, and only once."""

from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Dequeued, Facts
from lifecycle.model.key import parse
from lifecycle.model.policy import AutoMerge, MergeMethod, Mode
from lifecycle.model.status import Blocker, CheckState, Merge, Reason, Review, Status
from tests.lifecycle.decisions import READY, decision, effects, keys, ordered, ready, with_pull
from tests.lifecycle.life import until_reviewed
from tests.lifecycle.test_commands import answers
from tests.lifecycle.universe import HEAD, NEXT, ago, approval, check, command, done, in_key

MERGE_COMMAND = command("merge", head=HEAD)
CANCEL = command("cancel", at=ago(5))
LATER_MERGE_COMMAND = command("merge", head=HEAD, at=ago(1))
RED = check(CheckState.FAILED, "queue's", required=True, log="boom")
REMOVAL = Dequeued(at=ago(60), reason="manual")
SECOND_ENQUEUE = f"merge:{HEAD}:{in_key(REMOVAL.at)}"
QUEUED = done(f"merge:{HEAD}", seconds_ago=120)


def dequeued(*checks: Any, **fields: Any) -> Facts:
    """Ready, enqueued by the bot two minutes ago, removed by GitHub one minute ago."""
    out = Dequeued(at=REMOVAL.at, reason="failed_checks" if checks else "manual", checks=checks)
    pulls = {**READY, "queue": True, "dequeued": out, **fields.pop("pulls", {})}
    return with_pull(pulls, **{"done": QUEUED, **fields})


def merging(session: Facts, **policy: Any) -> list[do.MergePull | do.Enqueue]:
    merger = (do.MergePull, do.Enqueue)
    return [action for action in ordered(session, **policy) if isinstance(action, merger)]


@pytest.mark.parametrize(
    ("mode", "auto", "commands", "merges"),
    [
        (Mode.MERGE, AutoMerge.WHEN_APPROVED, (), True),
        (Mode.MERGE, AutoMerge.ON_COMMAND, (), False),
        (Mode.MERGE, AutoMerge.ON_COMMAND, (MERGE_COMMAND,), True),
        (Mode.MERGE, AutoMerge.OFF, (), False),
        (Mode.MERGE, AutoMerge.OFF, (MERGE_COMMAND,), False),
        (Mode.PROPOSE, AutoMerge.WHEN_APPROVED, (), False),
        (Mode.PROPOSE, AutoMerge.WHEN_APPROVED, (MERGE_COMMAND,), True),
        (Mode.PROPOSE, AutoMerge.OFF, (MERGE_COMMAND,), False),
    ],
)
def test_the_stricter_of_mode_and_auto_merge_applies(
    mode: Mode, auto: AutoMerge, commands: tuple[Any, ...], merges: bool
) -> None:
    assert bool(merging(ready(*commands), mode=mode, auto_merge=auto)) is merges


def test_with_auto_merge_off_people_are_asked_to_merge_by_hand() -> None:
    (comment,) = ordered(ready(), auto_merge=AutoMerge.OFF)
    assert isinstance(comment, do.Comment)
    assert comment.topic == "ready_by_hand"
    replies = answers(decision(ready(MERGE_COMMAND), auto_merge=AutoMerge.OFF))
    assert replies["command_refused:comment-merge"].startswith(
        "The configuration keeps the bot from merging"
    )


BARRED = {**READY, "barred": "branch protection", "base_branch": "main"}
WHY = "the branch protection of main does not let the bot push to it"


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("mode", [Mode.MERGE, Mode.PROPOSE])
def test_where_a_rule_bars_the_bot_people_are_asked_to_merge_by_hand(
    mode: Mode, behind: bool
) -> None:
    """The merge is not tried, and a branch that is behind is left to people too."""
    pulls = {**BARRED, "merge": Merge.BEHIND} if behind else BARRED
    (comment,) = ordered(with_pull(pulls), mode=mode)
    assert isinstance(comment, do.Comment)
    assert comment.topic == ("ready_behind_by_hand" if behind else "ready_by_hand")
    assert comment.values["why"] == WHY
    if not behind:
        found = decision(with_pull(pulls), mode=mode)
        assert (found.status, found.reason) == (Status.MERGEABLE, Reason.MERGE_BARRED)
        assert found.because.endswith(f"can be merged, but not by the bot: {WHY}")


@pytest.mark.parametrize("merge", [Merge.CLEAN, Merge.BEHIND])
def test_with_auto_merge_off_no_rule_is_named_whose_end_would_change_nothing(merge: Merge) -> None:
    found = decision(with_pull({**BARRED, "merge": merge}), auto_merge=AutoMerge.OFF)
    assert found.reason is not Reason.MERGE_BARRED
    (comment,) = (one for one in effects(found) if isinstance(one, do.Comment))
    assert (comment.topic.endswith("_by_hand"), comment.values["why"]) == (True, "")


def test_a_locked_branch_is_read_only_for_people_too() -> None:
    found = decision(with_pull({**BARRED, "barred": "lock"}))
    assert (
        "the branch main is locked: only people who may bypass the lock can merge" in found.because
    )


def test_a_merge_command_that_a_rule_makes_impossible_is_refused() -> None:
    replies = answers(decision(with_pull(BARRED, commands=(MERGE_COMMAND,))))
    refusal = replies["command_refused:comment-merge"]
    assert refusal.startswith("The branch protection of main does not let the bot push to it")
    given = done("command_applied:comment-merge")
    assert merging(with_pull(BARRED, commands=(MERGE_COMMAND,), done=given)) == []
    assert merging(with_pull(READY, commands=(MERGE_COMMAND,), done=given))


def test_the_merge_queue_pushes_by_itself() -> None:
    (enqueue,) = merging(with_pull({**BARRED, "queue": True}), mode=Mode.MERGE)
    assert isinstance(enqueue, do.Enqueue)


def test_a_merge_command_from_before_auto_merge_was_turned_off_merges_nothing() -> None:
    applied = with_pull(
        READY, commands=(MERGE_COMMAND,), done=done("command_applied:comment-merge")
    )
    assert merging(applied)
    assert merging(applied, auto_merge=AutoMerge.OFF) == []


@pytest.mark.parametrize("queue", [False, True])
def test_a_merge_names_its_requester_unless_policy_merges(queue: bool) -> None:
    session = with_pull({**READY, "queue": queue}, commands=(MERGE_COMMAND,))
    assert [action.by for action in merging(session)] == [MERGE_COMMAND.actor]
    assert [action.by for action in merging(session, mode=Mode.MERGE)] == [""]


def test_a_merge_method_named_in_a_command_is_marked_as_requested() -> None:
    (merge,) = merging(ready(command("merge", head=HEAD, text="rebase")))
    assert isinstance(merge, do.MergePull)
    assert (merge.method, merge.asked) == (MergeMethod.REBASE, True)


def test_with_a_merge_queue_the_judged_commit_is_enqueued() -> None:
    assert merging(ready(queue=True), mode=Mode.MERGE) == [
        do.Enqueue(key=parse(f"merge:{HEAD}"), number=34, sha=HEAD, base="main")
    ]


def test_a_queued_pull_request_waits_and_lists_the_queue_as_its_blocker() -> None:
    found = decision(with_pull({**READY, "queue": True, "merge": Merge.QUEUED}, done=QUEUED))
    assert found.status is Status.APPROVED
    assert found.blockers == (Blocker("queued", "the pull request is in GitHub's merge queue"),)
    assert effects(found) == []


def test_checks_that_failed_in_the_merge_queue_go_to_the_agent() -> None:
    session = dequeued(RED)
    found = decision(session, mode=Mode.MERGE)
    assert (found.status, found.blockers[0]) == (
        Status.CI_FAILED,
        Blocker("ci_failing", "failing checks: queue's"),
    )
    (message,) = ordered(session, mode=Mode.MERGE)
    assert isinstance(message, do.SendMessage)
    assert message.prompt.items[0]["log"] == "boom"


def test_a_flaky_check_that_failed_in_the_merge_queue_is_not_rerun() -> None:
    flaky = check(CheckState.FAILED, "queue's", required=True, flaky=True, run_id=8)
    (message,) = ordered(dequeued(flaky), mode=Mode.MERGE)
    assert isinstance(message, do.SendMessage)


def test_a_conflict_found_by_the_merge_queue_goes_to_the_agent() -> None:
    session = dequeued(pulls={"merge": Merge.CONFLICT})
    assert [key.split(":")[0] for key in keys(session)] == ["resolve_conflict"]


def test_a_removal_from_the_merge_queue_for_another_reason_escalates() -> None:
    found = decision(dequeued(), mode=Mode.MERGE)
    assert (found.status, found.reason) == (Status.NEEDS_INPUT, Reason.DEQUEUED)
    assert found.because == "GitHub's merge queue removed the pull request: manual"
    assert merging(dequeued(), mode=Mode.MERGE) == []


@pytest.mark.parametrize("checks", [(), (RED,)])
def test_a_merge_command_enqueues_a_removed_pull_request_once_more(checks: tuple[Any, ...]) -> None:
    again = dequeued(*checks, commands=(MERGE_COMMAND,))
    assert merging(again) == [
        do.Enqueue(
            key=parse(SECOND_ENQUEUE), number=34, sha=HEAD, base="main", by=MERGE_COMMAND.actor
        )
    ]
    both = {**QUEUED, **done(SECOND_ENQUEUE, seconds_ago=5)}
    assert merging(dequeued(*checks, commands=(MERGE_COMMAND,), done=both)) == []


def test_a_merge_command_from_before_the_removal_does_not_enqueue_again() -> None:
    assert merging(dequeued(commands=(command("merge", head=HEAD, at=ago(90)),))) == []


def test_a_removal_from_before_our_own_enqueue_is_ignored() -> None:
    ours = dequeued(RED, done=done(SECOND_ENQUEUE, seconds_ago=30))
    assert decision(ours, mode=Mode.MERGE).status is Status.MERGEABLE


def in_queue(*commands: Any, **fields: Any) -> Facts:
    return with_pull({**READY, "queue": True, "merge": Merge.QUEUED}, commands=commands, **fields)


def test_a_cancel_dequeues_what_the_bot_enqueued() -> None:
    out = do.Dequeue(key=parse(f"dequeue:{HEAD}"), number=34)
    assert out in ordered(in_queue(MERGE_COMMAND, CANCEL, done=QUEUED))
    assert out in ordered(in_queue(CANCEL, done=QUEUED), mode=Mode.MERGE)
    assert out not in ordered(in_queue(MERGE_COMMAND, CANCEL))
    assert out not in ordered(in_queue(MERGE_COMMAND, CANCEL, LATER_MERGE_COMMAND, done=QUEUED))


def test_a_removal_after_a_cancel_does_not_escalate() -> None:
    for mode in (Mode.MERGE, Mode.PROPOSE):
        found = decision(dequeued(RED, commands=(MERGE_COMMAND, CANCEL)), mode=mode)
        assert found.status is Status.MERGEABLE
        assert [
            str(a.key) for a in effects(found) if str(a.key).startswith(("merge:", "merge_branch:"))
        ] == []
    again = dequeued(commands=(CANCEL, LATER_MERGE_COMMAND))
    assert merging(again) == [
        do.Enqueue(
            key=parse(SECOND_ENQUEUE), number=34, sha=HEAD, base="main", by=MERGE_COMMAND.actor
        )
    ]


def test_policy_merges_nothing_after_a_cancel() -> None:
    assert merging(ready(CANCEL), mode=Mode.MERGE) == []
    replies = answers(decision(ready(CANCEL), mode=Mode.MERGE))
    assert replies == {
        "command_applied:comment-cancel": (
            "The bot does not merge this pull request until somebody writes `/mergewright merge`."
        )
    }


def test_a_new_head_after_a_removal_is_enqueued() -> None:
    session = dequeued(RED, pulls={"head": NEXT, "verdicts": (approval(NEXT),)})
    (queue,) = merging(session, mode=Mode.MERGE)
    assert str(queue.key) == f"merge:{NEXT}:{in_key(REMOVAL.at)}"


@pytest.mark.parametrize(
    ("said", "changed", "merges"), [(20, 21, True), (20, 20, True), (20, 19, False)]
)
def test_a_merge_command_is_bound_to_the_base_branch_of_its_time(
    said: float, changed: float, merges: bool
) -> None:
    words = command("merge", head=HEAD, at=ago(said))
    session = ready(words, base_since=ago(changed))
    assert bool(merging(session)) is merges
    assert bool(merging(ready(words, base_since=ago(changed), queue=True))) is merges


def test_an_approval_of_an_earlier_base_branch_does_not_count() -> None:
    earlier = replace(approval(), for_base=False)
    assert decision(ready(verdicts=(earlier,)), mode=Mode.MERGE).status is Status.REVIEW_PENDING
    again = approval(author="ann")
    assert merging(ready(verdicts=(earlier, again)), mode=Mode.MERGE)


IGNORED = {
    "the requester": (
        approval(author="alice"),
        {},
        "the approval of @alice, who requested this work, does not count",
    ),
    "a contributor": (
        approval(),
        {"contributors": frozenset({"rob"})},
        "the approval of @rob, who pushed commits to the branch, does not count",
    ),
    "no writer": (
        approval(allowed=False),
        {},
        "the approval of @rob, who has no write access, does not count",
    ),
    "a bot": (
        replace(approval(allowed=False), bot=True),
        {},
        "the approval of @rob, who is not listed in `bots`, does not count",
    ),
    "an earlier commit": (
        approval(NEXT),
        {},
        "the approval of @rob, who approved an earlier commit, does not count",
    ),
    "another base branch": (
        replace(approval(), for_base=False),
        {},
        "the approval of @rob, who approved it for another base branch, does not count",
    ),
}


@pytest.mark.parametrize(("verdict", "fields", "says"), IGNORED.values(), ids=IGNORED)
def test_an_approval_that_does_not_count_is_named_with_the_reason(
    verdict: Any, fields: dict[str, Any], says: str
) -> None:
    found = decision(with_pull({"verdicts": (verdict,), **fields}), mode=Mode.MERGE)
    assert found.status is Status.REVIEW_PENDING
    (blocker,) = found.blockers
    assert blocker.name == "review_required"
    ways = "; another approval is needed, or the setting `policy.require-review = false`"
    assert blocker.sentence == f"a review is required: {says}{ways}"
    (report,) = [action for action in found.actions if isinstance(action, do.ReportCheck)]
    assert report.summary.blockers == found.blockers
    required = with_pull({"verdicts": (verdict,), "review": Review.PENDING, **fields})
    (blocker,) = decision(required).blockers
    assert blocker.sentence == f"a review is required: {says}; another approval is needed"


def test_an_approval_by_another_person_counts_beside_those_that_do_not() -> None:
    contributors = frozenset({"rob"})
    both = (approval(), approval(author="ann"))
    assert merging(ready(verdicts=both, contributors=contributors), mode=Mode.MERGE)
    assert not merging(ready(contributors=contributors), mode=Mode.MERGE)
    assert merging(ready(contributors=contributors), mode=Mode.MERGE, contributors_approve=True)


def test_a_requester_whose_merge_command_waits_for_a_review_gets_the_reason() -> None:
    says = answers(decision(ready(MERGE_COMMAND, verdicts=())))["command_applied:comment-merge"]
    assert says.endswith(
        "- a review is required: @alice requested this work and cannot approve it; "
        "another approval is needed, or the setting `policy.require-review = false`"
    )
    other = command("merge", head=HEAD, actor="rob")
    says = answers(decision(ready(other, verdicts=())))["command_applied:comment-merge"]
    assert says.endswith("- a review is required")
    local = ready(command("merge", head=HEAD, actor="cli:ann"), verdicts=())
    says = answers(decision(replace(local, requester="cli:ann")))["command_applied:comment-merge"]
    assert says.endswith("- a review is required")


def test_a_further_review_that_github_requires_is_named_as_such() -> None:
    (blocker,) = decision(ready(review=Review.PENDING)).blockers
    assert blocker.sentence == (
        "a review is required: GitHub requires another approval, such as a code owner's"
    )


def test_a_merge_names_the_base_branch_it_was_judged_for() -> None:
    for queue in (False, True):
        (action,) = merging(ready(base_branch="release", queue=queue), mode=Mode.MERGE)
        assert action.base == "release"


def test_an_approval_of_an_older_commit_merges_nothing() -> None:
    life = until_reviewed(mode=Mode.MERGE)
    approved = approval(life.pull.head)
    life.agent_commits().agent_rests().ci_passes()
    life.verdicts_are(approved)
    assert life.sent("merge:") == []
    assert [blocker.name for blocker in life.decision.blockers] == ["review_required"]
    life.reviewer_approves()
    assert life.sent("merge:") == [f"merge:{life.pull.head}"]
