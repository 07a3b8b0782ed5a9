"""Escalations: when each begins, when not, and under which key."""

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.judge.judge import read
from lifecycle.judge.signals import Attention
from lifecycle.judge.stalls import Finding
from lifecycle.model.facts import Agent, Facts, Failure, Work
from lifecycle.model.keys import fingerprint
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, CheckState, Merge, PullState, Reason, Review
from lifecycle.read.session_view import SessionView
from tests.lifecycle.universe import (
    BASE,
    BRANCH,
    HEAD,
    NEXT,
    NOW,
    agent,
    ago,
    approval,
    check,
    done,
    ended,
    facts,
    objection,
    published,
    pull,
    remark,
    thread,
)

C = CheckState
DIRTY = Work(base=BASE, head=HEAD, dirty=True)
CI = f"fix_ci:{HEAD}:{fingerprint(['ci/unit', 'ci/lint'])}"
CONFLICT = f"resolve_conflict:{BASE}:{HEAD}"
REVIEW = "address_review:abc"
MERGE = f"merge:{HEAD}"
FAILURE = Failure(at=ago(60), reason=Reason.PUSH_REFUSED, detail="GitHub said no")


def attention(session: Facts, **policy: Any) -> tuple[Attention, Finding]:
    signals, evidence, _ = read(SessionView(session, Policy(**policy), NOW))
    return signals.attention, evidence


def red(**fields: Any) -> Facts:
    """Failed checks, and the agent idle for a minute."""
    checks = fields.pop("checks", (check(C.FAILED), check(C.FAILED, "lint")))
    fields = {"agent": agent(seconds_ago=60), **fields}
    return published(pulls=(pull(checks=checks),), **fields)


def reviewed(**fields: Any) -> Facts:
    """A thread that was sent to the agent an hour ago; the agent is idle since."""
    sent = done(f"{REVIEW}#1", "remark:thread-comment-1#1", seconds_ago=3600)
    sent |= done(f"push:{HEAD}", f"open_pull:{BRANCH}", seconds_ago=3700)
    fields = {"agent": agent(seconds_ago=3000), "pulls": (pull(threads=(thread(),)),), **fields}
    return published(done={**sent, **fields.pop("done", {})}, **fields)


def conflicting(*sent: str, **fields: Any) -> Facts:
    keys = done(*sent, seconds_ago=300)
    return published(pulls=(pull(merge=Merge.CONFLICT),), done=keys, **fields)


def refused(key: str, **fields: Any) -> Facts:
    return published(failures={key: FAILURE}, **fields)


def rounds(count: int, **fields: Any) -> Facts:
    sent = done(*(f"address_review:{n}#1" for n in range(count)))
    return published(pulls=(pull(comments=(remark(),), **fields),), done=sent)


ESCALATING: dict[str, tuple[Facts, str, Reason]] = {
    "a question": (
        facts(agent=agent(Activity.WAITING_INPUT, question="May I?")),
        "question:2030-01-01T11%3A58%3A00+00%3A00#1",
        Reason.AGENT_QUESTION,
    ),
    "a push refused": (
        refused(f"push:{NEXT}", work=Work(base=BASE, head=NEXT)),
        f"action_failed:push:{NEXT}",
        Reason.PUSH_REFUSED,
    ),
    "a pull request refused": (
        refused(f"open_pull:{BRANCH}", pulls=()),
        f"action_failed:open_pull:{BRANCH}",
        Reason.PUSH_REFUSED,
    ),
    "a draft that could not be made ready": (
        refused("make_ready:34", pulls=(pull(draft=True),)),
        "action_failed:make_ready:34",
        Reason.PUSH_REFUSED,
    ),
    "a merge refused": (refused(MERGE), f"action_failed:{MERGE}", Reason.PUSH_REFUSED),
    "a message about checks lost": (
        red(failures={f"{CI}#1": FAILURE}),
        f"action_failed:{CI}#1",
        Reason.PUSH_REFUSED,
    ),
    "a message about a review lost": (
        published(
            pulls=(pull(comments=(remark("c1"),)),),
            failures={f"address_review:{fingerprint(['c1'])}#1": FAILURE},
        ),
        f"action_failed:address_review:{fingerprint(['c1'])}#1",
        Reason.PUSH_REFUSED,
    ),
    "a message about a conflict lost": (
        conflicting(failures={f"{CONFLICT}#1": FAILURE}),
        f"action_failed:{CONFLICT}#1",
        Reason.PUSH_REFUSED,
    ),
    "a reminder lost": (
        refused("commit_work:0#1", work=DIRTY),
        "action_failed:commit_work:0#1",
        Reason.PUSH_REFUSED,
    ),
    "all repairs used up": (
        red(done=done(*(f"fix_ci:{n}:x#1" for n in range(3)))),
        f"repairs_exhausted:{HEAD}",
        Reason.REPAIRS_EXHAUSTED,
    ),
    "a repair without a commit": (
        red(done=done(f"{CI}#1", seconds_ago=90)),
        f"no_result:{CI}",
        Reason.REPAIRS_EXHAUSTED,
    ),
    "a repair without a commit by an agent that exited": (
        red(done=done(f"{CI}#1", seconds_ago=90), agent=ended(0)),
        f"no_result:{CI}",
        Reason.REPAIRS_EXHAUSTED,
    ),
    "cancelled checks": (
        published(pulls=(pull(checks=(check(C.CANCELLED), check(name="b"))),)),
        f"checks_held:{HEAD}:{fingerprint(['ci/unit'])}",
        Reason.CHECKS_HELD,
    ),
    "all rounds of review used up": (rounds(10), "rounds_exhausted:10", Reason.REPAIRS_EXHAUSTED),
    "all rounds used up, approved and objected to": (
        rounds(10, verdicts=(approval(author="ann"), objection())),
        "rounds_exhausted:10",
        Reason.REPAIRS_EXHAUSTED,
    ),
    "a review without a commit": (
        reviewed(),
        "no_result:address_review:abc",
        Reason.REPAIRS_EXHAUSTED,
    ),
    "a review without threads without a commit": (
        reviewed(pulls=(pull(verdicts=(objection(),)),)),
        "no_result:address_review:abc",
        Reason.REPAIRS_EXHAUSTED,
    ),
    "the last of several reviews without a commit": (
        reviewed(done=done("address_review:xyz#1", seconds_ago=2000)),
        "no_result:address_review:xyz",
        Reason.REPAIRS_EXHAUSTED,
    ),
    "a conflict without a commit": (
        conflicting(f"{CONFLICT}#1"),
        f"no_result:{CONFLICT}",
        Reason.REPAIRS_EXHAUSTED,
    ),
    "a conflict after every try": (
        conflicting(*(f"resolve_conflict:{BASE}:{n}#1" for n in range(3))),
        f"no_result:{CONFLICT}",
        Reason.REPAIRS_EXHAUSTED,
    ),
    "uncommitted work after a reminder": (
        published(work=DIRTY, done=done("commit_work:0#1", seconds_ago=200)),
        "no_result:commit_work:0",
        Reason.UNCOMMITTED_WORK,
    ),
    "no commit by an agent that exited": (
        facts(agent=ended(0)),
        "nothing_to_show#1",
        Reason.NOTHING_TO_SHOW,
    ),
    "no commit by an agent that is idle for long": (
        facts(agent=agent(seconds_ago=300)),
        "nothing_to_show#1",
        Reason.NOTHING_TO_SHOW,
    ),
}


#: What people read, by the beginning of the key.
SAYS = {
    "question": "the agent asks: May I?",
    "action_failed:push": f"{NEXT[:7]} was not pushed: GitHub said no",
    "action_failed:open_pull": "the pull request could not be opened: GitHub said no",
    "action_failed:make_ready": "#34 could not be marked as ready for review: GitHub said no",
    "action_failed:merge": "#34 could not be merged: GitHub said no",
    "action_failed": "a message could not be given to the agent: GitHub said no",
    "repairs_exhausted": "checks still fail after the agent tried to repair them 3 times: "
    "unit, lint",
    "no_result:fix_ci": "the agent was sent the failed checks (unit, lint) but ended its turn "
    "without a commit",
    "checks_held": "checks were cancelled, went stale or wait for a person: unit",
    "rounds_exhausted": "comments or reviews came after 10 rounds of review, the limit "
    "(`review-rounds`), so the agent did not get them",
    "no_result:address_review": "the agent has pushed nothing since it was sent the newest "
    "comments or reviews",
    "no_result:resolve_conflict": "the conflict with the base branch remains after the agent was "
    "asked to resolve it",
    "no_result:commit_work": "the agent still has uncommitted work, although it was reminded",
    "nothing_to_show": "the agent finished without a commit",
}


@pytest.mark.parametrize(("session", "key", "reason"), ESCALATING.values(), ids=ESCALATING.keys())
def test_these_facts_escalate_under_this_key(session: Facts, key: str, reason: Reason) -> None:
    found, evidence = attention(session)
    assert found is Attention.ESCALATED
    says = next(text for cause, text in SAYS.items() if key.startswith(cause))
    assert (str(evidence.key), evidence.reason, evidence.because) == (key, reason, says)


NOT_ESCALATED: dict[str, Facts] = {
    "a push refused, and another commit since": refused(
        f"push:{HEAD}", work=Work(base=BASE, head=NEXT)
    ),
    "a pull request refused, but open": refused(f"open_pull:{BRANCH}"),
    "a draft refused, but ready": refused("make_ready:34"),
    "a merge of another head refused": refused(f"merge:{NEXT}"),
    "a lost message whose cause is gone": refused(f"{CI}#1"),
    "a message lost to an earlier run": red(failures={f"{CI}#7": FAILURE}),
    "a lost message of another kind": red(failures={"notice:x": FAILURE}),
    "two repairs, and red again": red(done=done("fix_ci:1:x#1", "fix_ci:2:x#1")),
    "three repairs, and checks still run": red(
        checks=(check(C.FAILED), check(C.PENDING, "b")),
        done=done(*(f"fix_ci:{n}:x#1" for n in range(3))),
    ),
    "three repairs, at a foreign commit": red(
        work=Work(base=BASE, head=NEXT),
        done=done(f"push:{NEXT}", *(f"fix_ci:{n}:x#1" for n in range(3))),
    ),
    "the third repair under way": red(
        agent=agent(Activity.ACTIVE, 5),
        done=done("fix_ci:1:x#1", "fix_ci:2:x#1", f"{CI}#1", seconds_ago=9),
    ),
    "a repair under way": red(
        agent=agent(Activity.ACTIVE, 5), done=done(f"{CI}#1", seconds_ago=90)
    ),
    "a repair committed, not pushed yet": red(
        work=Work(base=BASE, head=NEXT), done=done(f"{CI}#1", seconds_ago=90)
    ),
    "a repair pushed, not seen yet": red(
        work=Work(base=BASE, head=NEXT),
        done={**done(f"{CI}#1", seconds_ago=90), **done(f"push:{NEXT}", seconds_ago=5)},
    ),
    "a repair just requested": red(
        done=done(f"{CI}#1", seconds_ago=5), agent=agent(seconds_ago=60)
    ),
    "a repair lost with its run": red(
        run=2,
        agent=replace(agent(seconds_ago=10), run=2),
        done={
            **done(f"{CI}#1", seconds_ago=90),
            **done("start:crash#2", seconds_ago=60),
        },
    ),
    "three repairs, and nothing is red": published(
        done=done(*(f"fix_ci:{n}:x#1" for n in range(3)))
    ),
    "cancelled checks beside red ones": red(checks=(check(C.FAILED), check(C.CANCELLED, "b"))),
    "cancelled checks, others run": published(
        pulls=(pull(checks=(check(C.CANCELLED), check(C.PENDING, "b"))),)
    ),
    "cancelled checks just after the push": published(
        pulls=(pull(checks=(check(C.CANCELLED),), head_since=ago(59)),)
    ),
    "cancelled checks, at an unknown time": published(
        pulls=(pull(checks=(check(C.CANCELLED),), head_since=None),)
    ),
    "nine rounds of review": rounds(9),
    "all rounds, and nothing new": published(
        done=done(*(f"address_review:{n}#1" for n in range(10)))
    ),
    "all rounds, and approved": rounds(10, verdicts=(approval(),)),
    "a review sent almost half an hour ago": reviewed(
        done=done(f"{REVIEW}#1", seconds_ago=1799), agent=agent(seconds_ago=1000)
    ),
    "a review, the agent at work": reviewed(agent=agent(Activity.ACTIVE, 5)),
    "a review answered with a push": reviewed(done=done(f"push:{HEAD}", seconds_ago=100)),
    "a review answered with a commit": reviewed(work=Work(base=BASE, head=NEXT)),
    "a review that was resolved": reviewed(pulls=(pull(),)),
    "a review whose thread is outdated": reviewed(
        pulls=(pull(threads=(replace(thread(), outdated=True),)),)
    ),
    "a review by a stranger": reviewed(
        pulls=(pull(verdicts=(replace(objection(), allowed=False),)),)
    ),
    "a review not sent yet": published(pulls=(pull(verdicts=(objection(),)),)),
    "a conflict not sent yet": conflicting(),
    "a conflict that is resolved": published(done=done(f"{CONFLICT}#1", seconds_ago=300)),
    "a conflict sent, the agent at work": conflicting(
        f"{CONFLICT}#1", agent=agent(Activity.ACTIVE, 5)
    ),
    "a conflict after three tries at another base": conflicting(
        *(f"resolve_conflict:{NEXT}:{n}#1" for n in range(3))
    ),
    "a conflict of a head that is not the agent's": conflicting(
        *(f"resolve_conflict:{BASE}:{n}#1" for n in range(3)),
        f"push:{NEXT}",
        work=Work(base=BASE, head=NEXT),
    ),
    "uncommitted work": published(work=DIRTY),
    "uncommitted work, reminded, at work": published(
        work=DIRTY, agent=agent(Activity.ACTIVE, 5), done=done("commit_work:0#1")
    ),
    "uncommitted work, reminded after another request": published(
        work=DIRTY, done=done("commit_work:0#1", f"{CONFLICT}#1")
    ),
    "no commit yet": facts(agent=agent(seconds_ago=299)),
    "an unknown workspace": facts(agent=ended(0), work=Work()),
    "only uncommitted work": facts(agent=ended(0), work=Work(base=BASE, head=BASE, dirty=True)),
    "nothing new, and a pull request": published(agent=ended(0), work=Work(base=BASE, head=BASE)),
    "a commit to show": facts(agent=ended(0), work=Work(base=BASE, head=HEAD)),
    "no commit, and crashed": facts(agent=ended(1)),
    "no commit, and at work": facts(agent=agent(Activity.ACTIVE, 5)),
    "idle for a day": published(agent=agent(Activity.IDLE, 86_400)),
    "ended a day ago": published(agent=ended(0, 86_400)),
}


@pytest.mark.parametrize("session", NOT_ESCALATED.values(), ids=NOT_ESCALATED.keys())
def test_these_facts_do_not_escalate(session: Facts) -> None:
    word, evidence = attention(session)
    assert word is Attention.NONE
    assert (evidence.because, evidence.key) == ("", None)


@pytest.mark.parametrize(
    ("case", "due"),
    [
        ("a review sent almost half an hour ago", ago(-1)),
        ("cancelled checks just after the push", ago(-1)),
        ("no commit yet", ago(-1)),
        ("a review not sent yet", ago(120 - 86_400)),  # A day after the agent came to rest.
        ("a review, the agent at work", ago(-295)),  # When `active` is stale.
    ],
)
def test_the_recheck_is_due_when_an_escalation_may_begin(case: str, due: datetime | None) -> None:
    assert read(SessionView(NOT_ESCALATED[case], Policy(), NOW))[2] == due


def test_a_closed_pull_request_does_not_escalate() -> None:
    closed = replace(pull(state=PullState.CLOSED, review=Review.PENDING), number=35)
    session = published(pulls=(closed, pull()))
    assert attention(session)[0] is Attention.NONE


@pytest.mark.parametrize(
    ("who", "words"),
    [
        (agent(seconds_ago=300, summary="All is well already."), ': "All is well already."'),
        (ended(0), ""),
        (
            replace(ended(0), exit=replace(ended(0).exit, tail="\nNothing to do.\n")),  # type: ignore[type-var]
            ': "Nothing to do."',
        ),
    ],
)
def test_the_agents_last_words_are_quoted_when_it_has_no_commit(who: Agent, words: str) -> None:
    _, evidence = attention(facts(agent=who))
    assert evidence.because == f"the agent finished without a commit{words}"


def test_repairs_are_counted_and_a_question_without_words_is_named() -> None:
    repaired = red(done=done(*(f"fix_ci:{n}:x#1" for n in range(4))))
    says = "checks still fail after the agent tried to repair them 4 times: unit, lint"
    assert attention(repaired)[1].because == says
    asks = facts(agent=agent(Activity.WAITING_INPUT))
    assert attention(asks)[1].because == "the agent asks something in its terminal"
