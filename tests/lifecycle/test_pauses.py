"""What pauses a session, and how it resumes."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from lifecycle.judge.judge import judge
from lifecycle.judge.reasons import advice_on
from lifecycle.model import actions as do
from lifecycle.model.facts import Agent, DiskExcess, Facts, Spending
from lifecycle.model.key import KeyKind, parse
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import (
    Activity,
    CheckState,
    DiskLimit,
    Probe,
    PullState,
    Reason,
    Status,
)
from lifecycle.read.availability import Availability
from tests.lifecycle.decisions import AT_WORK, decision, keys
from tests.lifecycle.life import Life, until_reviewed
from tests.lifecycle.universe import (
    HEAD,
    NOW,
    agent,
    ago,
    command,
    done,
    facts,
    published,
    pull,
)

FULL = DiskExcess(limit=DiskLimit.MEGABYTES, most=20480, since=ago(60))
LIMITED = agent(Activity.BLOCKED, 60, error="429", limit_until=ago(-3600))
PAUSED: dict[str, tuple[Facts, Reason, str, str]] = {
    "by an archive": (
        facts(agent=AT_WORK, archived=True, commands=(command("pause"),)),
        Reason.REPOSITORY_ARCHIVED,
        "the repository is archived",
        "",
    ),
    "by the removal of its project": (
        facts(agent=AT_WORK, removed=True, archived=True),
        Reason.PROJECT_REMOVED,
        "widgets is no longer in the configuration, or the App was removed from its repository",
        "",
    ),
    "by a person": (
        facts(agent=AT_WORK, commands=(command("pause"),)),
        Reason.PAUSED_BY_PERSON,
        "paused by @alice",
        "",
    ),
    "by a person on the page": (
        facts(agent=AT_WORK, commands=(command("pause", actor="page:visitor"),)),
        Reason.PAUSED_BY_PERSON,
        "paused by somebody with the page token",
        "",
    ),
    "by the limit on disk": (
        facts(agent=AT_WORK, work=replace(facts().work, disk=FULL), spent=Spending(cost_usd=5)),
        Reason.DISK_LIMIT,
        "the session's files on the server (checkout, home folder, outputs) take up more than "
        "20480 MB of disk, the limit that `disk-mb` under `[sandbox]` sets",
        "disk_limit:2030-01-01T11%3A59%3A00+00%3A00",
    ),
    "by a budget": (
        facts(agent=AT_WORK, spent=Spending(cost_usd=5)),
        Reason.BUDGET_EXHAUSTED,
        "this session's dollar budget is used up",
        "budget:session:5:",
    ),
    "by a usage limit": (
        facts(agent=LIMITED),
        Reason.USAGE_LIMIT,
        "the agent's usage limit is reached; the agent resumes by itself at 2030-01-01 13:00 UTC",
        "usage_limit:2030-01-01T13%3A00%3A00+00%3A00#1",
    ),
}


@pytest.mark.parametrize(("session", "reason", "why", "key"), PAUSED.values(), ids=PAUSED.keys())
def test_each_pause_states_its_reason(session: Facts, reason: Reason, why: str, key: str) -> None:
    found = decision(session)
    assert (found.status, found.reason, found.because) == (Status.PAUSED, reason, why)
    assert judge(session, Policy(), NOW).cause == (parse(key) if key else None)
    notices = [a for a in found.actions if isinstance(a, do.Comment) and a.topic == "paused"]
    assert [str(comment.key) for comment in notices] == ([f"notice:{key}"] if key else [])
    for comment in notices:
        assert comment.values["remedy"] == advice_on(reason)
        assert comment.values["because"] == why


@pytest.mark.parametrize(("session", "_r", "_w", "_k"), PAUSED.values(), ids=PAUSED.keys())
def test_a_pause_stops_the_agent_and_frees_its_slot(
    session: Facts, _r: Reason, _w: str, _k: str
) -> None:
    found = decision(session)
    assert do.Stop(key=parse("park:work#1"), run=1) in found.actions
    assert found.holds_slot
    parked = replace(session, done={**session.done, **done("park:work#1")})
    assert not decision(parked).holds_slot
    assert not decision(parked).wants_slot


def test_a_persons_pause_outranks_budgets_and_budgets_outrank_usage_limits() -> None:
    all_of_them = facts(agent=LIMITED, spent=Spending(cost_usd=5), commands=(command("pause"),))
    assert decision(all_of_them).reason is Reason.PAUSED_BY_PERSON
    assert decision(replace(all_of_them, commands=())).reason is Reason.BUDGET_EXHAUSTED


@pytest.mark.parametrize("limit", DiskLimit)
def test_a_session_over_a_limit_on_disk_resumes_by_itself_once_it_fits(limit: DiskLimit) -> None:
    over = facts(agent=AT_WORK, work=replace(facts().work, disk=replace(FULL, limit=limit)))
    assert decision(over).reason is Reason.DISK_LIMIT
    stopped = replace(over.agent, stopped=True, program=Probe.DEAD, activity=Activity.EXITED)
    parked = replace(over, agent=stopped, done={**over.done, **done("park:work#1")})
    assert not any(key.startswith("start") for key in keys(parked))
    assert "start:resume#2" in keys(replace(parked, work=replace(parked.work, disk=None)))


# -- an archive ------------------------------------------------------------------------------------


def test_nothing_starts_or_is_written_in_an_archived_repository() -> None:
    queued = replace(facts(run=0, slot=True, agent=Agent(), archived=True), done={})
    assert (decision(queued).status, keys(queued)) == (Status.PAUSED, [])
    called = facts(archived=True, done=done("attention_label:0"), commands=(command("status"),))
    assert keys(called) == ["park:rest#1"]
    assert keys(replace(called, archived=False)) != keys(called)


def test_nothing_but_a_stop_follows_once_the_project_is_removed() -> None:
    queued = replace(facts(run=0, slot=True, agent=Agent(), removed=True), done={})
    assert (decision(queued).status, keys(queued)) == (Status.PAUSED, [])
    called = facts(removed=True, done=done("attention_label:0"), commands=(command("status"),))
    assert keys(called) == ["park:rest#1"]
    merged = published(pulls=(pull(state=PullState.MERGED),), removed=True)
    assert keys(merged) == []


def test_an_ended_session_in_an_archived_repository_is_released() -> None:
    merged = published(pulls=(pull(state=PullState.MERGED),), archived=True)
    assert keys(merged) == ["release#1"]


# -- a person --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["resume", "restart", "tell", "answer"])
def test_a_pause_ends_with_a_later_resume_restart_tell_or_answer(kind: str) -> None:
    earlier = facts(agent=AT_WORK, commands=(command(kind, at=ago(30), text="x"), command("pause")))
    assert decision(earlier).status is Status.PAUSED
    later = facts(agent=AT_WORK, commands=(command("pause"), command(kind, at=ago(10), text="x")))
    assert decision(later).status is Status.WORKING


def test_a_pause_during_a_turn_is_followed_by_a_resumed_run() -> None:
    life = Life().agent_works().person_commands("pause").reads(Status.PAUSED)
    assert life.sent("park:") == ["park:work#1"]
    assert not life.facts.slot
    life.waits(86400).reads(Status.PAUSED)
    life.person_commands("resume").reads(Status.WORKING)
    (start,) = [a for _, a in life.out if isinstance(a, do.Start) and a.run == 2]
    assert (str(start.key), start.prompt.name, start.resume) == ("start:resume#2", "resume", "talk")
    assert life.decision.holds_slot
    assert life.comments() == []


def test_a_resume_starts_a_run_of_an_agent_that_was_idle_when_paused() -> None:
    life = until_reviewed().person_commands("pause").reads(Status.PAUSED)
    assert life.sent("park:") == ["park:rest#1"]
    life.person_commands("resume").reads(Status.REVIEW_PENDING)
    assert life.received() == ["start", "resume"]
    assert life.sent("start:")[-1] == "start:resume#2"


def test_a_resumed_session_waits_for_a_slot() -> None:
    life = Life().agent_works().person_commands("pause").slots_are(False).person_commands("resume")
    assert life.decision.wants_slot
    assert life.received() == ["start"]
    life.waits(3600)
    assert life.received() == ["start"]
    life.slots_are(True)
    assert life.received() == ["start", "resume"]


def test_requests_during_a_pause_wait() -> None:
    life = until_reviewed().person_commands("pause").ci_fails().waits(90)
    life.reads(Status.PAUSED)
    assert life.received() == ["start"]
    life.person_commands("tell", "Look at the checks.")
    assert life.received() == ["start", "tell"]
    life.agent_works().agent_rests()
    assert life.received() == ["start", "tell", "fix_ci"]


def test_a_session_paused_before_its_first_run_starts_on_resume() -> None:
    life = Life(mode=Mode.OBSERVE)
    life.policy = Policy()
    life.person_commands("pause").reads(Status.PAUSED)
    assert life.sent() == ["reaction:comment-1", "command_applied:comment-1"]
    assert not life.facts.slot
    life.person_commands("resume")
    assert life.sent("start:") == ["start:first#1"]


def test_a_paused_session_holds_its_slot_while_a_start_is_pending() -> None:
    starting = facts(run=2, pending=frozenset({"start:resume#2"}), commands=(command("pause"),))
    assert decision(starting).status is Status.PAUSED
    assert decision(starting).holds_slot
    assert not decision(replace(starting, pending=frozenset())).holds_slot


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (lambda life: life.person_commands("stop"), Status.KILLED),
        (lambda life: life.issue_is(labelled=False), Status.TERMINATED),
        (lambda life: life.issue_is(open=False, state_reason="completed"), Status.DONE),
        (lambda life: life.pull_is(PullState.CLOSED), Status.TERMINATED),
        (lambda life: life.pull_is(PullState.MERGED), Status.MERGED),
    ],
    ids=["stop", "label removed", "issue closed", "pull request closed", "merge"],
)
def test_a_paused_session_can_end(end: Callable[[Life], Life], status: Status) -> None:
    end(until_reviewed().person_commands("pause").reads(Status.PAUSED)).reads(status)


# -- a usage limit ---------------------------------------------------------------------------------


def test_a_usage_limit_with_a_known_end_pauses_until_then() -> None:
    life = Life().agent_works()
    until = life.now + timedelta(hours=2)
    life.agent_is(Activity.BLOCKED, error="limit", limit_until=until).reads(Status.PAUSED)
    life.waits(120)  # It is reported by then.
    assert life.sent("park:") == ["park:work#1"]
    assert life.decision.recheck_at == until
    life.waits(7000).reads(Status.PAUSED)
    assert life.received() == ["start"]
    life.waits(300).reads(Status.WORKING)
    assert life.received() == ["start", "resume"]
    assert life.comments() == ["paused"]


def test_a_usage_limit_without_a_future_end_does_not_pause() -> None:
    for until in (None, ago(1)):
        session = facts(agent=replace(LIMITED, limit_until=until))
        assert decision(session).status is Status.WORKING


def test_a_usage_limit_does_not_pause_an_agent_that_is_not_blocked() -> None:
    ready = agent(Activity.READY, 60, limit_until=ago(-3600))
    assert decision(facts(agent=ready)).status is Status.WORKING


def test_a_restart_overrides_a_usage_limit_and_a_resume_does_not() -> None:
    limit = replace(LIMITED, limit_until=NOW + timedelta(days=1))
    stays = decision(facts(agent=limit, commands=(command("resume"),)))
    assert stays.status is Status.PAUSED
    again = facts(agent=limit, commands=(command("restart"),))
    assert decision(again).status is Status.WORKING
    assert "start:restart:comment-restart#2" in keys(again)
    before = replace(again, commands=(command("restart", at=ago(61)),))
    assert decision(before).status is Status.PAUSED
    nobody_knows = replace(again, agent=replace(limit, since=None))
    assert decision(nobody_knows).status is Status.PAUSED


def test_a_restart_withdrawn_by_a_pause_starts_one_run_after_it() -> None:
    asked = (
        command("restart", at=ago(50)),
        command("pause", at=ago(40)),
        command("resume", at=ago(30)),
    )
    applied = done(*(f"command_applied:{one.key}" for one in asked))
    ordered = facts(run=2, commands=asked, done=applied)
    assert [key for key in keys(ordered) if "start:" in key] == ["start:first#2"]
    begun = replace(
        ordered,
        agent=agent(Activity.ACTIVE, 5, run=2),
        done={**ordered.done, **done("start:first#2", seconds_ago=10)},
    )
    assert [key for key in keys(begun) if "start:" in key] == []


# -- parking ---------------------------------------------------------------------------------------


def test_a_session_that_waits_for_people_is_parked_after_15_minutes() -> None:
    life = until_reviewed().waits(890)
    assert life.sent("park:") == []
    life.waits(20).reads(Status.REVIEW_PENDING)
    assert life.sent("park:") == ["park:rest#1"]
    assert not life.facts.slot
    assert not life.decision.wants_slot
    life.waits(43200).reads(Status.REVIEW_PENDING)
    assert life.comments() == []
    assert life.received() == ["start"]


def test_park_seconds_is_configurable() -> None:
    life = until_reviewed(park_seconds=60).waits(70)
    assert life.sent("park:") == ["park:rest#1"]


def test_a_review_resumes_a_parked_session_after_a_day() -> None:
    life = until_reviewed().waits(86400).reviewer_asks().waits(61)
    (start,) = [a for _, a in life.out if isinstance(a, do.Start) and a.run == 2]
    assert (str(start.key), start.prompt.name, start.resume) == (
        *("start:message#2", "address_review"),
        "talk",
    )
    assert life.facts.slot
    life.agent_works().agent_commits().agent_rests().ci_passes().waits(1000)
    assert life.sent("park:") == ["park:rest#1", "park:rest#2"]


def test_a_parked_session_requests_a_slot_for_new_work() -> None:
    life = until_reviewed().waits(1000).slots_are(False).reviewer_asks().waits(61)
    life.reads(Status.CHANGES_REQUESTED)
    assert life.decision.wants_slot
    assert life.received() == ["start"]
    life.slots_are(True)
    assert life.received() == ["start", "address_review"]


def test_a_question_survives_parking_and_its_answer_starts_a_run() -> None:
    life = Life().agent_works().agent_is(Activity.WAITING_INPUT, question="May I?").waits(1000)
    life.reads(Status.NEEDS_INPUT)
    assert life.sent("park:") == ["park:rest#1"]
    assert life.decision.signals.availability is Availability.WAITING
    life.waits(86400).reads(Status.NEEDS_INPUT)
    assert life.comments() == ["attention"]
    life.person_commands("answer", "Yes.").reads(Status.WORKING)
    (start,) = [a for _, a in life.out if isinstance(a, do.Start) and a.run == 2]
    assert start.prompt.name == "answer"
    fields = start.prompt.values
    assert (fields["actor"], fields["text"], fields["question"]) == ("alice", "Yes.", "May I?")


def idle_for_long(who: Agent) -> Facts:
    """A pull request that waits for its review, where nothing has happened for over an hour."""
    session = published(agent=who, created=ago(9000))
    (pull,) = session.pulls
    long_ago = {**session.done, **done(f"push:{HEAD}", seconds_ago=5000)}
    return replace(session, pulls=(replace(pull, head_since=ago(5000)),), done=long_ago)


@pytest.mark.parametrize("activity", [Activity.ACTIVE, Activity.BLOCKED, Activity.NONE])
def test_an_active_or_unseen_agent_is_not_parked(activity: Activity) -> None:
    found = decision(idle_for_long(agent(activity, 5000, calling=True)), stuck_seconds=6000)
    assert found.status is Status.REVIEW_PENDING, "as of one that rests, which is parked"
    assert not [one for one in found.actions if one.key.kind is KeyKind.PARK]


@pytest.mark.parametrize(
    ("states", "parked"),
    [
        ((CheckState.PASSED,), True),
        ((CheckState.PENDING,), False),
        ((CheckState.FAILED, CheckState.PENDING), False),
        ((CheckState.CANCELLED,), True),
    ],
)
def test_a_session_is_parked_unless_checks_are_running(
    states: tuple[CheckState, ...], parked: bool
) -> None:
    life = until_reviewed().checks_are(*states).waits(5000)
    assert bool(life.sent("park:")) is parked


def test_the_parking_time_counts_from_the_last_event() -> None:
    """Events: the end of a turn, a message, a push, a new head, passing checks."""
    session = idle_for_long(agent(seconds_ago=5000))
    (quiet,) = session.pulls
    assert "park:rest#1" in keys(session)
    lately = ago(100)
    news = {
        "turn": replace(session, agent=agent(seconds_ago=100)),
        "message": replace(session, done={**session.done, **done("fix_ci:x:y#1", seconds_ago=100)}),
        "push": replace(session, done={**session.done, **done("push:x", seconds_ago=100)}),
        "head": replace(session, pulls=(replace(quiet, head_since=lately),)),
        "green": replace(session, pulls=(replace(quiet, green_since=lately),)),
    }
    for what, facts_then in news.items():
        assert "park:rest#1" not in keys(facts_then), what
