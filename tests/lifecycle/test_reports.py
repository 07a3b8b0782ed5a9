"""Reports on issues and pull requests: when they are edited, and their content."""

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from lifecycle.judge.commands import COMMAND_RULES, apply_commands, offered
from lifecycle.judge.judge import judge
from lifecycle.model import actions as do
from lifecycle.model import keys
from lifecycle.model.facts import Agent, Done, Facts, Spending
from lifecycle.model.key import parse
from lifecycle.model.keys import fingerprint
from lifecycle.model.policy import Policy
from lifecycle.model.status import Blocker, CheckState, Merge, PullState, Status
from tests.lifecycle.decisions import ASKING, AT_WORK, FAILED, decision, with_pull
from tests.lifecycle.life import Life, until_reviewed
from tests.lifecycle.test_commands import IN
from tests.lifecycle.troubles import every_session, every_trouble
from tests.lifecycle.universe import HEAD, NEXT, NOW, ago, check, command, facts, published, pull


def reports(session: Facts, **policy: Any) -> list[do.Report]:
    return [a for a in decision(session, **policy).actions if isinstance(a, do.Report)]


def checks(session: Facts, **policy: Any) -> list[do.ReportCheck]:
    return [a for a in decision(session, **policy).actions if isinstance(a, do.ReportCheck)]


def posted(session: Facts, seconds_ago: float, result: str = "77") -> Facts:
    """The same session after its current reports were posted."""
    keys = [a.key for a in reports(session)] + [a.key for a in checks(session)]
    then = Done(at=ago(seconds_ago), result=result)
    return replace(session, done={**session.done, **dict.fromkeys(keys, then)})


def red(session: Facts) -> Facts:
    return replace(session, pulls=(replace(session.pulls[0], checks=FAILED),))


# -- where and when --------------------------------------------------------------------------------


def test_a_queued_session_is_reported_on_its_issue() -> None:
    waiting = replace(facts(run=0, slot=False, agent=Agent()), done={})
    (report,) = reports(waiting)
    assert report.number == 12
    assert report.comment is None
    assert report.summary.status is Status.QUEUED


def test_a_new_session_is_reported_after_five_seconds_in_the_queue() -> None:
    waiting = replace(facts(run=0, slot=False, agent=Agent()), done={}, created=ago(4))
    assert decision(waiting).status is Status.QUEUED
    assert not reports(waiting)
    assert decision(waiting).recheck_at == NOW + timedelta(seconds=1)
    assert reports(replace(waiting, created=ago(5)))


def test_issue_and_pull_request_have_one_report_each_and_the_head_a_check_run() -> None:
    session = with_pull({})
    assert [report.number for report in reports(session)] == [12, 34]
    assert [check.head for check in checks(session)] == [HEAD]


def test_each_pull_request_report_lists_its_own_blockers() -> None:
    session = with_pull({})
    other = pull(number=35, branch="other", head=NEXT, merge=Merge.CONFLICT)
    session = replace(session, pulls=(*session.pulls, other))
    ways = {one.number: one.summary.blockers for one in reports(session)}
    assert ways[12] == ()
    assert [one.name for one in ways[34]] == ["review_required"]
    assert [one.name for one in ways[35]] == ["review_required", "conflict"]


def test_a_closed_pull_request_gets_no_report() -> None:
    session = with_pull({"state": PullState.CLOSED})
    assert [report.number for report in reports(session)] == [12]
    assert not checks(session)


def test_a_report_edits_its_earlier_comment() -> None:
    session = red(posted(with_pull({}), 61))
    assert [(one.number, one.comment) for one in reports(session)] == [(12, 77), (34, 77)]
    assert [check.check for check in checks(session)] == [77]
    lost = red(posted(with_pull({}), 61, result="only a GitHub App can create check runs"))
    assert [check.check for check in checks(lost)] == [None]


def test_a_report_is_edited_only_when_status_or_blockers_have_changed() -> None:
    session = posted(with_pull({}), 3600)
    assert not reports(session)
    assert not reports(replace(session, agent=AT_WORK)), "activity alone edits no report"
    pending = pull(checks=(check(CheckState.PENDING),), merge=Merge.BEHIND)
    assert [one.number for one in reports(replace(session, pulls=(pending,)))] == [12, 34]
    behind = posted(with_pull({"checks": (check(CheckState.PENDING),)}), 3600)
    behind = replace(behind, pulls=(pending,))
    assert [one.number for one in reports(behind)] == [34], "the issue's report has no blockers"


def test_a_new_question_updates_the_report() -> None:
    session = posted(facts(agent=ASKING), 3600)
    asks = replace(session, agent=replace(ASKING, question="May I delete it?", since=ago(1)))
    (report,) = reports(asks)
    assert report.summary.question == "May I delete it?"
    assert not reports(session)


def test_a_report_is_edited_at_most_once_per_report_seconds() -> None:
    session = red(posted(with_pull({}), 59))
    assert not reports(session)
    assert not checks(session)
    assert decision(session).recheck_at == ago(-1)
    assert reports(red(posted(with_pull({}), 60)))
    assert not reports(red(posted(with_pull({}), 60)), report_seconds=90.0)


def test_a_new_head_gets_its_check_run_at_once() -> None:
    session = posted(with_pull({}), 5)
    moved = replace(session, pulls=(replace(session.pulls[0], head=NEXT),))
    assert [one.head for one in checks(moved)] == [NEXT]


def test_an_unchanged_report_needs_no_recheck() -> None:
    assert (
        decision(posted(with_pull({}), 5)).recheck_at
        == decision(posted(with_pull({}), 500)).recheck_at
    )


def test_a_report_that_returns_to_earlier_content_is_edited_again() -> None:
    was = posted(with_pull({}), 600)
    (before,) = [key for key in was.done if str(key).startswith("report:34:")]
    between = {parse("report:34:1:x"): Done(at=ago(300), result="77")}
    again = replace(was, done={**was.done, **between})
    (report,) = [one for one in reports(again) if one.number == 34]
    assert str(report.key) == f"report:34:2:{before.cause[2]}"


def test_during_cleanup_the_report_shows_the_outcome() -> None:
    over = decision(facts(commands=(command("stop"),))).ended
    session = facts(ended=over, pending=frozenset({"stop#1"}))
    assert decision(session).status is Status.CLEANUP
    (report,) = reports(session)
    assert isinstance(report, do.Report)
    assert report.summary.status is Status.KILLED
    assert report.summary.because == "stopped by @alice"


# -- content ---------------------------------------------------------------------------------------


def test_a_report_shows_the_decision() -> None:
    (report,) = [one for one in reports(with_pull({"checks": FAILED})) if one.number == 34]
    summary = report.summary
    assert (summary.status, summary.pull) == (Status.CI_FAILED, 34)
    assert summary.because == decision(with_pull({"checks": FAILED})).because
    assert summary.blockers[0] == Blocker("ci_failing", "failing checks: unit")
    assert (summary.session, summary.agent) == ("widgets-12", "shell")


def test_a_report_offers_no_command_that_is_refused() -> None:
    """Checks one session for each state.

    Commands that may be refused because of their text are left out.
    """
    states: dict[tuple[object, ...], Facts] = {}
    for session in (*IN.values(), *every_trouble(), *every_session()):
        found = decision(session)
        state = found.status, found.reason, bool(session.pulls), bool(session.failures)
        states.setdefault((*state, len(session.commands), session.ended is None), session)
    assert {status for status, *_ in states} == set(Status)
    for known, session in states.items():
        applied = apply_commands(session, Policy(), NOW).facts
        listed = offered(judge(applied, Policy(), NOW))
        assert "help" not in listed
        heads = {one.head for one in session.pulls if one.state is PullState.OPEN}
        about = {"head": heads.pop()} if len(heads) == 1 else {}
        for kind in set(COMMAND_RULES) - {"tell", "answer", "agent", "budget", "start"}:
            text = applied.work.head if kind == "allow" else ""
            asked = replace(command(kind, at=NOW, text=text), key="asked", **about)
            given = replace(applied, commands=(*applied.commands, asked))
            replies = dict(apply_commands(given, Policy(), NOW).answers)
            accepted = keys.command_refused(asked.key) not in replies
            unlisted = COMMAND_RULES[kind].works == frozenset(Status)
            if kind == "cancel" and all(one.kind != "merge" for one in applied.commands):
                unlisted = True
            if unlisted:
                assert kind not in listed
            else:
                assert (kind in listed) is accepted, (known, kind)


def test_a_report_under_a_used_up_budget_offers_to_raise_it() -> None:
    (report, *_) = reports(published(spent=Spending(cost_usd=6)))
    assert report.summary.status is Status.PAUSED
    assert "budget" in report.summary.commands
    assert not {"resume", "restart", "retry", "cancel"} & set(report.summary.commands)


def test_a_report_of_an_active_session_lists_its_commands() -> None:
    (report,) = reports(facts(agent=AT_WORK))
    assert {"stop", "pause", "tell", "budget"} <= set(report.summary.commands)
    assert "start" not in report.summary.commands


def costs(session: Facts, **policy: Any) -> str:
    return reports(session, **policy)[0].summary.cost


def test_the_cost_is_shown_in_private_repositories_or_by_configuration() -> None:
    spent = Spending(cost_usd=1.5, tokens=9)
    public = facts(agent=AT_WORK, spent_ever=spent)
    private = replace(public, issue=replace(public.issue, private=True))
    assert costs(public) == ""
    assert costs(private) == "1.50 USD"
    assert costs(public, public_cost=True) == "1.50 USD"
    assert costs(replace(private, spent_ever=Spending(tokens=9))) == "9 tokens"
    assert costs(replace(private, spent_ever=Spending())) == ""
    unknown = replace(private, spent_ever=replace(spent, unpriced=4))
    assert costs(unknown) == "1.50 USD and 4 tokens without a price"


def test_with_state_labels_the_issue_has_the_label_of_its_status() -> None:
    session = with_pull({})
    assert not [a for a in decision(session).actions if isinstance(a, do.ShowStatus)]
    (label,) = [
        a for a in decision(session, state_labels=True).actions if isinstance(a, do.ShowStatus)
    ]
    digest = fingerprint([Status.REVIEW_PENDING])
    assert label == do.ShowStatus(
        key=parse(f"show_status:12:0:{digest}"), number=12, status=Status.REVIEW_PENDING
    )
    worn = replace(session, done={**session.done, label.key: Done(at=NOW)})
    again = decision(worn, state_labels=True).actions
    assert not [a for a in again if isinstance(a, do.ShowStatus)]


# -- over time -------------------------------------------------------------------------------------


def test_every_status_that_lasts_is_reported_once() -> None:
    life = Life(report_seconds=60)
    life.agent_works().waits(120)
    life.agent_commits().agent_rests().waits(120)
    life.ci_passes().waits(120)
    assert life.reported(12) == ["working", "pr_open", "review_pending"]
    assert life.reported(34) == ["pr_open", "review_pending"]
    life.reviewer_approves().waits(120)
    life.pull_is(PullState.MERGED).waits(600)
    assert life.reported(34)[-2:] == ["mergeable", "merged"]
    assert life.reported(12)[-1] == "merged"


def test_a_change_reverted_within_a_minute_is_not_reported() -> None:
    life = until_reviewed().waits(120)
    life.ci_fails().agent_works()
    before = list(life.reports)
    assert life.reported(34)[-1] == "ci_failed"
    life.ci_passes().ci_fails().waits(120)
    assert life.reports == before


def test_a_failed_report_blocks_nothing() -> None:
    life = Life().agent_works()
    life.failing.add("report:")
    life.agent_commits().agent_rests().ci_passes().waits(120)
    life.reads(Status.REVIEW_PENDING)
    assert life.reported(12) == ["working"]
