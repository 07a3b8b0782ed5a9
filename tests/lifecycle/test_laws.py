"""Laws of a decision, over every combination of facts or signals."""

from datetime import timedelta
from functools import cache

import pytest
from msgspec.structs import replace

from lifecycle.decide import Decision, decide
from lifecycle.judge.escalations import ESCALATIONS
from lifecycle.judge.judge import foremost, read
from lifecycle.judge.pauses import PAUSES
from lifecycle.judge.rules import RULES, blockers_for, rule_for
from lifecycle.judge.signals import OVER, Attention, Ci, Output, Signals, Stage
from lifecycle.judge.stalls import STALLS
from lifecycle.model import actions as do
from lifecycle.model.facts import Done, Facts
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import TERMINAL, CheckState, Merge, PullState, Review, Status
from lifecycle.react.reactions import REACTIONS, UNDER_WAY
from lifecycle.read.availability import Availability
from lifecycle.read.session_view import SessionView
from tests.lifecycle.troubles import every_trouble
from tests.lifecycle.universe import NOW, every_fact, every_signal

POLICIES = [Policy(), Policy(mode=Mode.MERGE)]


# Built on first use: every test worker imports this file, one runs it.
@cache
def all_signals() -> list[Signals]:
    return [*every_signal()]


@cache
def all_facts() -> list[Facts]:
    return [*every_fact(), *every_trouble()]


@cache
def judged(mode: Mode = Mode.PROPOSE) -> list[tuple[Facts, Decision]]:
    """Every combination, judged once under each policy."""
    return [(given, decide(given, Policy(mode=mode), NOW)) for given in all_facts()]


def test_the_universe_is_large() -> None:
    assert 20_000 < len(all_signals()) < 200_000
    assert len(all_facts()) > 5_000


def test_every_rule_is_the_first_to_match_somewhere() -> None:
    used = {id(rule_for(signals)) for signals in all_signals()}
    assert [rule.reads for rule in RULES if id(rule) not in used] == []


def test_every_status_has_a_rule() -> None:
    assert {rule.status for rule in RULES} == set(Status)


def test_every_status_is_read_off_some_facts() -> None:
    assert {decision.status for _, decision in judged()} == set(Status)


def test_every_status_has_a_reaction_of_its_own() -> None:
    """Reports, acknowledgements and labels follow in nearly every status; they do not count."""
    own = [row for row in REACTIONS if len(row.statuses) < len(Status) - 2]
    assert {status for row in own for status in row.statuses} == set(Status)


def test_every_reaction_acts_somewhere() -> None:
    acted = {
        row.name
        for signals in all_signals()
        for row in REACTIONS
        if rule_for(signals).status in row.statuses and row.when(signals)
    }
    assert acted == {row.name for row in REACTIONS}


def test_a_session_has_a_terminal_status_exactly_when_it_is_over() -> None:
    for signals in all_signals():
        assert (rule_for(signals).status in TERMINAL) == (signals.stage in OVER)


def test_the_state_of_the_pull_request_never_hides_an_escalation() -> None:
    for signals in all_signals():
        if signals.stage is Stage.RUNNING and signals.attention is not Attention.NONE:
            assert rule_for(signals).status in (Status.NEEDS_INPUT, Status.STUCK)


def test_a_session_is_mergeable_exactly_when_nothing_blocks() -> None:
    for signals in all_signals():
        if rule_for(signals).status is Status.MERGEABLE:
            assert blockers_for(signals) == ()
            assert signals.ci in (Ci.PASSING, Ci.NONE)
            assert signals.review in (Review.APPROVED, Review.NONE)
            assert signals.merge is Merge.CLEAN


def test_an_open_pull_request_that_is_not_mergeable_lists_blockers() -> None:
    for signals in all_signals():
        status = rule_for(signals).status
        if signals.pull != "none" and status in UNDER_WAY - {
            Status.MERGEABLE,
            Status.NEEDS_INPUT,
            Status.STUCK,
        }:
            assert blockers_for(signals), signals


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.mode)
def test_a_decision_is_deterministic(policy: Policy) -> None:
    for given, decision in judged(policy.mode)[::7]:
        assert decide(given, policy, NOW) == decision


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.mode)
def test_an_ordered_action_is_not_ordered_again(policy: Policy) -> None:
    for given, decision in judged(policy.mode):
        keys = {action.key for action in decision.actions}
        if not keys:
            continue
        ordered = replace(given, pending=given.pending | keys)
        again = {action.key for action in decide(ordered, policy, NOW).actions}
        assert not keys & again


def test_no_two_actions_of_a_decision_have_one_key() -> None:
    for _, decision in judged():
        keys = [action.key for action in decision.actions]
        assert len(keys) == len(set(keys))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.mode)
def test_carrying_out_decisions_reaches_a_fixed_point(policy: Policy) -> None:
    for given, decision in judged(policy.mode):
        now, state, actions = NOW, given, decision.actions
        for _ in range(8):
            if not actions:
                break
            now += timedelta(milliseconds=1)
            state = _done(state, actions, now)
            actions = decide(state, policy, now).actions
        assert actions == (), given


def _done(given: Facts, actions: tuple[do.Action, ...], now: object) -> Facts:
    """The same facts after the actions were done."""
    keys = [key for action in actions for key in (action.key, *getattr(action, "covers", ()))]
    runs = [action.run for action in actions if isinstance(action, do.Start)]
    done = {**given.done, **{key: Done(at=now) for key in keys}}  # type: ignore[arg-type]
    return replace(given, done=done, run=max([given.run, *runs]))


def test_the_same_facts_give_the_same_decision_at_any_instant_before_the_recheck() -> None:
    instant = timedelta(microseconds=1)
    for given, first in judged():
        end = first.recheck_at or NOW + timedelta(days=30)
        assert end > NOW
        for later in {NOW + instant, NOW + (end - NOW) / 2, end - instant}:
            if later < end:
                then = decide(given, Policy(), later)
                same = replace(then, recheck_at=first.recheck_at, ended=first.ended)
                assert same == first, (given, later)


def test_a_recheck_does_not_depend_on_the_order_of_evaluation() -> None:
    questions = [name for name, value in vars(SessionView).items() if isinstance(value, property)]
    for given, _ in judged():
        view = foremost(SessionView(given, Policy(), NOW))
        first = read(view)
        for row in reversed((*PAUSES, *STALLS, *ESCALATIONS)):
            row(view)
        for name in questions:
            getattr(view, name)
        assert read(view) == first == read(foremost(SessionView(given, Policy(), NOW)))


def test_messages_are_sent_only_to_an_agent_that_is_idle_or_has_exited() -> None:
    for given, decision in judged():
        for action in decision.actions:
            if isinstance(action, do.SendMessage):
                assert decision.signals.availability is Availability.IDLE, given
            if isinstance(action, do.Start) and str(action.key).startswith("start:message"):
                assert decision.signals.availability is Availability.EXITED, given


def test_an_ended_session_starts_sends_and_publishes_nothing() -> None:
    for _, decision in judged(Mode.MERGE):
        if decision.status in TERMINAL:
            for action in decision.actions:
                assert not isinstance(
                    action, do.Start | do.SendMessage | do.Publish | do.OpenPull | do.MergePull
                )


def test_the_branch_is_deleted_and_the_issue_closed_only_after_a_merge() -> None:
    for given, decision in judged():
        for action in decision.actions:
            if isinstance(action, do.DeleteBranch | do.CloseIssue):
                assert any(pull.state is PullState.MERGED for pull in given.pulls)


def test_only_green_approved_and_clean_pull_requests_merge_at_the_judged_commit() -> None:
    merged = 0
    for given, decision in judged(Mode.MERGE):
        for action in decision.actions:
            if isinstance(action, do.MergePull):
                merged += 1
                pull = next(one for one in given.pulls if one.number == action.number)
                counted = [c for c in pull.checks if c.required] or list(pull.checks)
                assert all(check.state is CheckState.PASSED for check in counted)
                assert action.sha == pull.head
                assert pull.base_branch not in {
                    one.branch for one in given.pulls if one.state == "open"
                }
                assert pull.merge is Merge.CLEAN
                assert not pull.draft
                assert any(
                    v.approved
                    and v.sha in {pull.head, *pull.carried}
                    and v.author != given.requester
                    for v in pull.verdicts
                )
                assert not any(not v.approved for v in pull.verdicts)
    assert merged


def test_nothing_merges_without_a_command_in_propose_mode() -> None:
    for _, decision in judged():
        for action in decision.actions:
            assert not isinstance(action, do.MergePull)


def test_observe_mode_orders_no_actions() -> None:
    for given in all_facts()[::5]:
        assert decide(given, Policy(mode=Mode.OBSERVE), NOW).actions == ()


def test_comments_by_people_without_write_access_never_reach_the_agent() -> None:
    for given, decision in judged():
        for pull in given.pulls:
            if any(not remark.allowed for remark in pull.comments):
                text = repr(decision.actions)
                assert "Please add a test." not in text or pull.threads


def test_a_merge_ends_the_session_exactly_when_no_pull_request_is_open() -> None:
    for given, decision in judged():
        states = {pull.state for pull in given.pulls}
        if PullState.MERGED in states and PullState.OPEN not in states:
            assert decision.signals.stage is Stage.MERGED


def test_a_stacked_pull_request_is_never_ready_and_lists_the_blocker() -> None:
    for signals in all_signals():
        if signals.stacked and signals.stage is Stage.RUNNING:
            assert rule_for(signals).status not in (Status.MERGEABLE, Status.APPROVED)
            assert "stacked" in [row.name for row in blockers_for(signals)]


def test_nothing_is_pushed_before_remote_commits_are_merged() -> None:
    for given, decision in judged():
        if decision.signals.output is Output.FOREIGN:
            assert not any(isinstance(a, do.Publish) for a in decision.actions), given


def test_a_failed_probe_never_ends_a_session() -> None:
    for given, decision in judged():
        if given.agent.program == "unknown" and given.agent.run:
            assert decision.status is not Status.ERRORED, given
