"""What blocks a merge, and who resolves it."""

import pytest

from bot.show.checklist import ChecklistItem, checklist
from bot.text.merge_checklist import NEEDS, RESOLVED_BY
from lifecycle.judge.rules import BLOCKERS
from lifecycle.model.facts import Pull
from lifecycle.model.status import TERMINAL, Blocker, PullState, Reason
from tests.show.conftest import a_session

PULL = Pull(number=34)


def shown(items: tuple[ChecklistItem, ...]) -> list[str]:
    return [f"{'x' if one.met else '-'} {one.title}: {one.text}; {one.resolver}" for one in items]


def test_every_blocker_has_a_line_and_somebody_who_resolves_it() -> None:
    names = {row.name for row in BLOCKERS} | {"frozen"}
    assert names == RESOLVED_BY.keys()
    assert sorted(names) == sorted(name for need in NEEDS for name in need.blockers)


def test_a_session_without_a_pull_request_waits_for_it() -> None:
    (only,) = checklist(a_session(), None)
    assert (only.title, only.met) == ("Pull request", False)
    assert only.resolver.startswith("Mergewright opens it")
    (only,) = checklist(a_session(status="needs_input", reason=Reason.AGENT_QUESTION), None)
    assert only.person


def test_what_blocks_comes_before_what_is_met() -> None:
    session = a_session(
        pulls=(PULL,),
        status="ci_failed",
        blockers=(
            Blocker("ci_failing", "failing checks: unit\x1b[2J"),
            Blocker("ci_pending", "waits for lint"),
            Blocker("stacked", "the pull request is based on #30"),
        ),
    )
    assert shown(checklist(session, None)) == [
        "x Pull request #34: it is open; ",
        "- Checks: failing checks: unit; the agent fixes the checks",
        "- Checks: waits for lint; checks normally start and finish by themselves; a person starts"
        " one that does not; if checks stay unreadable, an administrator checks the permissions of"
        " the bot",
        "- Title, labels and parent: the pull request is based on #30; the other pull request is"
        " merged first",
        "x Review: no review is missing; ",
        "x Base branch: no conflict is known, and no update from the base branch is required; ",
        "- Merge: waits for the lines above; Mergewright merges the pull request as soon as nothing"
        " blocks it",
    ]


@pytest.mark.parametrize("status", ["queued", "spawning", "paused"])
def test_nothing_counts_as_met_while_the_pull_request_is_not_judged(status: str) -> None:
    session = a_session(pulls=(PULL,), status=status)
    assert shown(checklist(session, None)) == [
        "x Pull request #34: it is open; ",
        '- Merge: not before the session continues: see "Next"; Mergewright merges the pull'
        " request as soon as nothing blocks it",
    ]


def test_a_person_resolves_what_the_agent_could_not() -> None:
    session = a_session(
        pulls=(PULL,),
        status="needs_input",
        reason=Reason.REPAIRS_EXHAUSTED,
        blockers=(Blocker("ci_failing", "failing checks: unit"),),
    )
    item = checklist(session, None)[1]
    assert (item.person, item.resolver) == (True, 'a person acts: see "Next"')


@pytest.mark.parametrize("blocker", ["ci_failing", "changes_requested", "conflict"])
def test_after_a_push_of_a_person_the_agent_acts_only_on_command(blocker: str) -> None:
    session = a_session(
        pulls=(PULL,),
        status="ci_failed",
        reason=Reason.PERSON_PUSHED,
        blockers=(Blocker(blocker, "something"), Blocker("draft", "the pull request is a draft")),
    )
    items = {one.text: one.resolver for one in checklist(session, None)}
    assert items["something"].startswith(
        "the agent continues once somebody gives the command `resume`"
    )
    assert items["the pull request is a draft"] == RESOLVED_BY["draft"]


@pytest.mark.parametrize(
    ("awaits", "resolver", "person"),
    [
        (None, "Mergewright merges the pull request as soon as nothing blocks it", False),
        (Reason.AWAITS_MERGE, "a person gives the command `merge`", True),
        (Reason.AWAITS_MANUAL_MERGE, "a person merges it on GitHub", True),
    ],
)
def test_the_last_line_says_who_merges(awaits: Reason | None, resolver: str, person: bool) -> None:
    last = checklist(a_session(pulls=(PULL,), status="mergeable"), awaits)[-1]
    assert (last.title, last.text) == ("Merge", "nothing blocks it")
    assert (last.resolver, last.person) == (resolver, person)


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_an_ended_session_has_no_checklist(status: str) -> None:
    merged = Pull(number=34, state=PullState.MERGED)
    assert checklist(a_session(pulls=(merged,), status=status), None) == ()
