"""Laws of whole sessions, over random sequences of events."""

from collections.abc import Callable
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lifecycle.judge.signals import Ci
from lifecycle.model import actions as do
from lifecycle.model.facts import Remark
from lifecycle.model.key import KeyKind
from lifecycle.model.policy import Mode
from lifecycle.model.status import TERMINAL, Activity, CheckState, Probe, PullState, Reason, Status
from lifecycle.read.availability import Availability
from tests.lifecycle.life import Life

AGENT: dict[str, Callable[[Life], Life]] = {
    "works": Life.agent_works,
    "commits": Life.agent_commits,
    "ends its turn": Life.agent_rests,
    "ends its turn with uncommitted work": lambda life: life.agent_rests(dirty=True),
    "commits and ends its turn": lambda life: life.agent_commits().agent_rests(),
    "commits and ends its turn with more": lambda life: life.agent_commits().agent_rests(
        dirty=True
    ),
    "commits on another branch": lambda life: life.agent_commits_off_branch(
        adoptable=True
    ).agent_rests(),
    "commits beside the branch": lambda life: life.agent_commits_off_branch(
        adoptable=False
    ).agent_rests(dirty=True),
    "exits": Life.agent_exits,
    "exits with uncommitted work": lambda life: life.agent_exits(dirty=True),
    "crashes": lambda life: life.agent_exits(1),
    "is killed": lambda life: life.agent_exits(None),
    "asks": lambda life: life.agent_is(Activity.WAITING_INPUT, question="May I?"),
    "is blocked": lambda life: life.agent_is(Activity.BLOCKED, error="529"),
    "cannot be seen": lambda life: life.agent_is(Activity.READY, program=Probe.UNKNOWN),
}
WORLD: dict[str, Callable[[Life], Life]] = {
    "a minute passes": lambda life: life.waits(61),
    "an hour passes": lambda life: life.waits(3600),
    "checks fail": Life.ci_fails,
    "checks pass": Life.ci_passes,
    "checks run": lambda life: life.checks_are(CheckState.FAILED, CheckState.PENDING),
    "a review asks": Life.reviewer_asks,
    "a comment": Life.person_comments,
    "an approval": Life.reviewer_approves,
    "a conflict": Life.base_conflicts,
    "a person pushes": Life.person_pushes,
    "help": lambda life: life.person_commands("help"),
}
ENDS: dict[str, Callable[[Life], Life]] = {
    "stop": lambda life: life.person_commands("stop"),
    "closed": lambda life: life.pull_is(PullState.CLOSED),
    "merged": lambda life: life.pull_is(PullState.MERGED),
    "label": lambda life: life.issue_is(labelled=False),
}
_NEEDS_A_PULL = (*list(WORLD)[2:10], "closed", "merged")


def life_of(steps: list[str], **policy: Any) -> Life:
    life = Life(**policy)
    for step in steps:
        if step in AGENT and (life.over or not life.decision.holds_slot):
            continue
        if step not in _NEEDS_A_PULL or life.facts.pulls:
            {**AGENT, **WORLD, **ENDS}[step](life)
    return life


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from([*AGENT, *WORLD]), max_size=12),
    st.lists(st.sampled_from([*AGENT]), min_size=1, max_size=3),
    st.sampled_from(Mode),
    st.booleans(),
)
def test_an_agent_in_a_loop_stops_getting_messages(
    steps: list[str], loop: list[str], mode: Mode, self_review: bool
) -> None:
    life = life_of(steps, mode=mode, self_review=self_review)
    for _ in range(12):
        repeat(life, loop)
    before = len(life.received()), len(life.comments())
    for _ in range(12):
        repeat(life, loop)
    news = 12 * sum(step in ("asks", "is blocked", "cannot be seen") for step in loop)
    assert len(life.received()) == before[0]
    assert len(life.comments()) <= before[1] + news


def repeat(life: Life, steps: list[str]) -> None:
    for step in steps:
        if not life.over:
            AGENT[step](life).waits(400)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from([*AGENT, *WORLD]), max_size=10),
    st.sampled_from([*ENDS]),
    st.lists(st.sampled_from([*WORLD]), max_size=4),
)
def test_an_ended_session_frees_its_slot_and_sends_nothing_to_the_agent(
    steps: list[str], end: str, after: list[str]
) -> None:
    life = life_of([*steps, end])
    if not life.over:
        return
    messages = life.received()
    for step in after:
        if step not in _NEEDS_A_PULL or life.facts.pulls:
            WORLD[step](life)
    life.waits(15 * 86_400)
    assert life.received() == messages
    assert life.decision.status in TERMINAL - {Status.CLEANUP}
    assert not life.facts.slot
    assert life.decision.recheck_at is None


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([*AGENT, *WORLD]), max_size=10), st.booleans())
def test_a_silent_session_has_an_active_agent_or_a_status_that_waits_for_people(
    steps: list[str], self_review: bool
) -> None:
    """After a day, the session is over, its agent is active, or it waits for people or checks."""
    life = life_of(steps, self_review=self_review).waits(86400)
    if life.over or life.decision.signals.availability is Availability.ACTIVE:
        return
    assert life.decision.status in (
        *(Status.NEEDS_INPUT, Status.STUCK, Status.MERGEABLE, Status.REVIEW_PENDING),
        # Checks run, or a review is due.
        *(Status.PR_OPEN, Status.APPROVED, Status.CHANGES_REQUESTED, Status.CI_FAILED),
    )
    if life.decision.reason is Reason.PERSON_PUSHED:
        assert "handed_to_human" in life.comments()
        return
    if life.decision.status is Status.CI_FAILED:
        assert life.decision.signals.ci is Ci.SETTLING
    if life.decision.status is Status.CHANGES_REQUESTED:
        done = life.facts.done.items()
        last_request = max(one.at for key, one in done if key.kind is KeyKind.REMARK)
        assert any(one.at > last_request for key, one in done if key.kind is KeyKind.PUSH)


class Memory:
    """The remarks that the agent has received, and that it did not forget in a crash."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._read = 0
        self._given: dict[int, set[str]] = {}
        self.received: set[str] = set()

    def before(self, step: str) -> None:
        """Update the set `received`; the test calls this method before it carries out `step`.

        If `step` means that the agent works, commits, ends its turn or exits normally, all remarks
        sent to the agent's current run are added to the set. Any other step, such as a crash, adds
        none.
        """
        for _, action in self._life.out[self._read :]:
            if isinstance(action, do.Start | do.SendMessage):
                given = {key.cause[0] for key in action.covers if key.kind is KeyKind.REMARK}
                self._given.setdefault(action.run, set()).update(given)
        self._read = len(self._life.out)
        if step in _READS:
            self.received |= self._given.get(self._life.facts.agent.run, set())


_REVIEWED = ("a review asks", "a comment")
#: The steps before which the agent has read what it was sent.
_READS = ("works", "commits", "ends its turn", "commits and ends its turn", "exits")
_BREAKS = ("works", "commits", "commits and ends its turn", "crashes", "is killed", "exits")


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    st.lists(
        st.sampled_from([*_BREAKS, *_REVIEWED, "a minute passes", "checks fail", "checks pass"]),
        min_size=2,
        max_size=14,
    )
)
@example(["a review asks", "a minute passes", "exits", "a review asks"])
def test_every_remark_reaches_the_agent_whatever_the_order_of_crashes(steps: list[str]) -> None:
    """Every remark reaches the agent, or the session ends or waits for people.

    A remark that was sent counts as received unless the agent crashes before its next step.
    """
    life = Life(park_seconds=9e9)
    memory = Memory(life)
    healing = ["ends its turn", "a minute passes", "works"] * 6
    for step in ["works", "commits and ends its turn", *steps, *healing]:
        if step in AGENT and (life.over or life.facts.agent.exit is not None):
            continue
        memory.before(step)
        {**AGENT, **WORLD}[step](life)
        life.waits(0.1)
    if life.over or life.decision.status in (Status.NEEDS_INPUT, Status.STUCK):
        return
    assert {one.id for one in _remarks(life)} <= memory.received


def _remarks(life: Life) -> list[Remark]:
    (pull,) = life.facts.pulls
    said = [*pull.comments, *(one for thread in pull.threads for one in thread.remarks)]
    return [one for one in said if one.allowed]
