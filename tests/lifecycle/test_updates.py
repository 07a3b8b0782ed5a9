"""Updates from the base branch: only before a merge or on command, and within a limit."""

from typing import Any

import pytest

from lifecycle.model import actions as do
from lifecycle.model.facts import Facts, Work
from lifecycle.model.key import parse
from lifecycle.model.policy import AutoMerge, Mode
from lifecycle.model.status import CheckState, Merge
from tests.lifecycle.decisions import AT_WORK, FAILED, READY, decision, ordered, with_pull
from tests.lifecycle.universe import (
    BASE,
    HEAD,
    NEXT,
    NOW,
    ago,
    approval,
    check,
    command,
    done,
    remark,
)

UPDATE = do.UpdateBranch(key=parse(f"update_branch:{BASE}:{HEAD}"), number=34, head=HEAD)
MERGE_COMMAND = command("merge", head=HEAD)


def behind(*commands: Any, **fields: Any) -> Facts:
    """Ready, but behind its base."""
    others = {name: fields.pop(name) for name in ("agent", "work", "done") if name in fields}
    return with_pull({**READY, "merge": Merge.BEHIND, **fields}, commands=commands, **others)


def updates(session: Facts, **policy: Any) -> list[do.Action]:
    found = ordered(session, **policy)
    return [action for action in found if isinstance(action, do.UpdateBranch)]


@pytest.mark.parametrize(
    ("commands", "policy", "updated"),
    [
        ((), {"mode": Mode.MERGE}, True),
        ((), {"mode": Mode.PROPOSE}, False),
        ((MERGE_COMMAND,), {"mode": Mode.PROPOSE}, True),
        ((MERGE_COMMAND, command("cancel", at=ago(1))), {"mode": Mode.MERGE}, False),
        ((command("merge", head=NEXT),), {"mode": Mode.PROPOSE}, False),
        ((), {"mode": Mode.MERGE, "auto_merge": AutoMerge.ON_COMMAND}, False),
        ((), {"mode": Mode.MERGE, "auto_merge": AutoMerge.OFF}, False),
        ((command("update"),), {"auto_merge": AutoMerge.OFF}, True),
    ],
)
def test_a_branch_is_updated_if_it_is_merged_next_or_on_command(
    commands: tuple[Any, ...], policy: dict[str, Any], updated: bool
) -> None:
    assert updates(behind(*commands), **policy) == [UPDATE] * updated


@pytest.mark.parametrize(
    "fields",
    [
        {"verdicts": ()},
        {"verdicts": (approval(allowed=False),)},
        {"draft": True},
        {"checks": FAILED},
        {"checks": (check(CheckState.PENDING),)},
        {"agent": AT_WORK},
        {"work": Work(base=BASE, head=NEXT, dirty=False)},
        {"done": done(str(UPDATE.key))},
    ],
)
def test_a_branch_that_cannot_be_merged_next_is_not_updated(fields: dict[str, Any]) -> None:
    assert updates(behind(**fields), mode=Mode.MERGE) == []


def test_a_branch_is_updated_again_when_its_base_has_moved() -> None:
    again = updates(behind(base=NEXT, done=done(str(UPDATE.key))), mode=Mode.MERGE)
    assert [str(action.key) for action in again] == [f"update_branch:{NEXT}:{HEAD}"]


def test_updates_count_in_the_limit_of_pushes_per_hour() -> None:
    moves = {
        **done(f"push:{HEAD}", seconds_ago=3000),
        **done(f"update_branch:{NEXT}:{NEXT}", seconds_ago=2000),
        **done(f"update_on_command:comment-0:{NEXT}", seconds_ago=1000),
    }
    full = behind(done=moves)
    assert updates(full, mode=Mode.MERGE, pushes_per_hour=4) == [UPDATE]
    assert updates(full, mode=Mode.MERGE, pushes_per_hour=3) == []
    recheck = decision(full, mode=Mode.MERGE, pushes_per_hour=3).recheck_at
    assert recheck is not None
    assert (recheck - NOW).total_seconds() == 600
    asked = behind(command("update"), done=moves)
    assert updates(asked, pushes_per_hour=3) == [UPDATE]


def test_thirty_moves_of_the_base_update_a_branch_at_most_ten_times_an_hour() -> None:
    moves: dict[Any, Any] = {}
    for minute in range(30, 0, -1):
        base = f"{minute:040x}"
        session = behind(base=base, done=moves)
        for update in updates(session, mode=Mode.MERGE):
            moves |= done(str(update.key), seconds_ago=60 * minute)
    assert len(moves) == 9  # The tenth of this hour is the push of its commit.
    assert all(not updates(behind(base=f"{n:040x}", verdicts=())) for n in range(30))


@pytest.mark.parametrize(
    ("commands", "policy", "topic"),
    [
        ((), {}, "ready_behind"),
        ((), {"auto_merge": AutoMerge.OFF}, "ready_behind_by_hand"),
        ((MERGE_COMMAND,), {}, ""),
        ((), {"mode": Mode.MERGE}, ""),
    ],
)
def test_people_who_start_the_merge_are_notified_once_that_only_an_update_is_missing(
    commands: tuple[Any, ...], policy: dict[str, Any], topic: str
) -> None:
    found = [a for a in ordered(behind(*commands), **policy) if isinstance(a, do.Comment)]
    assert [comment.topic for comment in found] == [topic] * bool(topic)
    assert not any(
        isinstance(action, do.Comment)
        for action in ordered(behind(done=done(f"ready_to_merge:{HEAD}")), **policy)
    )


def test_a_merge_command_holds_after_the_update_it_waited_for() -> None:
    updated = {**READY, "head": NEXT, "carried": frozenset({HEAD})}
    given = {"commands": (MERGE_COMMAND,), "done": done("command_applied:comment-merge")}
    session = with_pull(updated, work=Work(base=BASE, head=NEXT), **given)
    assert do.MergePull in map(type, ordered(session))
    changed = {**updated, "carried": frozenset[str](), "verdicts": (approval(NEXT),)}
    session = with_pull(changed, work=Work(base=BASE, head=NEXT), **given)
    assert do.MergePull not in map(type, ordered(session))


def test_requests_are_ordered_before_a_branch_update() -> None:
    session = behind(command("update"), comments=(remark(),))
    kinds = [action.key.kind for action in ordered(session)]
    found = [kind for kind in kinds if kind in ("address_review", "update_branch")]
    assert found == ["address_review", "update_branch"]
