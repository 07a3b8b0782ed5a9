"""The sentences of rules, blockers and stalls, with their evidence."""

from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from lifecycle.decide import decide
from lifecycle.judge.rules import BLOCKERS, RULES
from lifecycle.model.facts import Facts, Failure, Issue, ProbeFailure, Spending
from lifecycle.model.names import NAME
from lifecycle.model.policy import Policy
from lifecycle.model.status import (
    Activity,
    Blocker,
    CheckState,
    Merge,
    Probe,
    PullState,
    Reason,
    Status,
)
from lifecycle.read.sentences import person
from tests.lifecycle.universe import (
    BRANCH,
    NOW,
    agent,
    ago,
    approval,
    check,
    command,
    facts,
    published,
    pull,
    thread,
)

NEW = Facts(
    session="widgets-12", project="widgets", created=ago(9), issue=Issue(number=12, title="x")
)
S, C = Status, CheckState
RED = check(C.FAILED)
HELD = check(C.CANCELLED, "deploy")


class Example(NamedTuple):
    """One example of a status."""

    given: Facts
    status: Status
    reason: Reason
    because: str


EXAMPLES = {
    "cleanup": Example(
        published(commands=(command("stop"),), pending=frozenset({"stop#1"})),
        S.CLEANUP,
        Reason.RELEASING,
        "stopped by @alice; the agent's program is being stopped",
    ),
    "merged": Example(
        published(pulls=(pull(state=PullState.MERGED),)),
        S.MERGED,
        Reason.PR_MERGED,
        "pull request #34 was merged",
    ),
    "killed": Example(
        published(commands=(command("stop"),)),
        S.KILLED,
        Reason.MANUALLY_KILLED,
        "stopped by @alice",
    ),
    "terminated": Example(
        facts(issue=Issue(number=12, title="x", labelled=False)),
        S.TERMINATED,
        Reason.LABEL_REMOVED,
        "the label or assignment that requested the agent was removed",
    ),
    "errored": Example(
        facts(
            failures={
                "start:first#1": Failure(
                    at=ago(5), reason=Reason.SPAWN_FAILED, detail="tmux is not there"
                )
            },
        ),
        S.ERRORED,
        Reason.SPAWN_FAILED,
        "tmux is not there",
    ),
    "done": Example(
        facts(issue=Issue(number=12, title="x", open=False, state_reason="completed")),
        S.DONE,
        Reason.ISSUE_CLOSED,
        "the issue was closed as completed",
    ),
    "paused": Example(
        facts(commands=(command("pause"),)), S.PAUSED, Reason.PAUSED_BY_PERSON, "paused by @alice"
    ),
    "paused by a budget": Example(
        facts(spent=Spending(cost_usd=7)),
        S.PAUSED,
        Reason.BUDGET_EXHAUSTED,
        "this session's dollar budget is used up",
    ),
    "queued": Example(
        replace(NEW, waits="all 3 slots are taken"),
        S.QUEUED,
        Reason.NO_SLOT,
        "all 3 slots are taken",
    ),
    "spawning": Example(
        replace(NEW, slot=True),
        S.SPAWNING,
        Reason.STARTING,
        "the agent is being started",
    ),
    "needs_input": Example(
        facts(agent=agent(Activity.WAITING_INPUT, question="May I?")),
        S.NEEDS_INPUT,
        Reason.AGENT_QUESTION,
        "the agent asks: May I?",
    ),
    "stuck: blocked": Example(
        facts(agent=agent(Activity.BLOCKED, 9000, error="529")),
        S.STUCK,
        Reason.AGENT_BLOCKED,
        "the agent is blocked: 529",
    ),
    "stuck: no progress": Example(
        facts(agent=agent(Activity.ACTIVE, 9000)),
        S.STUCK,
        Reason.NO_PROGRESS,
        "the agent shows no progress",
    ),
    "stuck: unknown": Example(
        facts(
            agent=agent(
                runtime=Probe.UNKNOWN,
                program=Probe.UNKNOWN,
                probe_failure=ProbeFailure(
                    since=ago(9000), evidence="tmux does not answer", rounds=3
                ),
            )
        ),
        S.STUCK,
        Reason.PROBE_FAILURE,
        "the agent's state could not be determined",
    ),
    "ci_failed": Example(
        published(pulls=(pull(checks=(RED, check(C.FAILED, "lint"))),)),
        S.CI_FAILED,
        Reason.PULL_REQUEST,
        "checks failed on ccccccc: unit, lint",
    ),
    "changes_requested": Example(
        published(pulls=(pull(threads=(thread(),)),)),
        S.CHANGES_REQUESTED,
        Reason.PULL_REQUEST,
        "unresolved conversations with @rob",
    ),
    "a draft": Example(
        published(pulls=(pull(draft=True),)),
        S.PR_OPEN,
        Reason.PULL_REQUEST,
        "pull request #34 is a draft",
    ),
    "mergeable": Example(
        published(pulls=(pull(verdicts=(approval(),)),)),
        S.MERGEABLE,
        Reason.AWAITS_MERGE,
        "ccccccc needs no more checks or reviews and can be merged",
    ),
    "approved": Example(
        published(pulls=(pull(verdicts=(approval(),), merge=Merge.BEHIND),)),
        S.APPROVED,
        Reason.PULL_REQUEST,
        "approved; merge blocked by: the pull request is behind the base branch",
    ),
    "review_pending": Example(
        published(), S.REVIEW_PENDING, Reason.PULL_REQUEST, "waits for a review of ccccccc"
    ),
    "pr_open": Example(
        published(pulls=(pull(checks=(check(C.PENDING),)),)),
        S.PR_OPEN,
        Reason.PULL_REQUEST,
        "pull request #34 is open; merge blocked by: checks in progress: unit; "
        "a review is required",
    ),
    "working": Example(
        facts(agent=agent(Activity.ACTIVE, 5, evidence="it calls a tool")),
        S.WORKING,
        Reason.AGENT_AT_WORK,
        "the agent works (it calls a tool)",
    ),
}


@pytest.mark.parametrize("row", EXAMPLES)
def test_a_status_states_its_reason_and_evidence(row: str) -> None:
    session, status, reason, because = EXAMPLES[row]
    decision = decide(session, Policy(), NOW)
    assert (decision.status, decision.reason, decision.because) == (status, reason, because)


def test_every_rule_has_an_example() -> None:
    assert {row.status for row in EXAMPLES.values()} == {rule.status for rule in RULES}


BLOCKED: dict[Blocker, dict[str, Any]] = {
    Blocker("ci_failing", "failing checks: unit"): {"checks": (RED,)},
    Blocker("ci_held", "checks were cancelled, went stale or wait for a person: deploy"): {
        "checks": (HELD,)
    },
    Blocker("ci_pending", "checks in progress: unit"): {"checks": (check(C.PENDING),)},
    Blocker("ci_pending", "not all checks and reviews could be read from GitHub"): {
        "checks_complete": False
    },
    Blocker("ci_pending", "GitHub did not say when the last push was, so checks may still start"): {
        "checks": (),
        "head_since": None,
    },
    Blocker(
        "ci_missing",
        "no check ran here, but these ran for the last merged pull requests: lint, unit",
    ): {"checks": (), "checks_expected": ("lint", "unit")},
    Blocker("not_settled", "checks may still start after the last push"): {
        "checks": (),
        "head_since": ago(5),
    },
    Blocker("changes_requested", "unresolved conversations with @rob"): {"threads": (thread(),)},
    Blocker("review_required", "a review is required"): {"verdicts": ()},
    Blocker("conflict", "the pull request conflicts with the base branch"): {
        "merge": Merge.CONFLICT
    },
    Blocker("behind", "the pull request is behind the base branch"): {"merge": Merge.BEHIND},
    Blocker("queued", "the pull request is in GitHub's merge queue"): {"merge": Merge.QUEUED},
    Blocker("draft", "the pull request is a draft"): {"draft": True},
    Blocker("held", 'the pull request\'s title "WIP: more tests" blocks the merge'): {
        "title": "WIP: more tests"
    },
    Blocker("held", "the pull request's label `Do-Not-Merge` blocks the merge"): {
        "labels": ("Do-Not-Merge",)
    },
    Blocker(
        "protected",
        "a branch protection rule or ruleset blocks the merge; the pull request's merge box on "
        "GitHub shows what it requires",
    ): {"merge": Merge.PROTECTED},
    Blocker("unknown", "GitHub has not computed yet whether the pull request can be merged"): {
        "merge": Merge.UNKNOWN
    },
}


@pytest.mark.parametrize("says", BLOCKED, ids=lambda says: says.sentence)
def test_each_blocker_has_its_sentence(says: Blocker) -> None:
    one = pull(**{"verdicts": (approval(),), **BLOCKED[says]})
    assert decide(published(pulls=(one,)), Policy(), NOW).blockers == (says,)


def test_a_user_of_the_command_line_is_named_without_an_at_sign() -> None:
    stopped = facts(commands=(command("stop", actor="cli:ann"),))
    assert decide(stopped, Policy(), NOW).because == "stopped by ann (on the server)"


def test_a_stacked_pull_request_names_the_one_below() -> None:
    below = pull(branch=BRANCH, checks=(check(C.PENDING),))
    above = replace(pull(base_branch=BRANCH, verdicts=(approval(),)), number=35)
    decision = decide(published(pulls=(above, below)), Policy(), NOW)
    assert decision.because == (
        "pull request #35 is open; merge blocked by: the pull request is based on #34, which is"
        " not merged"
    )
    assert decision.blockers == (
        Blocker("stacked", "the pull request is based on #34, which is not merged"),
    )


def test_every_blocker_has_an_example() -> None:
    shown = {says.name for says in BLOCKED} | {"stacked"}
    assert shown == {row.name for row in BLOCKERS}


def test_the_bot_itself_is_named_without_an_at_sign() -> None:
    assert (person(NAME), person("ann"), person("")) == ("Mergewright", "@ann", "somebody")
