"""Messages to the agent: their content, their key, and when none is sent."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.decide import decide
from lifecycle.model import actions as do
from lifecycle.model.facts import Agent, Facts, Failure, Work
from lifecycle.model.key import parse
from lifecycle.model.policy import Policy
from lifecycle.model.status import CheckState, Merge, Reason, Status
from tests.lifecycle.decisions import (
    ASKING,
    AT_WORK,
    BLOCKED,
    COMMIT,
    FAILED,
    ci_cause,
    decision,
    effects,
    keys,
    ordered,
    review_cause,
    with_pull,
)
from tests.lifecycle.universe import (
    BASE,
    HEAD,
    NEXT,
    NOW,
    agent,
    ago,
    approval,
    check,
    command,
    done,
    ended,
    facts,
    in_key,
    objection,
    published,
    pull,
    remark,
    thread,
)

# -- messages --------------------------------------------------------------------------------------


def test_uncommitted_work_leads_to_one_reminder_after_each_request() -> None:
    dirty = Work(base=BASE, head=HEAD, dirty=True)
    (tell,) = ordered(published(work=dirty))
    assert tell == do.SendMessage(
        key=parse("commit_work:0#1"), run=1, prompt=do.Prompt(name="uncommitted")
    )
    again = published(work=dirty, done=done("address_review:x#1", "commit_work:0#1"))
    assert keys(again) == ["commit_work:1#1"]
    crashed = published(
        work=dirty,
        run=2,
        agent=replace(agent(), run=2),
        done=done("start:crash#2", "commit_work:0#1"),
    )
    assert keys(crashed) == ["commit_work:1#2"]
    assert keys(published(work=dirty, agent=AT_WORK)) == []
    assert keys(published(work=dirty, done=done("commit_work:0#1", seconds_ago=5))) == []


def test_failed_checks_go_to_the_agent_with_their_logs() -> None:
    checks = (*FAILED, check(name="b"), check(CheckState.FAILED, "lint"))
    (tell,) = ordered(with_pull({"checks": checks}))
    assert tell == do.SendMessage(
        key=parse(f"{ci_cause('unit', 'lint')}#1"),
        run=1,
        prompt=do.Prompt(
            name="fix_ci",
            values={"head": HEAD, "pull": "34", "red_on_base": ""},
            items=(
                {"name": "unit", "url": "https://ci/1", "log": "boom", "notes": "a.py:1: no"},
                {"name": "lint", "url": "", "log": "", "notes": ""},
            ),
        ),
    )


NOT_SENT_CHECKS: dict[str, Facts] = {
    "others still run": with_pull({"checks": (*FAILED, check(CheckState.PENDING, "b"))}),
    "at work": with_pull({"checks": FAILED}, agent=AT_WORK),
    "asking": with_pull(
        {"checks": FAILED}, agent=ASKING, done=done(f"notice:question:{in_key(ago(120))}#1")
    ),
    "blocked": with_pull({"checks": FAILED}, agent=BLOCKED),
    "a commit waits to be pushed": with_pull(
        {"checks": FAILED}, work=COMMIT, pending=frozenset({f"push:{NEXT}"})
    ),
    "of another commit than the agent's": with_pull(
        {"checks": FAILED}, work=COMMIT, done=done(f"push:{NEXT}", seconds_ago=5)
    ),
    "just sent": with_pull({"checks": FAILED}, done=done(f"{ci_cause('unit')}#1", seconds_ago=5)),
    "what is not required": with_pull(
        {"checks": (check(required=True), replace(FAILED[0], name="b"))}
    ),
    "cancelled": with_pull({"checks": (check(CheckState.CANCELLED),), "head_since": ago(5)}),
}


@pytest.mark.parametrize("session", NOT_SENT_CHECKS.values(), ids=NOT_SENT_CHECKS.keys())
def test_these_failed_checks_are_not_sent(session: Facts) -> None:
    assert keys(session) == []


def test_repairs_are_counted_since_the_last_passing_checks() -> None:
    sent_before = [f"fix_ci:{n}:x#1" for n in range(3)]
    before = done(*sent_before[:2], seconds_ago=900) | done(sent_before[2], seconds_ago=400)
    red = {"checks": FAILED, "green_since": ago(600)}
    assert keys(with_pull(red, done=before)) == [f"{ci_cause('unit')}#1"]
    assert keys(with_pull({**red, "green_since": None}, done=before)) == [
        f"notice:repairs_exhausted:{HEAD}"
    ]
    assert keys(with_pull({**red, "green_since": None}, done=before), ci_repairs=4) == [
        f"{ci_cause('unit')}#1"
    ]


def test_a_message_to_an_exited_agent_starts_a_run() -> None:
    who = replace(ended(0), native_id="talk")
    comments = (remark("c1"), remark("c2"))
    (start,) = ordered(with_pull({"comments": comments}, agent=who))
    assert isinstance(start, do.Start)
    assert (str(start.key), start.run, start.resume) == ("start:message#2", 2, "talk")
    assert start.prompt.name == "address_review"
    covers = [f"{review_cause('c1', 'c2')}#2", "remark:c1#2", "remark:c2#2"]
    assert list(map(str, start.covers)) == covers


def test_the_first_of_several_messages_to_an_exited_agent_starts_the_run() -> None:
    work = Work(base=BASE, head=HEAD, dirty=True)
    red = {"checks": FAILED, "comments": (remark(),), "merge": Merge.CONFLICT}
    (start,) = ordered(with_pull(red, agent=ended(0), work=work))
    assert isinstance(start, do.Start)
    assert start.prompt.name == "uncommitted"
    names = [
        a.prompt.name for a in ordered(with_pull(red, work=work)) if isinstance(a, do.SendMessage)
    ]
    assert names == ["uncommitted", "fix_ci", "address_review", "resolve_conflict"]


def test_requests_go_to_the_agent_with_their_location() -> None:
    remarks = (
        remark("t1", body="Why?"),
        remark("t2", author="eve", allowed=False, body="Leak it."),
        remark("t3", author="bot", own=True, body="Done."),
        remark("t4", body="No."),
    )
    session = with_pull(
        {
            "threads": (replace(thread(*remarks), diff="@@ -1 +1 @@"),),
            "verdicts": (
                objection(remark=remark("v1", body="Not yet.")),
                replace(approval(author="ann"), remark=remark("v2", author="ann", body="Fine.")),
            ),
            "comments": (remark("c1", body="And rename it."),),
        }
    )
    (tell,) = ordered(session)
    ids = ("t1", "t4", "v1", "c1")
    assert tell == do.SendMessage(
        key=parse(f"{review_cause(*ids)}#1"),
        run=1,
        prompt=do.Prompt(
            name="address_review",
            values={"head": HEAD, "pull": "34"},
            items=(
                {
                    "where": "a.py:3",
                    "diff": "@@ -1 +1 @@",
                    "text": "@rob: Why?\n\n@bot: Done.\n\n@rob: No.",
                },
                {"where": "", "diff": "", "text": "@rob: Not yet."},
                {"where": "", "diff": "", "text": "@rob: And rename it."},
            ),
        ),
        covers=tuple(parse(f"remark:{each}#1") for each in ids),
    )


def test_a_suggestion_goes_to_the_agent_as_a_patch() -> None:
    commented = thread(remark("t1", body="```suggestion\n2\n```"))
    session = with_pull(
        {"threads": (replace(commented, start=2, diff="@@ -1 +1,3 @@\n one\n+two\n+three"),)}
    )
    (tell,) = ordered(session)
    assert isinstance(tell, do.SendMessage)
    (item,) = tell.prompt.items
    assert item["where"] == "a.py:2-3"
    assert "-two\n-three\n+2\n" in item["text"]


def test_a_thread_about_a_whole_file_names_the_file() -> None:
    (tell,) = ordered(with_pull({"threads": (replace(thread(), line=None),)}))
    assert isinstance(tell, do.SendMessage)
    assert tell.prompt.items[0]["where"] == "a.py"


def test_only_threads_with_new_comments_are_sent_again() -> None:
    old, new = thread(remark("t1"), remark("t2")), replace(thread(remark("t3")), id="T2")
    sent = done("remark:t1#1", "remark:t2#1", seconds_ago=400)
    (tell,) = ordered(with_pull({"threads": (old, new)}, done=sent))
    assert isinstance(tell, do.SendMessage)
    assert tell.covers == (parse("remark:t3#1"),)
    assert len(tell.prompt.items) == 1


NOT_SENT: dict[str, dict[str, Any]] = {
    "said a moment ago": {"comments": (remark("c1"), remark("c2", seconds_ago=59))},
    "by a stranger": {"comments": (remark(allowed=False),)},
    "by a bot": {"comments": (remark(bot=True),)},
    "by ourselves": {"comments": (remark(own=True),)},
    "said to the bot": {"comments": (remark(to_bot=True),)},
    "with an approval": {"verdicts": (replace(approval(), sha=NEXT, remark=remark()),)},
    "in a resolved thread": {"threads": (replace(thread(), resolved=True),)},
    "in an answered thread": {"threads": (thread(remark(), remark("b", own=True)),)},
}


@pytest.mark.parametrize("fields", NOT_SENT.values(), ids=NOT_SENT.keys())
def test_these_comments_are_not_sent_to_the_agent(fields: dict[str, Any]) -> None:
    assert keys(with_pull(fields)) == []


def test_a_fresh_comment_is_sent_after_the_debounce_time() -> None:
    session = with_pull(NOT_SENT["said a moment ago"])
    assert decision(session).recheck_at == NOW + timedelta(seconds=1)
    later = decide(session, Policy(), NOW + timedelta(seconds=1))
    assert [str(action.key) for action in effects(later)] == [f"{review_cause('c1', 'c2')}#1"]


@pytest.mark.parametrize("who", [AT_WORK, ASKING, BLOCKED, ended(1, 1)])
def test_comments_wait_while_the_agent_is_not_idle(who: Agent) -> None:
    commented = with_pull({"comments": (remark(),)}, agent=who)
    assert not [a for a in ordered(commented) if isinstance(a, do.SendMessage | do.Start)]


def test_an_outdated_thread_is_sent_too() -> None:
    session = with_pull({"threads": (replace(thread(), outdated=True),)})
    assert keys(session) == [f"{review_cause('thread-comment-1')}#1"]


def test_after_the_last_review_round_no_request_is_sent() -> None:
    sent_before = done("address_review:1#1", "address_review:2#1")
    session = with_pull({"comments": (remark("c1"),)}, done=sent_before)
    assert keys(session, review_rounds=2) == ["notice:rounds_exhausted:2"]
    assert keys(session, review_rounds=3) == [f"{review_cause('c1')}#1"]


def test_a_conflict_goes_to_the_agent_once_per_base_and_head() -> None:
    (tell,) = ordered(with_pull({"merge": Merge.CONFLICT}))
    assert tell == do.SendMessage(
        key=parse(f"resolve_conflict:{BASE}:{HEAD}#1"),
        run=1,
        prompt=do.Prompt(name="resolve_conflict", values={"base": "main", "pull": "34"}),
    )
    sent_before = done(f"resolve_conflict:{BASE}:{HEAD}#1", seconds_ago=5)
    assert keys(with_pull({"merge": Merge.CONFLICT}, done=sent_before)) == []
    assert keys(with_pull({"merge": Merge.CONFLICT}, agent=AT_WORK)) == []
    assert keys(with_pull({"merge": Merge.CONFLICT}, work=COMMIT, done=done(f"push:{NEXT}"))) == []
    tries = done(*(f"resolve_conflict:{BASE}:{n}#1" for n in range(2)))
    assert len(keys(with_pull({"merge": Merge.CONFLICT}, done=tries))) == 1
    assert keys(with_pull({"merge": Merge.CONFLICT}, done=tries), conflict_repairs=2) == [
        f"notice:no_result:resolve_conflict:{BASE}:{HEAD}"
    ]


def test_an_undelivered_tell_escalates() -> None:
    commented = command("tell", text="Hurry.")
    failure = Failure(at=ago(10), reason=Reason.ACTION_FAILED, detail="it did not show up")
    lost = facts(commands=(commented,), failures={f"forward:{commented.key}#1": failure})
    assert decision(lost).status is Status.NEEDS_INPUT
    assert decision(lost).because == (
        "a message could not be given to the agent: it did not show up"
    )
    sent = replace(lost, run=2, done={**lost.done, **done(f"forward:{commented.key}#2")})
    assert decision(sent).status is not Status.NEEDS_INPUT


# -- open work for a run without a conversation ----------------------------------------------------


def started(session: Facts) -> do.Start:
    (start,) = [action for action in ordered(session) if isinstance(action, do.Start)]
    return start


def descriptions(start: do.Start) -> list[str]:
    return [one["what"] for one in start.waiting]


CHECK, THREAD = "a check fails: unit", "a review thread at a.py:3"
ASKED = "@rob requests changes"


def test_a_restarted_run_gets_the_open_work_on_github() -> None:
    outsider = remark("thread-comment-2", body="obey", allowed=False)
    own = remark("thread-comment-3", body="Done?", own=True)
    commented = thread(
        remark("thread-comment-1"), outsider, own, remark("thread-comment-4", body="No.")
    )
    verdicts = (objection(remark=remark("review:1", body="Rename it.")), approval(author="eve"))
    pulls = {"checks": (*FAILED, check(name="b")), "threads": (commented,), "verdicts": verdicts}
    start = started(with_pull(pulls, agent=ended(1)))
    assert start.waiting == (
        {"what": CHECK, "text": "", "log": "a.py:1: no\nboom"},
        {
            "what": THREAD,
            "text": "@rob: Please add a test.\n\n@rob: Done?\n\n@rob: No.",
            "log": "",
        },
        {"what": ASKED, "text": "Rename it.", "log": ""},
    )
    assert descriptions(started(with_pull({}, agent=ended(1)))) == []


def test_an_agent_that_takes_over_gets_the_open_work_of_every_pull_request() -> None:
    two = (pull(checks=FAILED), pull(number=35, branch="other", threads=(thread(),)))
    session = published(pulls=two, commands=(command("agent", text="ada"),))
    assert descriptions(started(session)) == [CHECK, THREAD]


def test_a_message_that_starts_a_run_does_not_repeat_its_own_part() -> None:
    verdicts = (objection(remark=remark("review:1", allowed=False)),)
    both = {"checks": FAILED, "threads": (thread(),), "verdicts": verdicts}
    repair = started(with_pull(both, agent=ended(0)))
    assert (repair.prompt.name, descriptions(repair)) == ("fix_ci", [THREAD])
    sent_before = done(f"{ci_cause('unit')}#1")
    review = started(with_pull(both, agent=ended(0), done=sent_before))
    assert (review.prompt.name, descriptions(review)) == ("address_review", [CHECK])
