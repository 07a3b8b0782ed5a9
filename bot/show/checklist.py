"""The checklist of a merge: its requirements, and who or what can meet the unmet ones."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from bot.show.session_summary import waits_for_person
from bot.store import Session
from bot.text import merge_checklist as say
from bot.text import page_text
from lifecycle.judge.commands import apply_commands
from lifecycle.judge.judge import judge
from lifecycle.model.facts import Facts, Pull
from lifecycle.model.policy import Policy
from lifecycle.model.status import TERMINAL, Blocker, PullState, Reason, Status
from lifecycle.read.merging import awaited_merge


class ChecklistItem(Struct, frozen=True, kw_only=True):
    """One line of the checklist: something that the merge needs."""

    title: str
    met: bool  #: Whether the merge has what it needs here.
    text: str  #: A phrase: what is missing, or that nothing is.
    resolver: str = ""  #: A phrase: who or what provides it; if empty, nothing is missing.
    person: bool = False  #: Whether the resolver is a person who can act now.


#: Statuses in which the bot does not judge the pull request, so that the session has no blockers.
_UNJUDGED: Final = frozenset({Status.QUEUED, Status.SPAWNING, Status.PAUSED})


def merge_awaits(facts: Facts, policy: Policy, now: datetime) -> Reason | None:
    """Return why the merge waits for a person even if nothing blocks it.

    Returns None if the bot merges an unblocked pull request by itself.
    """
    return awaited_merge(judge(apply_commands(facts, policy, now).facts, policy, now).view)


def checklist(session: Session, awaits: Reason | None) -> tuple[ChecklistItem, ...]:
    """Return what the merge of a session's pull request needs; empty for an ended session.

    `awaits` is the result of `merge_awaits`.
    """
    if session.status in TERMINAL:
        return ()
    pull = _open_pull(session)
    if pull is None:
        opener = say.A_PERSON if waits_for_person(session) else say.NO_PULL
        return (_item("Pull request", "not opened yet", opener), *_blocked(session))
    opened = ChecklistItem(title=f"Pull request #{pull.number}", met=True, text=say.OPENED)
    ready = session.status == Status.MERGEABLE
    text = say.READY if ready else say.NOT_READY if session.blockers else say.WAITS
    merge = _item("Merge", text, say.MERGED_BY[awaits])
    merge = replace(merge, person=ready and merge.person)  # Until then nobody can do anything.
    return opened, *_blocked(session), *_met(session), merge


def _open_pull(session: Session) -> Pull | None:
    return next((one for one in session.pulls if one.state is PullState.OPEN), None)


def _blocked(session: Session) -> Sequence[ChecklistItem]:
    instead = ""
    if waits_for_person(session):
        instead = say.A_PERSON
    elif session.reason == Reason.PERSON_PUSHED:
        instead = say.AFTER_RESUME
    return [
        _blocker(need.title, blocker, instead)
        for need in say.NEEDS
        for blocker in session.blockers
        if blocker.name in need.blockers
    ]


def _blocker(title: str, blocker: Blocker, instead: str) -> ChecklistItem:
    """Return the checklist's line for a blocker.

    If the agent cannot act now, `instead` says who resolves the blockers that are normally the
    agent's task; otherwise, it is empty.
    """
    by_agent = blocker.name in say.AGENTS
    resolver = (instead if by_agent else "") or say.RESOLVED_BY[blocker.name]
    return _item(title, blocker.sentence, resolver)


def _item(title: str, text: str, resolver: str) -> ChecklistItem:
    return ChecklistItem(
        title=title,
        met=False,
        text=page_text.line(text),
        resolver=resolver,
        person=resolver.startswith(("a person", "a reviewer")),
    )


def _met(session: Session) -> Sequence[ChecklistItem]:
    """Return the lines for needs that are met. There are none in the statuses of `_UNJUDGED`."""
    if session.status in _UNJUDGED:
        return []
    missing = {blocker.name for blocker in session.blockers}
    return [
        ChecklistItem(title=need.title, met=True, text=need.met)
        for need in say.NEEDS
        if need.met and not missing & need.blockers
    ]
