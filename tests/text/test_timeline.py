"""The sentences of a timeline."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product

import pytest
from msgspec.structs import replace

from bot.store.observations import agent_changes, issue_changes, pull_changes, work_changes
from bot.text import timeline as say
from bot.text.timeline import CheckChange, Line, check_changes, checks_line, observed_line
from lifecycle.model.facts import (
    Agent,
    Check,
    Exit,
    Issue,
    OffBranch,
    Pull,
    Remark,
    Thread,
    Verdict,
    Work,
)
from lifecycle.model.status import Activity, CheckState, Merge, Mover, Probe, PullState, Review

NOW, HEAD = datetime(2030, 1, 1, tzinfo=UTC), "a" * 40


@pytest.mark.parametrize(
    ("change", "text", "tone", "minor"),
    [
        (
            "agent waiting input: May I use a_b?",
            "The agent waits for an answer: May I use a_b?",
            "warn",
            False,
        ),
        ("agent active: output grew", "The agent is at work: output grew", "calm", True),
        ("agent ready", "The agent has finished its turn", "calm", True),
        ("agent blocked: no credit", "The agent is blocked: no credit", "bad", False),
        (
            "runtime/program alive/alive -> unknown/unknown",
            "The agent's terminal: alive before, unknown now; "
            "its program: alive before, unknown now",
            "calm",
            True,
        ),
        (
            "runtime/program alive/alive -> alive/dead",
            "The agent's program: alive before, dead now",
            "calm",
            True,
        ),
        (
            "runtime/program alive/unknown -> dead/unknown",
            "The agent's terminal: alive before, dead now",
            "calm",
            True,
        ),
        ("program exited with 0", "The agent's program exited with code 0", "calm", True),
        ("program exited with 3", "The agent's program exited with code 3", "bad", False),
        ("workspace at 3f2a91c", "The agent committed `3f2a91c`", "calm", False),
        ("workspace at no commit", "The workspace has no commit", "calm", True),
        ("issue closed", "The issue was closed", "calm", False),
        ("issue closed: completed", "The issue was closed: completed", "calm", False),
        ("issue closed: not_planned", "The issue was closed as not planned", "calm", False),
        (
            "issue closed: deleted",
            "The issue was deleted or moved to another repository",
            "calm",
            False,
        ),
        ("#34 is merged", "Pull request #34 was merged", "landed", False),
        ("#34 is merged by ann", "Pull request #34 was merged by @ann", "landed", False),
        ("#34 at 3f2a91c, pushed by bot", "#34 is at `3f2a91c`", "calm", True),
        ("#34 at 3f2a91c, pushed by person", "A person pushed `3f2a91c` to #34", "calm", False),
        ("#34 merge is conflict", "#34 conflicts with its base branch", "warn", False),
        ("#34 merge is clean", "The merge state of #34 is clean", "calm", True),
        ("#34 @rob approved 3f2a91c", "@rob approved #34 at `3f2a91c`", "good", False),
        ("#34 @rob requested changes on 3f2a91c", "@rob requested changes on #34", "warn", False),
        ("#34 @rob commented", "@rob commented on #34", "calm", False),
        ("#34 thread PRRT_x1 resolved", "A review thread of #34 was resolved", "calm", True),
        ("something new {0}", "something new {0}", "calm", False),
    ],
)
def test_an_observed_change_is_a_sentence(change: str, text: str, tone: str, minor: bool) -> None:
    found = observed_line(change)
    assert (found.text, found.tone, found.minor) == (text, tone, minor)


def observed_changes() -> Iterator[str]:
    """Yield the lines that observers record in the history, for values of every kind."""
    seen = Remark(id="1", author="rob", body="x", at=NOW)
    for activity in set(Activity) - {Activity.NONE}:
        yield from agent_changes(Agent(), Agent(run=1, activity=activity, evidence="e"))
    for end in (Exit(at=NOW, code=0), Exit(at=NOW, signal=9), Exit(at=NOW, lost="l"), Exit(at=NOW)):
        yield from agent_changes(Agent(), Agent(exit=end, program=Probe.DEAD))
    off = OffBranch(head=HEAD)
    yield from work_changes(Work(head=HEAD), Work())
    yield from work_changes(Work(), Work(head=HEAD, dirty=True, off_branch=off, unreadable="u"))
    issue = Issue(number=1, title="x", blocked_by=("#5",))
    over = replace(issue, open=False, labelled=False, blocked_by=(), state_reason="completed")
    yield from issue_changes(issue, over)
    yield from issue_changes(over, issue)
    for mover in Mover:
        yield from pull_changes((), (Pull(number=3, head=HEAD, head_by=mover),))
    for state in PullState:
        yield from pull_changes(
            (Pull(number=3, state=PullState.CLOSED),), (Pull(number=3, state=state),)
        )
    for merge, review in product(Merge, Review):
        yield from pull_changes((), (Pull(number=3, merge=merge, review=review, draft=True),))
    verdicts = tuple(Verdict(author="rob", approved=yes, sha=HEAD) for yes in (True, False))
    checks = tuple(Check(id=state, name=f"a {state}", state=state) for state in CheckState)
    thread = Thread(id="T_1", resolved=True, remarks=(seen,))
    pull = Pull(number=3, verdicts=verdicts, checks=checks, threads=(thread,))
    yield from pull_changes((), (pull,))
    yield from pull_changes((Pull(number=3, draft=True),), (Pull(number=3),))


@pytest.mark.parametrize("change", sorted(set(observed_changes())))
def test_every_change_that_observers_record_has_a_sentence(change: str) -> None:
    assert observed_line(change) != Line(change) or len([*check_changes(change)]) == len(CheckState)


def test_checks_are_read_with_their_states() -> None:
    change = "#34 checks: unit failed, a b action_required, test (linux, 3.12) passed, cut…"
    assert [*check_changes(change)] == [
        CheckChange("#34", "unit", "failed"),
        CheckChange("#34", "a b", "action_required"),
        CheckChange("#34", "test (linux, 3.12)", "passed"),
    ]
    assert [*check_changes("workspace at 3f2a91c")] == []


def test_failures_and_repairs_are_news_and_other_checks_details() -> None:
    changes = [
        CheckChange("#34", "unit", "failed"),
        CheckChange("#34", "lint", "passed"),
        CheckChange("#34", "docs", "passed"),
    ]
    assert checks_line(changes, frozenset({"lint"})) == [
        Line("`unit` failed on #34", "bad"),
        Line("`lint` passes again", "good"),
        Line("`docs`: passed", minor=True),
    ]


def test_only_actors_who_are_people_are_mentioned() -> None:
    assert say.command_line("mara", "tell").text == "@mara gave the command `tell`"
    assert (
        say.command_line("cli:mara", "tell").text == "mara (on the server) gave the command `tell`"
    )
