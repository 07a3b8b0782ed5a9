"""What is kept up to date where people look: a comment on the issue and on each pull request.

An edit notifies nobody: what needs people gets a comment of its own (`lifecycle.react.notices`).
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from lifecycle.judge.budgets import cost, tells_cost
from lifecycle.judge.commands import COMMAND_RULES
from lifecycle.judge.judge import Judged, blocking
from lifecycle.judge.reasons import advice_on
from lifecycle.judge.signals import REMEMBERED
from lifecycle.model import actions as do
from lifecycle.model import keys
from lifecycle.model.key import Key
from lifecycle.model.status import Activity, PullState, Status
from lifecycle.read.session_view import View

#: Commands a report names: those that depend on the status. `help` tells of all the others.
TOLD: Final = {
    status: tuple(
        kind
        for kind, row in COMMAND_RULES.items()
        if status in row.works and row.works != frozenset(Status) and kind != "restore"
    )
    for status in Status
}
#: So long may it take to begin before people are told that it has not.
_BEGINNING: Final = frozenset({Status.QUEUED, Status.SPAWNING})
_BEGINS_SECONDS: Final = 5.0


class _Edit(NamedTuple):
    """That a place is to be brought up to date: under which key, and what is there already."""

    key: Key
    there: int | None


def report(judged: Judged) -> Iterator[do.Action]:
    """The issue says how its session stands."""
    judged = judged.told
    view, number = judged.view, judged.view.facts.issue.number
    begins = judged.status in _BEGINNING and not view.past.shown(keys.report(number))
    if begins and not view.passed(view.facts.created, _BEGINS_SECONDS):
        return  # What is over in a moment would stand there for a minute.
    if edit := _outdated(view, keys.report(number), _cause(judged, ())):
        standing = _standing(judged, ())
        yield do.Report(key=edit.key, number=number, comment=edit.there, standing=standing)
    status = judged.status
    place = keys.show_status(number)
    if view.policy.state_labels and (edit := _outdated(view, place, _short((status,)))):
        yield do.ShowStatus(key=edit.key, number=number, status=status)


def report_pull(judged: Judged) -> Iterator[do.Action]:
    """A pull request says the same, with what stands in its way; so does a check on its head."""
    pull, judged = judged.view.pull, judged.told
    if pull is None or pull.state is PullState.CLOSED:
        return
    view, blockers = judged.view, judged.blockers
    if view.several:  # Those of the decision are those of the one that its status is read off.
        blockers = blocking(judged.signals, view)
    cause = _cause(judged, blockers)
    if edit := _outdated(view, keys.report(pull.number), cause):
        standing = _standing(judged, blockers)
        yield do.Report(key=edit.key, number=pull.number, comment=edit.there, standing=standing)
    place = keys.report_check(pull.head)
    if view.policy.check_run and (edit := _outdated(view, place, cause)):
        standing = _standing(judged, blockers)
        yield do.ReportCheck(key=edit.key, head=pull.head, check=edit.there, standing=standing)


def _cause(judged: Judged, blockers: tuple[str, ...]) -> str:
    # What happens meanwhile is told with it, and is no reason to tell it.
    return _short((judged.status, judged.reason, judged.cause, *blockers))


@lru_cache(maxsize=REMEMBERED)
def _short(says: tuple[Key | str | None, ...]) -> str:
    """What is said, in short. It is the same at nearly every visit of a session."""
    return keys.fingerprint(map(str, says))


def _outdated(view: View, place: Key, cause: str) -> _Edit | None:
    """Whether a place says something else, and was not brought up to date a moment ago."""
    shown = view.past.shown(place)
    if not shown:
        return _Edit(keys.edit(place, 0, cause), None)
    if keys.content_of(shown[-1]) == cause:
        return None
    last = view.facts.done[shown[-1]]
    if not view.passed(last.at, view.policy.report_seconds):
        return None
    there = int(last.result) if last.result.isdecimal() else None
    return _Edit(keys.edit(place, len(shown), cause), there)


def _standing(judged: Judged, blockers: tuple[str, ...]) -> do.Standing:
    facts = judged.view.facts
    asks = judged.status is Status.NEEDS_INPUT and facts.agent.activity is Activity.WAITING_INPUT
    return do.Standing(
        session=facts.session,
        agent=facts.agent_name or facts.agent_type,
        branch=facts.branch,
        status=judged.status,
        because=judged.because,
        pull=judged.view.pull.number if judged.view.pull else None,
        blockers=blockers,
        question=facts.agent.question if asks else "",
        remedy=advice_on(judged.reason),
        cost=_cost(judged.view),
        commands=TOLD[judged.status],
    )


def _cost(view: View) -> str:
    spent = view.facts.spent_ever
    if not tells_cost(view) or not (spent.cost_usd or spent.tokens):
        return ""
    return cost(spent)
