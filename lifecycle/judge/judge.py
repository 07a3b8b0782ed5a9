"""Derives a session's status from its facts, with the evidence."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lifecycle.judge.blockers import blocker_names, blockers_for
from lifecycle.judge.reduce import foremost, read
from lifecycle.judge.rules import rule_for
from lifecycle.judge.signals import Signals
from lifecycle.model.actions import Action
from lifecycle.model.facts import Command, Facts
from lifecycle.model.key import Key
from lifecycle.model.policy import Policy
from lifecycle.model.status import Reason, Status
from lifecycle.read.restores import this_life
from lifecycle.read.sentences import sentence
from lifecycle.read.session_view import Recheck, SessionView

# Looked up once: a member of an enumeration costs a search each time it is named.
_CLEANUP = Status.CLEANUP


class Answer(NamedTuple):
    """The reply to a command."""

    command: Command
    key: Key
    text: str


#: What a reaction yields: actions, or when it may ask for some.
Wanted = Iterator[Action | Recheck]


class Judged(Struct, frozen=True):
    """The input of reactions: the view, its signals, and the status derived from them."""

    view: SessionView
    signals: Signals
    status: Status
    reason: Reason
    because: str
    recheck_at: datetime | None  #: When the same facts may read otherwise; None: never.
    cause: Key | None  #: Of what people are notified of; None: nothing.
    blockers: tuple[str, ...] = ()  #: All of them, as `name: sentence`.
    answers: tuple[Answer, ...] = ()  #: To commands that were judged now.
    asked: tuple[Command, ...] = ()  #: All commands there are, those without effect too.

    def as_shown(self) -> "Judged":
        """The session as people see it: with its outcome, even during cleanup."""
        ended = self.view.facts.ended
        if ended is None or self.status is not _CLEANUP:
            return self
        return replace(self, status=ended.status, reason=ended.reason, because=ended.because)

    @property
    def conversation(self) -> int:
        """The number to comment on: the pull request, or the issue while there is none."""
        pull = self.view.pull
        return pull.number if pull else self.view.facts.issue.number

    @property
    def people(self) -> bool:
        """Whether people said or did anything that may need a reply, or are to be told or asked."""
        view = self.view
        if self.asked or view.threads or view.unsent_remarks or view.handed_to_human:
            return True
        return bool(view.budgets.nearly or view.policy.reviewers or view.history.attention_labels)


def judge(facts: Facts, policy: Policy, now: datetime) -> Judged:
    """Derive the status from `facts`, with all that reactions and replies need."""
    view = foremost(SessionView(this_life(facts), policy, now))
    signals, evidence, recheck_at = read(view)
    rule = rule_for(signals)
    return Judged(
        view,
        signals,
        rule.status,
        rule.reason or evidence.reason,
        sentence(rule.because, view, why=evidence.why, blockers=blocker_names(signals)),
        recheck_at,
        evidence.cause,
        blocking(signals, view),
    )


def blocking(signals: Signals, view: SessionView) -> tuple[str, ...]:
    """Return everything that blocks the merge of a view's pull request, as `name: sentence`."""
    return tuple([f"{row.name}: {sentence(row.sentence, view)}" for row in blockers_for(signals)])
