"""Of several escalations people are notified of the most important one."""

from typing import Any

import pytest

from lifecycle.model.facts import Dequeued, Facts, Failure, OffBranch, Work
from lifecycle.model.keys import fingerprint
from lifecycle.model.status import Activity, CheckState, Merge, Mover, Reason
from tests.lifecycle.decisions import COMMIT, READY
from tests.lifecycle.test_escalations import (
    CI,
    CONFLICT,
    DIRTY,
    FAILURE,
    MERGE,
    attention,
    conflicting,
    red,
    refused,
    reviewed,
    rounds,
)
from tests.lifecycle.universe import (
    BASE,
    BRANCH,
    HEAD,
    NEXT,
    OTHER,
    agent,
    ago,
    check,
    command,
    done,
    facts,
    in_key,
    published,
    pull,
    remark,
    thread,
)

HELD = Failure(at=ago(60), reason=Reason.PROTECTED_PATHS, detail="CODEOWNERS")
BESIDE = Work(base=BASE, head=HEAD, dirty=False, off_branch=OffBranch(head=NEXT, branch="fix"))
PUSHES = tuple(f"push:{place:040x}" for place in range(10))
REMOVAL = Dequeued(at=ago(60), reason="manual")
UPDATE = f"update_on_command:comment-update:{HEAD}"


def failing(*keys: str) -> dict[str, Failure]:
    return dict.fromkeys(keys, FAILURE)


def removed(**fields: Any) -> Facts:
    """The merge queue removed the pull request."""
    one = pull(**READY, queue=True, dequeued=REMOVAL)
    return published(pulls=(one,), done=done(MERGE), **fields)


FIRST: dict[str, tuple[Facts, str]] = {
    "a question before protected paths": (
        published(
            agent=agent(Activity.WAITING_INPUT), work=COMMIT, failures={f"push:{NEXT}": HELD}
        ),
        f"question:{in_key(ago(120))}#1",
    ),
    "commits beside the branch before used up pushes": (
        published(work=BESIDE, done=done(f"move_commits:{NEXT}#1", *PUSHES, seconds_ago=60)),
        "off_branch:1",
    ),
    "used up pushes before a refused pull request": (
        facts(work=COMMIT, failures=failing(f"open_pull:{BRANCH}"), done=done(*PUSHES)),
        f"pushes_used_up:{in_key(ago(600))}",
    ),
    "commits of others before a refused draft": (
        published(
            pulls=(pull(draft=True, head=OTHER, head_by=Mover.PERSON),),
            failures=failing("make_ready:34", f"merge_remote:{OTHER}"),
        ),
        f"action_failed:merge_remote:{OTHER}",
    ),
    "a refused draft before a refused merge": (
        published(pulls=(pull(draft=True),), failures=failing(MERGE, "make_ready:34")),
        "action_failed:make_ready:34",
    ),
    "a refused merge before a removal from the queue": (
        removed(failures=failing(f"{MERGE}:{in_key(REMOVAL.at)}")),
        f"action_failed:{MERGE}:{in_key(REMOVAL.at)}",
    ),
    "a removal from the queue before a refused update": (
        removed(failures=failing(UPDATE), commands=(command("update"),)),
        f"dequeued:{HEAD}:{in_key(REMOVAL.at)}",
    ),
    "a refused update before a lost message": (
        red(failures=failing(f"{CI}#1", UPDATE), commands=(command("update"),)),
        f"action_failed:{UPDATE}",
    ),
    "a lost message before exhausted repairs": (
        red(failures=failing(f"{CI}#1"), done=done(*(f"fix_ci:{n}:x#1" for n in range(3)))),
        f"action_failed:{CI}#1",
    ),
    "a refused merge before uncommitted work": (
        refused(MERGE, work=DIRTY, done=done("commit_work:0#1", seconds_ago=200)),
        f"action_failed:{MERGE}",
    ),
    "held checks before exhausted rounds": (
        rounds(10, checks=(check(CheckState.CANCELLED), check(name="b"))),
        f"checks_held:{HEAD}:{fingerprint(['ci/unit'])}",
    ),
    "missing checks before exhausted rounds": (
        rounds(10, checks=(), checks_expected=("unit",), head_since=ago(1800)),
        f"checks_missing:{HEAD}:0",
    ),
    "exhausted rounds before a review without a commit": (
        reviewed(
            pulls=(pull(threads=(thread(),), comments=(remark(),)),),
            done=done(*(f"address_review:{n}#1" for n in range(10)), seconds_ago=3600),
        ),
        "rounds_exhausted:11",
    ),
    "a review without a commit before a conflict": (
        reviewed(
            pulls=(pull(threads=(thread(),), merge=Merge.CONFLICT),),
            done=done(f"{CONFLICT}#1", seconds_ago=3600),
        ),
        "no_result:address_review:abc",
    ),
    "a conflict before uncommitted work": (
        conflicting(f"{CONFLICT}#1", "commit_work:1#1", work=DIRTY),
        f"no_result:{CONFLICT}",
    ),
    "uncommitted work before an unreadable workspace": (
        published(
            agent=agent(seconds_ago=600),
            work=Work(base=BASE, head=HEAD, dirty=True, unreadable="git failed"),
            done=done("commit_work:0#1", seconds_ago=700),
        ),
        "no_result:commit_work:0",
    ),
    "an unreadable workspace before nothing to show": (
        facts(
            agent=agent(seconds_ago=600), work=Work(base=BASE, head=BASE, unreadable="git failed")
        ),
        f"stuck:workspace_unreadable:{in_key(ago(600))}#1",
    ),
}


@pytest.mark.parametrize(("session", "key"), FIRST.values(), ids=FIRST.keys())
def test_the_most_important_escalation_is_reported(session: Facts, key: str) -> None:
    found = attention(session)[1]
    assert str(found.key) == key
    if key.startswith("action_failed:"):
        assert found.reason == FAILURE.reason
        assert found.because.endswith(f": {FAILURE.detail}")
