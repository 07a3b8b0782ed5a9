"""Reactions: the actions each orders, when it does, and when not."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model import actions as do
from lifecycle.model.facts import Agent, Ended, Facts, Failure, Push, Remark, Work
from lifecycle.model.key import parse
from lifecycle.model.keys import fingerprint
from lifecycle.model.policy import MergeMethod, Mode
from lifecycle.model.status import (
    Activity,
    CheckState,
    Merge,
    Mover,
    Probe,
    PullState,
    Reason,
    Status,
)
from tests.lifecycle.decisions import (
    ASKING,
    AT_WORK,
    BLOCKED,
    COMMIT,
    FAILED,
    READY,
    decision,
    effects,
    keys,
    ordered,
    with_pull,
)
from tests.lifecycle.universe import (
    BASE,
    BRANCH,
    HEAD,
    NEXT,
    NOW,
    OTHER,
    agent,
    ago,
    check,
    command,
    done,
    ended,
    facts,
    published,
    pull,
    remark,
    thread,
)


def kinds(session: Facts) -> list[str]:
    return [action.key.kind for action in effects(decision(session))]


def test_a_handover_is_announced_before_a_question_and_its_label() -> None:
    push = {"head": OTHER, "head_by": Mover.PERSON, "person": Push(sha=OTHER, at=ago(9))}
    asks = with_pull(push, agent=ASKING)
    assert kinds(asks) == ["handed_to_human", "notice", "attention_label"]


# -- the program -----------------------------------------------------------------------------------


def test_the_first_run_starts_with_the_start_prompt() -> None:
    (start,) = ordered(replace(facts(run=0, agent=Agent()), done={}))
    assert start == do.Start(key=parse("start:first#1"), run=1, prompt=do.Prompt(name="start"))


def test_a_run_that_is_being_started_is_not_started_again() -> None:
    session = facts(run=0, agent=Agent(), pending=frozenset({parse("start:first#1")}))
    assert keys(replace(session, done={})) == []
    assert keys(facts(run=2, agent=ended(0), pending=frozenset({"start:message#2"}))) == []


def test_a_queued_session_orders_no_actions() -> None:
    assert keys(replace(facts(run=0, slot=False, agent=Agent()), done={})) == []


@pytest.mark.parametrize(("before", "wait"), [(0, 5), (1, 10), (2, 20)])
def test_a_crashed_run_restarts_with_growing_delays(before: int, wait: int) -> None:
    starts = done(*(f"start:crash#{run}" for run in range(2, before + 2)))
    run = before + 1

    def at(seconds: float) -> Facts:
        who = replace(ended(1, seconds), run=run, native_id="remarks")
        return facts(run=run, agent=who, done=starts)

    assert keys(at(wait - 0.5)) == []
    assert decision(at(wait - 0.5)).recheck_at == NOW + timedelta(seconds=0.5)
    (start,) = ordered(at(wait))
    assert start == do.Start(
        key=parse(f"start:crash#{run + 1}"),
        run=run + 1,
        prompt=do.Prompt(name="resume"),
        resume="remarks",
    )


def test_the_delay_before_a_restart_is_capped() -> None:
    crashes = [f"start:crash#{run}" for run in range(2, 12)]
    who = replace(ended(1, 300), run=11)
    assert keys(facts(run=11, agent=who, done=done(*crashes)), restarts=99) == ["start:crash#12"]


def test_an_agent_that_vanished_restarts() -> None:
    gone = replace(ended(), exit=None, since=None, seen=None)
    assert keys(facts(agent=gone)) == ["start:crash#2"]
    assert keys(facts(agent=gone, done=done("start:first#1", seconds_ago=4))) == []


@pytest.mark.parametrize(
    "session",
    [facts(agent=ended(0)), facts(agent=AT_WORK), facts(run=0, agent=Agent(), commands=())],
    ids=["ended well", "at work", "never ran"],
)
def test_a_run_that_did_not_crash_is_not_restarted(session: Facts) -> None:
    assert not [key for key in keys(session) if key.startswith("start:crash")]


def test_an_outcome_stops_the_agent_and_is_posted_on_the_issue() -> None:
    stop, comment = ordered(
        with_pull({"state": PullState.CLOSED}, agent=replace(AT_WORK, run=2), run=2)
    )
    assert stop == do.Stop(key=parse("stop#2"), run=2)
    assert comment == do.Comment(
        key=parse("outcome:terminated:pr_closed#2"),
        number=12,
        topic="ended",
        values={
            "session": "widgets-12",
            "because": "the pull request was closed without a merge",
            "remedy": "Reopen the pull request to continue; its branch is kept.",
            "priority": "info",
            "status": "terminated",
        },
    )


def test_a_session_that_never_ran_is_not_stopped() -> None:
    session = facts(run=0, agent=Agent(), commands=(command("stop", comment=None),))
    assert keys(session) == ["outcome:killed:manually_killed"]


def test_a_stopped_session_only_posts_its_outcome() -> None:
    session = facts(commands=(command("stop", comment=None),), done=done("stop#1"))
    outcome = ["outcome:killed:manually_killed#1"]
    assert keys(session) == outcome
    over = decision(session).ended
    assert keys(replace(session, ended=over, pending=frozenset({parse("stop#1")}))) == outcome


def merged(**fields: Any) -> Facts:
    tidied = done(f"delete_branch:{BRANCH}", "close_issue")
    merge = {"state": PullState.MERGED, "merged_at": fields.pop("merged_at", ago(100))}
    return with_pull(merge, done={**tidied, **fields.pop("done", {})}, **fields)


@pytest.mark.parametrize(
    "who",
    [agent(), agent(Activity.NONE), ASKING, BLOCKED, ended(0), ended(1), replace(AT_WORK, run=0)],
)
def test_after_a_merge_the_workspace_is_released_at_once(who: Agent) -> None:
    assert ordered(merged(agent=who)) == [do.Release(key=parse("release#1"), run=1)]


def test_after_a_merge_an_active_agent_has_five_minutes() -> None:
    assert keys(merged(agent=AT_WORK)) == []
    assert decision(merged(agent=AT_WORK)).recheck_at == ago(100) + timedelta(minutes=5)
    assert keys(merged(agent=AT_WORK, merged_at=ago(300))) == ["release#1"]
    assert keys(merged(agent=agent(program=Probe.UNKNOWN), merged_at=ago(299))) == []


def test_without_a_merge_time_the_grace_period_starts_when_the_merge_is_seen() -> None:
    def remembered(seconds: float) -> Facts:
        end = Ended(
            status=Status.MERGED, reason=Reason.PR_MERGED, because="merged", at=ago(seconds)
        )
        return merged(agent=AT_WORK, merged_at=None, ended=end)

    assert keys(merged(agent=AT_WORK, merged_at=None)) == []
    assert keys(remembered(299)) == []
    assert keys(remembered(300)) == ["release#1"]


def test_a_release_happens_once_and_only_after_a_run() -> None:
    assert keys(merged(done=done("release#1"))) == []
    assert keys(merged(run=0, agent=Agent())) == []


# -- its work --------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", [agent(), agent(Activity.IDLE, 999), ended(0)])
def test_commits_are_pushed_at_the_end_of_a_turn(who: Agent) -> None:
    assert keys(facts(agent=who, work=COMMIT)) == [f"push:{NEXT}"]
    assert keys(published(agent=who, work=COMMIT)) == [f"push:{NEXT}"]


@pytest.mark.parametrize("who", [AT_WORK, BLOCKED, ended(1, 1), agent(program=Probe.UNKNOWN)])
def test_commits_are_not_pushed_during_a_turn(who: Agent) -> None:
    assert keys(facts(agent=who, work=COMMIT)) == []


def test_commits_are_pushed_during_an_escalation() -> None:
    failures = {f"merge:{HEAD}": Failure(at=ago(9), reason=Reason.ACTION_FAILED, detail="no")}
    session = published(
        work=COMMIT, failures=failures, done=done(f"notice:action_failed:merge:{HEAD}")
    )
    assert decision(session).status is Status.NEEDS_INPUT
    assert keys(session) == [f"push:{NEXT}"]


def pushed(**fields: Any) -> Facts:
    work = Work(base=BASE, head=HEAD, dirty=False)
    return facts(**{"work": work, "done": done(f"push:{HEAD}"), **fields})


@pytest.mark.parametrize("who", [agent(), AT_WORK, ended(0)])
@pytest.mark.parametrize("draft", [True, False])
def test_a_pushed_branch_becomes_a_pull_request(who: Agent, draft: bool) -> None:
    expected = do.OpenPull(key=parse(f"open_pull:{BRANCH}"), head=HEAD, draft=draft)
    assert ordered(pushed(agent=who), draft=draft) == [expected]


def test_no_pull_request_is_opened_without_a_push_or_beside_another() -> None:
    dirty = Work(base=BASE, head=BASE, dirty=True)
    assert f"open_pull:{BRANCH}" not in keys(facts(work=dirty))
    assert keys(pushed(pulls=(pull(),), done=done(f"push:{HEAD}"))) == []
    with_more = pushed(work=Work(base=BASE, head=HEAD, dirty=True), agent=AT_WORK)
    assert keys(with_more) == [f"open_pull:{BRANCH}"]


# -- people ----------------------------------------------------------------------------------------


def answered(push: float = 500, **fields: Any) -> list[do.Action]:
    """Return the actions if a thread was sent 600 s ago, and the bot pushed `push` seconds ago."""
    remarks: tuple[Remark, ...] = fields.pop("remarks", (remark("thread-comment-1", 700),))
    sent = done("remark:thread-comment-1#1", seconds_ago=600) | fields.pop("done", {})
    threads = (replace(thread(*remarks), **fields.pop("thread", {})),)
    pushes = done(f"push:{HEAD}", seconds_ago=push)
    fields = {"agent": AT_WORK, **fields}
    return ordered(with_pull({"threads": threads}, done={**sent, **pushes}, **fields))


def test_a_thread_is_answered_with_the_commit_pushed_after_it_was_sent() -> None:
    expected = do.Reply(
        key=parse(f"reply:{fingerprint(['thread-comment-1'])}"),
        number=34,
        threads=("T1",),
        topic="done_in",
        values={"sha": HEAD},
    )
    assert answered() == [expected]
    assert answered(thread={"outdated": True}) == [expected]
    assert answered(agent=ended(0)) == [expected]


@pytest.mark.parametrize(
    "fields",
    [
        {"push": 600},
        {"push": 700},
        {"thread": {"resolved": True}},
        {"remarks": (remark("thread-comment-1", 700), remark("b", own=True))},
        {"remarks": (remark("thread-comment-1", 700), remark("thread-comment-2", 100))},
        {"done": done("remark:thread-comment-1#1", seconds_ago=100)},
        {"done": done("start:crash#2", seconds_ago=550), "run": 2},
        {"done": done(f"reply:{fingerprint(['thread-comment-1'])}")},
    ],
    ids=[
        *("pushed at the same time", "pushed before", "resolved", "answered", "more was said"),
        *("sent again since", "the run crashed before the push", "answered already"),
    ],
)
def test_these_threads_are_not_answered(fields: dict[str, Any]) -> None:
    assert not [action for action in answered(**fields) if isinstance(action, do.Reply)]


def test_a_thread_on_a_foreign_commit_is_not_answered() -> None:
    session = with_pull(
        {"head": NEXT, "threads": (thread(),)}, done=done("remark:thread-comment-1#1")
    )
    assert keys(replace(session, agent=AT_WORK)) == []


def test_a_help_command_is_acknowledged_and_answered() -> None:
    asks_help = command("help", text="the list", number=12)
    react, comment = effects(decision(facts(agent=AT_WORK, commands=(asks_help,))))
    assert react == do.React(key=parse("reaction:comment-help"), comment=77, content="eyes")
    assert comment == do.Comment(
        key=parse("command_applied:comment-help"),
        number=12,
        topic="answer",
        values={"text": "the list"},
    )
    assert keys(facts(agent=AT_WORK, commands=(command("merge", comment=None),))) == []


def test_an_escalation_is_posted_on_the_issue_or_the_pull_request() -> None:
    asks = replace(ASKING, question="May I?")
    (comment,) = ordered(facts(agent=asks))
    assert isinstance(comment, do.Comment)
    assert str(comment.key) == "notice:question:2030-01-01T11%3A58%3A00+00%3A00#1"
    assert (comment.number, comment.topic) == (12, "attention")
    assert comment.values == {
        "session": "widgets-12",
        "because": "the agent asks: May I?",
        "remedy": "Write `/mergewright answer TEXT`, or answer in the agent's terminal (on the "
        "server: `mergewright attach SESSION`).",
        "priority": "action",
    }
    assert ordered(published(agent=asks))[0].number == 34  # type: ignore[union-attr]
    (stuck,) = ordered(facts(agent=agent(Activity.BLOCKED, 700, error="529")))
    assert str(stuck.key) == "notice:stuck:agent_blocked:2030-01-01T11%3A48%3A20+00%3A00#1"


# -- the merge -------------------------------------------------------------------------------------


def test_in_merge_mode_a_ready_pull_request_merges_at_the_judged_commit() -> None:
    (merge,) = ordered(with_pull(READY), mode=Mode.MERGE, merge_method=MergeMethod.REBASE)
    key = parse(f"merge:{HEAD}")
    assert merge == do.MergePull(
        key=key, number=34, sha=HEAD, base="main", method=MergeMethod.REBASE
    )


def test_in_propose_mode_a_ready_pull_request_is_announced() -> None:
    (comment,) = ordered(with_pull(READY))
    key = parse(f"ready_to_merge:{HEAD}")
    assert comment == do.Comment(key=key, number=34, topic="ready", values={"sha": HEAD})


CANCEL = command("cancel", at=ago(5), comment=None)


@pytest.mark.parametrize(
    ("commands", "key"),
    [
        ((command("merge", head=HEAD, comment=None),), f"merge:{HEAD}"),
        ((command("merge", head=NEXT, comment=None),), f"ready_to_merge:{HEAD}"),
        ((command("merge", comment=None),), f"ready_to_merge:{HEAD}"),
        ((command("help", head=HEAD, comment=None),), f"ready_to_merge:{HEAD}"),
        ((command("merge", head=HEAD, at=ago(9), comment=None), CANCEL), f"ready_to_merge:{HEAD}"),
        ((command("merge", head=HEAD, at=ago(1), comment=None), CANCEL), f"merge:{HEAD}"),
    ],
    ids=["this head", "another head", "no head", "another command", "cancelled", "said again"],
)
def test_a_merge_command_applies_only_to_its_head(commands: Any, key: str) -> None:
    assert keys(with_pull(READY, commands=commands))[0] == key


@pytest.mark.parametrize(
    "pulls",
    [
        {},
        {**READY, "draft": True},
        {**READY, "checks": FAILED},
        {**READY, "checks": (check(CheckState.PENDING),)},
        {**READY, "threads": (thread(),)},
        *({**READY, "merge": merge} for merge in Merge if merge is not Merge.CLEAN),
    ],
)
def test_a_pull_request_that_is_not_ready_is_neither_merged_nor_announced(
    pulls: dict[str, Any],
) -> None:
    session = with_pull(pulls, agent=AT_WORK, commands=(command("merge", head=HEAD, comment=None),))
    assert keys(session, mode=Mode.MERGE) == []


def test_after_a_merge_the_branch_is_deleted_and_the_issue_closed() -> None:
    session = with_pull({"state": PullState.MERGED}, agent=AT_WORK)
    assert keys(session) == [f"delete_branch:{BRANCH}", "close_issue"]
    assert keys(session, delete_branch=False) == ["close_issue"]
    assert keys(session, close_issue=False) == [f"delete_branch:{BRANCH}"]
    releasing = replace(session, pending=frozenset({parse("release#1")}))
    assert keys(releasing) == [f"delete_branch:{BRANCH}", "close_issue"]


def test_the_branch_is_deleted_at_the_merged_commit() -> None:
    closed = replace(pull(state=PullState.CLOSED, head=NEXT), number=35)
    session = published(pulls=(closed, pull(state=PullState.MERGED)), agent=AT_WORK)
    (deleted, _) = ordered(session)
    assert isinstance(deleted, do.DeleteBranch)
    assert (deleted.sha, deleted.base) == (HEAD, "main")
