"""Keeps a status comment on the issue, if there is one, and on each pull request up to date.

GitHub notifies nobody of an edit, so `lifecycle.react.notices` posts what people have to know.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

from lifecycle.judge.commands import offered
from lifecycle.judge.judge import Judged, Wanted, blocking
from lifecycle.judge.reasons import advice_on
from lifecycle.judge.signals import REMEMBERED
from lifecycle.model import actions as do
from lifecycle.model import keys
from lifecycle.model.key import Key
from lifecycle.model.status import Activity, Blocker, PullState, Status
from lifecycle.read.budgets import cost, shows_cost
from lifecycle.read.session_view import Recheck, SessionView

#: Statuses that are not reported in a session's first seconds, because most change by then.
_BEGINNING: Final = frozenset({Status.QUEUED, Status.SPAWNING})
_BEGINS_SECONDS: Final = 5.0
_CLEANUP, _CLOSED = Status.CLEANUP, PullState.CLOSED


def report(judged: Judged) -> Wanted:
    """Report the session's status on its issue in a comment, and as a label if configured."""
    if judged.status is _CLEANUP:
        judged = judged.as_shown()
    view, number = judged.view, judged.view.facts.issue.number
    if not number:
        return
    begins = judged.status in _BEGINNING and not view.history.edits(keys.report(number))
    if begins and (wait := view.wait(view.facts.created, _BEGINS_SECONDS)):
        yield wait  # A status that changes in a moment would be shown for a minute.
        return
    place, content, status = keys.report(number), _content(judged, ()), judged.status
    if view.history.says.get(place) != content:
        yield _edit(view, place, content, partial(_comment, judged, number, ()))
    if not view.policy.state_labels:
        return
    place, content = keys.show_status(number), _fingerprint((status,))
    if view.history.says.get(place) != content:
        yield _edit(view, place, content, partial(_label, number, status))


def report_pull(judged: Judged) -> Wanted:
    """Report the status and merge blockers on a pull request and, if configured, as a check run."""
    pull = judged.view.pull
    if pull is None or pull.state is _CLOSED:
        return
    if judged.status is _CLEANUP:
        judged = judged.as_shown()
    view, blockers = judged.view, judged.blockers
    if view.several:  # The decision's blockers belong to the pull request that sets the status.
        blockers = blocking(judged.signals, view)
    place, content, says = keys.report(pull.number), _content(judged, blockers), view.history.says
    if says.get(place) != content:
        yield _edit(view, place, content, partial(_comment, judged, pull.number, blockers))
    place = keys.report_check(pull.head)
    if view.policy.check_run and says.get(place) != content:
        yield _edit(view, place, content, partial(_check, judged, pull.head, blockers))


def _content(judged: Judged, blockers: tuple[Blocker, ...]) -> str:
    """Return a fingerprint of the parts of a report whose change makes the bot edit the report.

    A change of other parts, such as the cost, alone leads to no edit; the next edit includes it.
    """
    return _fingerprint((judged.status, judged.reason, judged.cause, *blockers))


@lru_cache(maxsize=REMEMBERED)
def _fingerprint(says: tuple[Key | Blocker | str | None, ...]) -> str:
    parts = [one.sentence if isinstance(one, Blocker) else str(one) for one in says]
    return keys.fingerprint(parts)


def _edit(
    view: SessionView, place: Key, content: str, make: Callable[[Key, int | None], do.Action]
) -> do.Action | Recheck:
    """Return the first post or the next edit of a report, or the wait until an edit is allowed.

    Call it if the report is outdated. Edits are at least `Policy.report_seconds` apart. `place` is
    the report's key, and `content` the fingerprint of what it will show. `make` gets the edit's key
    and the id of the existing comment or check run, or None if no id is known.
    """
    shown = view.history.edits(place)
    if not shown:
        return make(keys.edit(place, 0, content), None)
    last = view.facts.done[shown[-1]]
    if wait := view.wait(last.at, view.policy.report_seconds):
        return wait
    there = int(last.result) if last.result.isdecimal() else None
    return make(keys.edit(place, len(shown), content), there)


def _comment(
    judged: Judged, number: int, blockers: tuple[Blocker, ...], key: Key, there: int | None
) -> do.Report:
    return do.Report(key=key, number=number, comment=there, summary=_summary(judged, blockers))


def _check(
    judged: Judged, head: str, blockers: tuple[Blocker, ...], key: Key, there: int | None
) -> do.ReportCheck:
    return do.ReportCheck(key=key, head=head, check=there, summary=_summary(judged, blockers))


def _label(number: int, status: Status, key: Key, _: int | None) -> do.ShowStatus:
    return do.ShowStatus(key=key, number=number, status=status)


def _summary(judged: Judged, blockers: tuple[Blocker, ...]) -> do.StatusSummary:
    facts = judged.view.facts
    asks = judged.status is Status.NEEDS_INPUT and facts.agent.activity is Activity.WAITING_INPUT
    return do.StatusSummary(
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
        commands=offered(judged),
    )


def _cost(view: SessionView) -> str:
    spent = view.facts.spent_ever
    if not shows_cost(view.facts, view.policy) or not (spent.cost_usd or spent.tokens):
        return ""
    return cost(spent)
