"""Laws of a decision, over every combination of facts or signals."""

from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from itertools import chain

import pytest
from msgspec.structs import replace

from lifecycle.decide import Decision, decide
from lifecycle.judge.escalations import ESCALATIONS
from lifecycle.judge.judge import foremost, read
from lifecycle.judge.pauses import PAUSES
from lifecycle.judge.reasons import needs_person
from lifecycle.judge.rules import RULES, Rule, blockers_for, ready, rule_for
from lifecycle.judge.signals import OVER, Attention, Ci, Output, PullStage, Signals, Stage
from lifecycle.judge.stalls import STALLS
from lifecycle.judge.waits import wait_for
from lifecycle.model import actions as do
from lifecycle.model import keys
from lifecycle.model.facts import Done, Facts
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import (
    TERMINAL,
    Activity,
    CheckState,
    Merge,
    PullState,
    Reason,
    Review,
    Status,
)
from lifecycle.react.reactions import REACTIONS
from lifecycle.read.availability import Availability
from lifecycle.read.session_view import SessionView
from tests.lifecycle.future import continues, future, notifies, replies
from tests.lifecycle.troubles import every_session
from tests.lifecycle.universe import NOW, OUTSIDER_TEXT, POLICIES, done, every_signal


# Built on first use, because every test worker imports this file and one runs it.
@cache
def all_signals() -> list[tuple[Signals, Rule]]:
    """All signals, each with its rule."""
    return [(signals, rule_for(signals)) for signals in every_signal()]


@cache
def judged(policy: str) -> list[tuple[Facts, Decision]]:
    """All facts, each with its decision under a policy of `POLICIES`."""
    return [(session, decide(session, POLICIES[policy], NOW)) for session in every_session()]


@cache
def different(policy: str) -> list[tuple[Facts, Decision]]:
    """Return `judged(policy)`; for "merge", without the pairs that are also in `judged("propose")`.

    The policies "merge" and "propose" differ in 700 of 15,000 decisions. A law about later times
    must use `judged`, because decisions that are equal at `NOW` can differ later.
    """
    if policy != "merge":
        return judged(policy)
    pairs = zip(judged("propose"), judged(policy), strict=True)
    return [merges for proposes, merges in pairs if proposes != merges]


def judged_under_every_policy() -> Iterator[tuple[Facts, Decision]]:
    return chain.from_iterable(map(judged, POLICIES))


def test_the_universe_is_large() -> None:
    assert 20_000 < len(all_signals()) < 200_000
    assert len(every_session()) > 5_000


def test_the_mode_changes_some_decisions() -> None:
    assert 500 < len(different("merge")) < 1_000


def test_every_rule_is_the_first_to_match_somewhere() -> None:
    used = {id(rule) for _, rule in all_signals()}
    assert [rule.reads for rule in RULES if id(rule) not in used] == []


def test_every_status_is_read_off_some_facts() -> None:
    assert {decision.status for _, decision in judged("propose")} == set(Status)


def test_every_status_has_a_reaction_of_its_own() -> None:
    """Reports, acknowledgements and labels follow in nearly every status; they do not count."""
    own = [row for row in REACTIONS if len(row.statuses) < len(Status) - 2]
    assert {status for row in own for status in row.statuses} == set(Status)


def test_every_reaction_acts_somewhere() -> None:
    idle = list(REACTIONS)
    for signals, rule in all_signals():
        idle = [row for row in idle if rule.status not in row.statuses or not row.when(signals)]
    assert [row.name for row in idle] == []


def test_a_session_has_a_terminal_status_exactly_when_it_is_over() -> None:
    for signals, rule in all_signals():
        assert (rule.status in TERMINAL) == (signals.stage in OVER)


def test_the_state_of_the_pull_request_never_hides_an_escalation() -> None:
    for signals, rule in all_signals():
        if signals.stage is Stage.RUNNING and signals.attention is not Attention.NONE:
            assert rule.status in (Status.NEEDS_INPUT, Status.STUCK)


def test_a_session_is_mergeable_exactly_when_nothing_blocks() -> None:
    for signals, rule in all_signals():
        if signals.pull is not PullStage.NONE and signals.attention is Attention.NONE:
            assert (rule.status is Status.MERGEABLE) is (blockers_for(signals) == ()), signals


def test_a_mergeable_session_is_green_approved_and_clean() -> None:
    for signals, rule in all_signals():
        if rule.status is Status.MERGEABLE:
            assert signals.ci in (Ci.PASSING, Ci.NONE)
            assert signals.review in (Review.APPROVED, Review.NONE)
            assert signals.merge is Merge.CLEAN


@pytest.mark.parametrize("policy", POLICIES)
def test_a_mergeable_session_is_merged_by_the_bot_or_waits_for_a_person(policy: str) -> None:
    for session, decision in judged(policy):
        if decision.status is not Status.MERGEABLE:
            assert decision.reason not in (Reason.AWAITS_MERGE, Reason.MERGE_BARRED)
            continue
        barred = any(pull.barred for pull in session.pulls)
        merges = POLICIES[policy].merges_by_itself and not barred
        pushed = any(pull.person for pull in session.pulls)
        by_bot = Reason.PERSON_PUSHED if pushed else Reason.PULL_REQUEST
        by_people = Reason.MERGE_BARRED if barred else Reason.AWAITS_MERGE
        assert decision.reason is (by_bot if merges else by_people), session
        assert any(isinstance(action, do.MergePull) for action in decision.actions) is merges
        assert needs_person(decision.status, decision.reason) is not merges, session


def test_every_wait_of_an_agent_at_rest_has_a_limit_unless_the_pull_request_is_ready() -> None:
    at_rest = (Availability.IDLE, Availability.EXITED)
    for signals, rule in all_signals():
        if signals.availability in at_rest and rule.status not in TERMINAL:
            wait = wait_for(signals)
            assert (wait is None) is ready(signals), signals
            assert wait is None or all(wait.seconds(one) > 0 for one in POLICIES.values())


@pytest.mark.parametrize("policy", POLICIES)
def test_every_wait_ends_within_its_limit_in_a_run_a_merge_or_a_notified_person(
    policy: str,
) -> None:
    for session, decision in judged(policy):
        rules = POLICIES[policy]
        assert waits(session, rules, decision) <= limit(session, rules, decision), session
        if continues(decision):
            full = replace(session, slot=False)
            assert waits(full, rules) <= timedelta(seconds=rules.wait_seconds), session


def waits(session: Facts, policy: Policy, first: Decision | None = None) -> timedelta:
    """Return how long a session waits if neither GitHub nor the agent changes.

    The wait counts from the last message to the agent, if any. It ends with a notice to people, a
    new run, a merge, the end of the session, or the reply to a person's `pause`.
    """
    began = NOW
    for now, found in future(session, policy, first):
        paused = found.reason is Reason.PAUSED_BY_PERSON and replies(found)
        if found.status in TERMINAL or notifies(found) or continues(found) or paused:
            return now - began
        if any(isinstance(action, do.SendMessage) for action in found.actions):
            began = now
    return timedelta.max


def limit(session: Facts, policy: Policy, decision: Decision) -> timedelta:
    """Return how long the policy lets a session wait, given the state of its agent and checks."""
    signals, pulls = decision.signals, [one for one in session.pulls if one.state == "open"]
    silent = (Availability.ACTIVE, Availability.BLOCKED, Availability.UNKNOWN, Availability.NONE)
    least = 0.0
    if signals.availability in silent and signals.stage is Stage.RUNNING:
        least = max(policy.stuck_seconds, policy.activity_timeout_seconds)
    seconds = policy.wait_seconds
    clean = any(one.clean_since and any(check.required for check in one.checks) for one in pulls)
    draft = signals.pull is PullStage.DRAFT
    if (signals.ci is Ci.MISSING or (signals.ci is Ci.PENDING and clean)) and not draft:
        seconds = policy.checks_missing_seconds
    elif signals.ci is Ci.PENDING:
        seconds = policy.checks_pending_seconds
    return timedelta(seconds=max(seconds, least) + 1)


def test_a_session_whose_agent_is_blocked_never_reads_as_at_work() -> None:
    for session, decision in judged_under_every_policy():
        if session.agent.activity is Activity.BLOCKED and session.agent.run == session.run:
            assert decision.reason is not Reason.AGENT_AT_WORK or session.agent.exit, session


@pytest.mark.parametrize("policy", POLICIES)
def test_an_ordered_action_is_not_ordered_again(policy: str) -> None:
    for session, decision in different(policy):
        keys = {action.key for action in decision.actions}
        if keys:
            ordered = replace(session, pending=session.pending | keys)
            again = {action.key for action in decide(ordered, POLICIES[policy], NOW).actions}
            assert not keys & again, session


def test_no_two_actions_of_a_decision_have_one_key() -> None:
    for _, decision in judged_under_every_policy():
        keys = [action.key for action in decision.actions]
        assert len(keys) == len(set(keys))


@pytest.mark.parametrize("policy", POLICIES)
def test_carrying_out_decisions_reaches_a_fixed_point(policy: str) -> None:
    for session, decision in different(policy):
        now, state, actions = NOW, session, decision.actions
        for _ in range(8):
            if not actions:
                break
            now += timedelta(milliseconds=1)
            state = _done(state, actions, now)
            actions = decide(state, POLICIES[policy], now).actions
        assert actions == (), session


def _done(session: Facts, actions: tuple[do.Action, ...], now: object) -> Facts:
    """The same facts after the actions were done."""
    keys = [key for action in actions for key in (action.key, *getattr(action, "covers", ()))]
    runs = [action.run for action in actions if isinstance(action, do.Start)]
    done = {**session.done, **{key: Done(at=now) for key in keys}}  # type: ignore[arg-type]
    return replace(session, done=done, run=max([session.run, *runs]))


def test_the_same_facts_give_the_same_decision_at_any_instant_before_the_recheck() -> None:
    instant = timedelta(microseconds=1)
    for session, first in judged("propose"):
        end = first.recheck_at or NOW + timedelta(days=30)
        assert end > NOW
        for later in {NOW + instant, NOW + (end - NOW) / 2, end - instant}:
            if later < end:
                then = decide(session, Policy(), later)
                same = replace(then, recheck_at=first.recheck_at, ended=first.ended)
                assert same == first, (session, later)


def test_a_recheck_does_not_depend_on_the_order_of_evaluation() -> None:
    questions = [name for name, value in vars(SessionView).items() if isinstance(value, property)]
    for session, _ in judged("propose"):
        view = foremost(SessionView(session, Policy(), NOW))
        first = read(view)
        for row in reversed((*PAUSES, *STALLS, *ESCALATIONS)):
            row(view)
        for name in questions:
            getattr(view, name)
        assert read(view) == first == read(foremost(SessionView(session, Policy(), NOW)))


def test_messages_are_sent_only_to_an_agent_that_is_idle_or_has_exited() -> None:
    for session, decision in judged_under_every_policy():
        for action in decision.actions:
            if isinstance(action, do.SendMessage):
                assert decision.signals.availability is Availability.IDLE, session
            if isinstance(action, do.Start) and str(action.key).startswith("start:message"):
                assert decision.signals.availability is Availability.EXITED, session


def test_nothing_is_sent_to_the_agent_before_its_push_is_recorded() -> None:
    """A push recorded after a message would count as the answer to it."""
    sending = 0
    for session, decision in judged_under_every_policy():
        head = session.work.head
        if head == session.work.base or not _requests(decision):
            continue
        sending += 1
        unrecorded = {key: one for key, one in session.done.items() if key != keys.push(head)}
        pushing = replace(session, done=unrecorded, pending=session.pending | {keys.push(head)})
        assert not _requests(decide(pushing, Policy(), NOW)), session
    assert sending


def _requests(decision: Decision) -> list[do.SendMessage]:
    """The messages about checks and reviews."""
    sent = [action for action in decision.actions if isinstance(action, do.SendMessage)]
    return [message for message in sent if message.prompt.name in ("fix_ci", "address_review")]


def test_an_ended_session_starts_sends_and_publishes_nothing() -> None:
    for _, decision in judged_under_every_policy():
        if decision.status in TERMINAL:
            for action in decision.actions:
                assert not isinstance(
                    action, do.Start | do.SendMessage | do.Publish | do.OpenPull | do.MergePull
                )


def test_the_branch_is_deleted_and_the_issue_closed_only_after_a_merge() -> None:
    for session, decision in judged_under_every_policy():
        for action in decision.actions:
            if isinstance(action, do.DeleteBranch | do.CloseIssue):
                assert any(pull.state is PullState.MERGED for pull in session.pulls)


def test_only_green_approved_and_clean_pull_requests_merge_at_the_judged_commit() -> None:
    merged = 0
    for session, decision in judged("merge"):
        for action in decision.actions:
            if isinstance(action, do.MergePull):
                merged += 1
                pull = next(one for one in session.pulls if one.number == action.number)
                counted = [c for c in pull.checks if c.required] or list(pull.checks)
                assert all(check.state is CheckState.PASSED for check in counted)
                assert action.sha == pull.head
                assert pull.base_branch not in {
                    one.branch for one in session.pulls if one.state == "open"
                }
                assert pull.merge is Merge.CLEAN
                assert not pull.draft
                assert any(
                    v.approved
                    and v.sha in {pull.head, *pull.carried}
                    and v.author != session.requester
                    for v in pull.verdicts
                )
                assert not any(not v.approved for v in pull.verdicts)
    assert merged


def test_nothing_merges_without_a_command_in_propose_mode() -> None:
    for _, decision in judged("propose"):
        for action in decision.actions:
            assert not isinstance(action, do.MergePull)


def test_observe_mode_orders_no_actions_and_has_the_same_status() -> None:
    for session, decision in judged("propose")[::5]:
        observed = decide(session, Policy(mode=Mode.OBSERVE), NOW)
        assert observed.actions == ()
        assert observed.status is decision.status, session


def test_comments_by_people_without_write_access_never_reach_the_agent() -> None:
    outsiders = 0
    for session, decision in judged_under_every_policy():
        if any(OUTSIDER_TEXT in one.body for pull in session.pulls for one in pull.comments):
            outsiders += 1
            assert OUTSIDER_TEXT not in repr(decision.actions), session
    assert outsiders


def test_a_merge_ends_the_session_exactly_when_no_pull_request_is_open() -> None:
    for session, decision in judged_under_every_policy():
        states = {pull.state for pull in session.pulls}
        merged = PullState.MERGED in states and PullState.OPEN not in states
        assert (decision.signals.stage is Stage.MERGED) is merged, session


def test_the_attention_label_is_set_exactly_in_needs_input_and_stuck() -> None:
    for session, decision in judged_under_every_policy():
        labels = [action.on for action in decision.actions if isinstance(action, do.Label)]
        people = decision.status in (Status.NEEDS_INPUT, Status.STUCK)
        assert labels == [True] * people, session
    for session, decision in judged("propose")[::5]:
        labelled = replace(session, done={**session.done, **done("attention_label:0")})
        later = decide(labelled, POLICIES["propose"], NOW)
        labels = [action.on for action in later.actions if isinstance(action, do.Label)]
        people = decision.status in (Status.NEEDS_INPUT, Status.STUCK)
        assert labels == [False] * (not people), session


def test_a_stacked_pull_request_is_never_ready_and_lists_the_blocker() -> None:
    for signals, rule in all_signals():
        if signals.stacked and signals.stage is Stage.RUNNING:
            assert rule.status not in (Status.MERGEABLE, Status.APPROVED)
            assert "stacked" in [row.name for row in blockers_for(signals)]


def test_nothing_is_pushed_before_remote_commits_are_merged() -> None:
    for session, decision in judged_under_every_policy():
        if decision.signals.output is Output.FOREIGN:
            assert not any(isinstance(a, do.Publish) for a in decision.actions), session


def test_nothing_is_pushed_or_merged_into_the_workspace_before_commits_are_on_the_branch() -> None:
    for session, decision in judged_under_every_policy():
        if decision.signals.output is Output.OFF_BRANCH:
            writes = do.Publish | do.OpenPull | do.MergeRemote
            assert not any(isinstance(a, writes) for a in decision.actions), session


def test_a_failed_probe_never_ends_a_session() -> None:
    for session, decision in judged_under_every_policy():
        if session.agent.program == "unknown" and session.agent.run:
            assert decision.status is not Status.ERRORED, session
