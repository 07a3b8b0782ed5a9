"""Sessions with two problems at once, to test which one people are notified of."""

import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from lifecycle.model.facts import Check, Facts, Failure, Issue, OffBranch, Spending, Work
from lifecycle.model.keys import fingerprint
from lifecycle.model.status import Activity, CheckState, Merge, Reason
from tests.lifecycle.universe import (
    BASE,
    BRANCH,
    HEAD,
    OTHER,
    agent,
    ago,
    check,
    command,
    done,
    ended,
    every_fact,
    objection,
    published,
    pull,
    remark,
    thread,
)

_RED = check(CheckState.FAILED)
_HELD = check(CheckState.CANCELLED, "deploy")
_LATE = 3600.0
_REVIEW = "address_review:abc"


class Trouble(NamedTuple):
    """What one problem adds to a session."""

    failed: tuple[str, ...] = ()  #: Keys that were given up.
    sent: tuple[str, ...] = ()  #: Keys that were done an hour ago.
    checks: tuple[Check, ...] = ()
    dirty: bool = False
    off_branch: OffBranch | None = None
    pull: dict[str, Any] = {}  # noqa: RUF012 - never changed
    more: dict[str, Any] = {}  # noqa: RUF012 - never changed


TROUBLES = (
    Trouble(failed=(f"push:{HEAD}",)),
    Trouble(failed=(f"merge:{HEAD}",)),
    Trouble(failed=(f"merge_remote:{OTHER}",), pull={"head": OTHER}),
    Trouble(failed=(f"fix_ci:{HEAD}:{fingerprint(['ci/unit'])}#1",), checks=(_RED,)),
    Trouble(sent=tuple(f"fix_ci:{n:040x}:a#1" for n in range(3)), checks=(_RED,)),
    Trouble(sent=(f"fix_ci:{HEAD}:{fingerprint(['ci/unit'])}#1",), checks=(_RED,)),
    Trouble(checks=(check(CheckState.FAILED, "old", red_on_base=True),)),
    Trouble(checks=(_HELD,)),
    Trouble(
        sent=tuple(f"address_review:{n:08x}#1" for n in range(10)), pull={"comments": (remark(),)}
    ),
    Trouble(
        sent=(f"{_REVIEW}#1", "remark:thread-comment-1#1"),
        pull={"threads": (thread(),), "verdicts": (objection(),)},
    ),
    Trouble(sent=(f"resolve_conflict:{BASE}:{HEAD}#1",), pull={"merge": Merge.CONFLICT}),
    Trouble(sent=tuple(f"commit_work:{n}#1" for n in range(4)), dirty=True),
    Trouble(
        sent=tuple(f"move_commits:{n:040x}#1" for n in range(3)), off_branch=OffBranch(head=OTHER)
    ),
    Trouble(
        more={
            "work": Work(base=BASE, head=HEAD, branch=BRANCH, unreadable="git status failed"),
            "agent": agent(seconds_ago=_LATE),
        }
    ),
    Trouble(more={"commands": (command("pause"),)}),
    Trouble(more={"spent": Spending(cost_usd=4.5)}),
    Trouble(more={"spent": Spending(cost_usd=9, tokens=9, active_seconds=9e9)}),
    Trouble(more={"spent_today": Spending(cost_usd=99)}),
    Trouble(failed=("start:message#2",)),
    Trouble(more={"issue": Issue(number=12, title="x", open=False, state_reason="completed")}),
)
_AGENTS = (
    agent(),
    agent(Activity.ACTIVE, 30),
    agent(Activity.WAITING_INPUT, 30, question="May I?"),
    agent(Activity.BLOCKED, 5000, error="429"),
    agent(Activity.BLOCKED, 30, error="429", limit_until=ago(-3600)),
    ended(0),
    ended(1),
)


@cache
def every_session() -> tuple[Facts, ...]:
    """Return all sessions of `every_fact` and of `every_trouble`. Cached in each test process."""
    return (*every_fact(), *every_trouble())


def every_trouble() -> Iterator[Facts]:
    """Every pair of problems with every state of the agent."""
    for who, (one, other) in itertools.product(_AGENTS, itertools.combinations(TROUBLES, 2)):
        fields: dict[str, Any] = {
            "agent": who,
            "work": Work(
                base=BASE,
                head=HEAD,
                branch=BRANCH,
                dirty=one.dirty or other.dirty,
                off_branch=one.off_branch or other.off_branch,
            ),
            "failures": {key: _failure(key) for key in (*one.failed, *other.failed)},
            "done": done(*one.sent, *other.sent, seconds_ago=_LATE),
            "pulls": (pull(**{**_checks(one, other), **one.pull, **other.pull}),),
        }
        yield published(**{**fields, **one.more, **other.more})


def _failure(key: str) -> Failure:
    reason = Reason.SPAWN_FAILED if key.startswith("start:") else Reason.ACTION_FAILED
    return Failure(at=ago(60), reason=reason, detail="GitHub said no")


def _checks(one: Trouble, other: Trouble) -> dict[str, Any]:
    checks = tuple(dict.fromkeys((*one.checks, *other.checks)))
    return {"checks": checks} if checks else {}
