"""A pull request without checks, though the last merged ones had some: never an endless wait."""

from datetime import timedelta
from typing import Any

import pytest

from lifecycle.decide import Decision, decide
from lifecycle.model import actions as do
from lifecycle.model.facts import Facts
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import CheckState, Reason, Status
from tests.lifecycle.decisions import AT_WORK, decision, effects, with_pull
from tests.lifecycle.test_commands import answers
from tests.lifecycle.universe import HEAD, NEXT, NOW, agent, ago, approval, check, command

EXPECTED = ("lint", "unit")
DAYS = 3 * 86_400.0
NAMED = "no check ran here, but these ran for the last merged pull requests: lint, unit"


def without_checks(*commands: Any, seconds: float = 600, **fields: Any) -> Facts:
    """Approved and clean, and no check has run on the head since it was pushed."""
    fields = {"checks": (), "checks_expected": EXPECTED, "verdicts": (approval(),), **fields}
    who = fields.pop("agent", agent())
    return with_pull({"head_since": ago(seconds), **fields}, commands=commands, agent=who)


def merges(session: Facts, **policy: Any) -> list[str]:
    found = effects(decision(session, **policy))
    return [action.sha for action in found if isinstance(action, do.MergePull)]


def notices(found: Decision) -> list[do.Comment]:
    return [a for a in found.actions if isinstance(a, do.Comment) and a.topic == "attention"]


def test_expected_checks_that_never_ran_block_the_merge_by_name() -> None:
    found = decision(without_checks(agent=AT_WORK), mode=Mode.MERGE)
    assert found.status is Status.APPROVED
    assert [(one.name, one.sentence) for one in found.blockers] == [("ci_missing", NAMED)]


def test_people_are_notified_of_them_at_growing_intervals() -> None:
    session, policy = without_checks(seconds=0), Policy(mode=Mode.MERGE)
    now, ages, times = NOW, [], []
    for _ in range(5):
        found = decide(session, policy, now)
        times.append(now - NOW)
        if posted := notices(found):
            (comment,) = posted
            ages.append(comment.values["because"])
            assert (found.status, found.reason) == (Status.NEEDS_INPUT, Reason.CHECKS_MISSING)
            assert (
                "merge without them: write `/mergewright merge`, or merge on GitHub"
                in comment.values["remedy"]
            )
        assert found.recheck_at is not None
        now = found.recheck_at
    assert times == [timedelta(minutes=m) for m in (0, 1, 15, 30, 60)]
    assert [each.split(" for ")[1].split(",")[0] for each in ages] == ["30 minutes", "1 hour"]
    assert all("lint, unit" in each for each in ages)


@pytest.mark.parametrize("mode", [Mode.PROPOSE, Mode.MERGE])
@pytest.mark.parametrize("seconds", [600, DAYS])
def test_a_persons_merge_command_merges_without_them(mode: Mode, seconds: float) -> None:
    session = without_checks(command("merge", head=HEAD), seconds=seconds)
    assert merges(session, mode=mode) == [HEAD]
    reply = answers(decision(session, mode=mode))["command_applied:comment-merge"]
    assert reply == (
        "The current commit is merged once nothing blocks it and the session neither is paused nor "
        "waits for a person."
    )


def test_a_merge_command_from_before_the_settle_time_waits_for_them() -> None:
    early = without_checks(command("merge", head=HEAD, at=ago(541)))
    assert merges(early) == []
    reply = answers(decision(early))["command_applied:comment-merge"]
    assert NAMED in reply
    assert merges(without_checks(command("merge", head=HEAD, at=ago(540)))) == [HEAD]


def test_a_merge_command_for_another_commit_merges_nothing() -> None:
    assert merges(without_checks(command("merge", head=NEXT))) == []


def test_a_merge_command_never_replaces_a_required_check() -> None:
    required = check(CheckState.PENDING, required=True, reported=False)
    session = without_checks(command("merge", head=HEAD), checks=(required,))
    assert merges(session) == []


def test_by_policy_missing_checks_are_not_awaited() -> None:
    session = without_checks()
    assert merges(session, mode=Mode.MERGE) == []
    assert merges(session, mode=Mode.MERGE, expect_checks=False) == [HEAD]
    busy = without_checks(agent=AT_WORK, seconds=DAYS)
    assert notices(decision(busy)) != []
    assert notices(decision(busy, checks_missing_seconds=0)) == []


def test_the_reviewers_are_asked_all_the_same() -> None:
    found = effects(decision(without_checks(verdicts=()), reviewers=("rob",)))
    assert any(isinstance(action, do.RequestReview) for action in found)


def test_a_draft_without_checks_calls_nobody() -> None:
    assert notices(decision(without_checks(draft=True, seconds=DAYS))) == []


def test_a_draft_whose_checks_were_all_skipped_is_made_ready() -> None:
    skipped = without_checks(draft=True, checks=(check(CheckState.SKIPPED),))
    found = effects(decision(skipped, draft=True))
    assert any(isinstance(action, do.MakeReady) for action in found)
