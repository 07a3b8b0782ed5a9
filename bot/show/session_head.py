"""The top part of a session's page: its status, what blocks the merge, and the next action."""

from datetime import datetime

from msgspec import Struct

from bot.show.checklist import ChecklistItem, checklist, merge_awaits
from bot.show.next_action import NextAction, next_action
from bot.show.session_summary import SessionSummary, summarize
from bot.store import QueuedSession, Session
from bot.text.next_action import OBSERVED
from lifecycle.judge.pauses import frozen_by, frozen_by_label
from lifecycle.model.facts import Facts, Frozen
from lifecycle.model.names import MAKES_PULL
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import TERMINAL, Origin


class SessionHead(Struct, frozen=True, kw_only=True):
    """The top part of a session's page."""

    row: SessionSummary
    next: NextAction
    checklist: tuple[ChecklistItem, ...]  #: Empty for a `chat` and an ended session.
    frozen: Frozen | None  #: The freeze that applies to the session.
    by_label: bool  #: Whether that freeze is by a label, so that no command undoes it.
    chat: bool  #: Whether it is a chat without a pull request, and nobody has asked for one.
    failed: bool  #: Whether the bot has given up an action of the session.


def session_head(
    session: Session, facts: Facts, policy: Policy, now: datetime, queued: QueuedSession | None
) -> SessionHead:
    """Return the top part of a session's page."""
    chat = _is_chat(facts)
    observed = policy.mode is Mode.OBSERVE and session.status not in TERMINAL
    return SessionHead(
        row=summarize(session, queued),
        next=NextAction(text=OBSERVED) if observed else next_action(session),
        checklist=() if chat else checklist(session, merge_awaits(facts, policy, now)),
        frozen=frozen_by(facts),
        by_label=frozen_by_label(facts),
        chat=chat,
        failed=bool(facts.failures),
    )


def _is_chat(facts: Facts) -> bool:
    made = any(command.kind == MAKES_PULL for command in facts.commands)
    return facts.origin is Origin.CHAT and not facts.pulls and not made
