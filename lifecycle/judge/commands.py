"""What people may ask for: a row each, with the statuses in which it works and what they are told.

A wish is judged once, by the status before it. It has its effect from then on, or it is explained
and has none. Which of the two it was is known by the key of its answer.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lifecycle.judge.budgets import left, raised
from lifecycle.judge.judge import Answer, Judged, judge
from lifecycle.judge.reasons import advice_on
from lifecycle.model.facts import Facts, Wish
from lifecycle.model.policy import AutoMerge, MergeMethod, Policy
from lifecycle.model.status import TERMINAL, Merge, PullState, Reason, Status
from lifecycle.read.merge_queue import called_off
from lifecycle.read.restores import RESTORABLE, RESTORES, names
from lifecycle.read.sentences import short

S = Status
_EVERY: Final = frozenset(S)
_ALIVE: Final = _EVERY - TERMINAL
_STARTED: Final = _ALIVE - {S.QUEUED, S.SPAWNING}
_NOWHERE: Final[frozenset[Status]] = frozenset()
_METHODS: Final = frozenset(method.value for method in MergeMethod)


def no_fault(_judged: Judged, _wish: Wish) -> str:
    return ""


def _no_words(_judged: Judged, wish: Wish) -> str:
    return "" if wish.text.strip() else "There is no text in it."


def _no_amount(_judged: Judged, wish: Wish) -> str:
    return "" if raised(wish) else "It needs an amount in US dollars, such as `+5`."


def _nothing_given_up(judged: Judged, _wish: Wish) -> str:
    return "" if judged.view.facts.failures else "Nothing was given up."


def _not_to_merge(judged: Judged, wish: Wish) -> str:
    if judged.view.policy.auto_merge is AutoMerge.OFF:
        return "Nothing is merged from here, as the configuration says: merge it on GitHub."
    pulls = judged.view.facts.pulls
    if not pulls:
        return "There is no pull request yet."
    if wish.text and wish.text not in _METHODS:
        return f"A pull request is merged by {', '.join(sorted(_METHODS))}."
    if wish.head not in {pull.head for pull in pulls if pull.state is PullState.OPEN}:
        return (
            "No open pull request is at the commit it was said of. "
            "Look at what it is now, then say it again."
        )
    return ""


def _no_such_agent(judged: Judged, wish: Wish) -> str:
    known = judged.view.facts.agents
    if not wish.text or wish.text in known:
        return ""
    return f"There is no agent `{wish.text}` here; there are: {', '.join(known)}."


def _not_to_hand_over(judged: Judged, wish: Wish) -> str:
    facts = judged.view.facts
    if wish.text in (facts.agent_name, facts.agent_type):
        return "That agent has it already."
    return _no_such_agent(judged, wish)


def _not_to_review(judged: Judged, wish: Wish) -> str:
    if judged.view.pull is None:
        return "There is no pull request yet."
    return _no_such_agent(judged, wish)


def _not_to_update(judged: Judged, _wish: Wish) -> str:
    pull = judged.view.pull
    if pull is None:
        return "There is no pull request yet."
    if pull.merge is Merge.CONFLICT:
        return "It conflicts with its base, which GitHub cannot mend; the agent is told."
    return ""


def _nothing_to_cancel(judged: Judged, _wish: Wish) -> str:
    view = judged.view
    asked = view.policy.merges_by_itself or view.wish("merge") is not None
    return "" if asked and not called_off(view) else "Nobody has asked for a merge."


def _nothing_held(judged: Judged, wish: Wish) -> str:
    head = judged.view.facts.work.head
    if judged.reason is not Reason.PROTECTED_PATHS:
        return "No commit is held."
    if not head.startswith(wish.text):
        return f"The commit that is held is `{short(head)}`."
    if not names(judged.view.facts, wish, head):
        return f"Another commit begins like that too: the one that is held is `{head}`."
    return ""


class Wishing(NamedTuple):
    """One row. Sentences may use `{because}`, `{status}`, `{remedy}`, `{blockers}`, `{budget}`,
    `{text}`; they tell of the session before the wish, and `in_vain` of it after.
    """

    works: frozenset[Status]
    heeded: str  #: The answer where it has its effect; empty: that effect says it all.
    otherwise: str  #: The answer in every other status.
    vain: frozenset[Status] = _NOWHERE  #: Brought there, it has had no effect.
    in_vain: str = ""  #: The answer then.
    fault: Callable[[Judged, Wish], str] = no_fault  #: What is wrong with the wish itself.
    tells_after: bool = False  #: Whether `heeded` tells of the session after the wish.


_OVER = "It is over: {because}. {remedy}"
_STATUS = "`{status}`: {because}.{blockers}{budget}"

WISHES: Final[Mapping[str, Wishing]] = {
    "help": Wishing(_EVERY, "{text}", ""),
    "status": Wishing(_EVERY, _STATUS, ""),
    "why": Wishing(_EVERY, _STATUS + "\n\n{remedy}", ""),
    "freeze": Wishing(_EVERY, "Nothing is done any more until somebody says `unfreeze`.", ""),
    "unfreeze": Wishing(_EVERY, "It goes on.", ""),
    "start": Wishing(
        RESTORABLE,
        "It goes on in a new run, once there is a slot for it.",
        "A session works on this already, `{status}`: {because}.",
        TERMINAL,
        "It would end again at once: {because}.",
        _no_such_agent,
    ),
    "restore": Wishing(
        RESTORABLE,
        "It goes on in a new run, once there is a slot for it.",
        "It cannot be brought back, `{status}`: {because}.",
        TERMINAL,
        "It would end again at once: {because}.",
    ),
    "stop": Wishing(_ALIVE, "", "It is over already: {because}."),
    "pause": Wishing(
        _ALIVE,
        "Its program is ended, its conversation and its work are kept. "
        "Write `/mergewright resume` to have it go on.",
        _OVER,
    ),
    "resume": Wishing(
        _STARTED,
        "It goes on, once there is a slot for it.",
        "It is not paused, `{status}`: {because}.",
        frozenset({S.PAUSED}),
        "It stays paused: {because}. {remedy}",
    ),
    "restart": Wishing(
        _STARTED,
        "A new run takes over, once there is a slot for it.",
        "There is nothing to restart, `{status}`: {because}. {remedy}",
        frozenset({S.PAUSED}),
        "It stays paused: {because}. {remedy}",
    ),
    "retry": Wishing(_EVERY - {S.ERRORED}, "It is tried again.", _OVER, fault=_nothing_given_up),
    "allow": Wishing(_ALIVE, "It is pushed with all it changes.", _OVER, fault=_nothing_held),
    "tell": Wishing(_ALIVE, "The agent is told as soon as it can hear.", _OVER, fault=_no_words),
    "answer": Wishing(_ALIVE, "The agent is told as soon as it can hear.", _OVER, fault=_no_words),
    "merge": Wishing(
        _ALIVE,
        "It is merged at this commit as soon as nothing stands in the way.{blockers}",
        _OVER,
        fault=_not_to_merge,
    ),
    "cancel": Wishing(
        _ALIVE, "It is not merged without another word.", _OVER, fault=_nothing_to_cancel
    ),
    "update": Wishing(
        _ALIVE,
        "Its base is brought in as soon as the agent rests.",
        _OVER,
        fault=_not_to_update,
    ),
    "agent": Wishing(
        _ALIVE,
        "`{text}` takes over in a new run, once there is a slot for it.",
        _OVER,
        fault=_not_to_hand_over,
    ),
    "review": Wishing(
        _STARTED,
        "It is read over once more, as soon as an agent can hear; what it says is told here.",
        "There is nothing to read over, `{status}`: {because}. {remedy}",
        fault=_not_to_review,
    ),
    "budget": Wishing(
        _ALIVE, "It may cost so much more.{budget}", _OVER, fault=_no_amount, tells_after=True
    ),
}


class Heeded(Struct, frozen=True):
    """The facts with those wishes alone that have an effect, and the answers to the new ones."""

    facts: Facts
    answers: tuple[Answer, ...] = ()
    recheck_at: datetime | None = None  #: When the answers may read otherwise.


def heed(facts: Facts, policy: Policy, now: datetime) -> Heeded:
    """Judge every wish that has no answer yet, the oldest first."""
    if not facts.wishes:
        return Heeded(facts)
    heeded: list[Wish] = []
    answers: list[Answer] = []
    soonest: list[datetime] = []
    for wish in sorted(facts.wishes, key=lambda wish: wish.at):
        row = WISHES.get(wish.kind)
        if row is None or _known(_explained(wish), facts):
            continue
        if _known(_answered(wish), facts) or _had_its_effect(wish, facts):
            heeded.append(wish)
            continue
        before = judge(replace(facts, wishes=tuple(heeded)), policy, now)
        refusal = _refusal(row, wish, before, heeded, facts)
        if not refusal:
            heeded.append(wish)
            if row.tells_after:
                before = judge(replace(facts, wishes=tuple(heeded)), policy, now)
        key = _explained(wish) if refusal else _answered(wish)
        if text := refusal or _say(row.heeded, before, wish):
            answers.append(Answer(wish, key, text))
        if before.view.recheck_at:
            soonest.append(before.view.recheck_at)
    return Heeded(replace(facts, wishes=tuple(heeded)), tuple(answers), min(soonest, default=None))


def _refusal(row: Wishing, wish: Wish, before: Judged, heeded: list[Wish], facts: Facts) -> str:
    """Why a wish has no effect; empty: it has."""
    if before.status not in row.works:
        return _say(row.otherwise, before, wish)
    if fault := row.fault(before, wish):
        return fault
    if row.vain:
        moment = before.view
        brought = replace(facts, wishes=(*heeded, wish))
        after = judge(brought, moment.policy, moment.now)
        if after.status in row.vain:
            return _say(row.in_vain, after, wish)
    return ""


def _say(sentence: str, judged: Judged, wish: Wish) -> str:
    given = {
        "status": judged.status.value,
        "because": judged.because,
        "remedy": advice_on(judged.reason),
        "blockers": "".join(f"\n- {blocker}" for blocker in judged.blockers),
        "budget": f"\n- {left(judged.view)}",
        "text": wish.text,
    }
    return sentence.format(**given).strip()


def _had_its_effect(wish: Wish, facts: Facts) -> bool:
    """Whether an end or a restore came of it, which leave nothing of how it was before."""
    if wish.kind in RESTORES:
        return facts.restored_at is not None and facts.restored_at >= wish.at
    return facts.ended is not None and facts.ended.at >= wish.at


def _known(key: str, facts: Facts) -> bool:
    return key in facts.done or key in facts.pending or key in facts.failures


def _answered(wish: Wish) -> str:
    return f"comment:heeded:{wish.key}"


def _explained(wish: Wish) -> str:
    return f"comment:wish:{wish.key}"
