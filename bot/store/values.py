"""The values the store takes and gives. Times are aware datetimes in UTC."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from bot.store.errors import CorruptRow
from lifecycle.decide import Decision
from lifecycle.model.actions import Action
from lifecycle.model.facts import Agent, Command, Ended, Facts, Issue, Pull, Sent, Spending, Work
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Status


class Delivery(Struct, frozen=True, kw_only=True):
    """A webhook as it arrived."""

    id: str  #: GitHub's own id of it; a redelivery has the same.
    event: str
    at: datetime
    body: bytes
    state: str = "new"  #: `new`, `done` or `failed`.


class DeliveryOutcome(StrEnum):
    """What became of a delivery that was handed in."""

    NEW = "new"
    DUPLICATE = "duplicate"
    RETRIED = "retried"  #: It failed here before and waits once more.


#: The subject of a refresh that says: look whether, and where, we may do what is needed.
RIGHTS = "rights:"


class RefreshRequest(Struct, frozen=True, kw_only=True):
    """Something changed: look again at this."""

    repository: str  #: `owner/name`
    subject: str  #: `issue:12`, `pull:34`, `branch:mergewright/12-x` or `sha:abc`.


class DueRefresh(Struct, frozen=True, kw_only=True):
    """A refresh that waits to be looked at."""

    repository: str
    subject: str
    since: datetime  #: When it was last touched.
    due: datetime
    times: int  #: How often it was touched, so that a refresh during a read is not lost.


class NewCommand(Struct, frozen=True, kw_only=True):
    """What a person asked for, before it is known which session it concerns."""

    key: str  #: Its cause: `comment:<id>`.
    repository: str
    number: int  #: Of the issue or pull request it was written on.
    kind: str
    actor: str
    at: datetime
    text: str = ""
    comment: int | None = None
    resume: str = ""  #: With `start`: a conversation, which the session's home has already.


class NewSession(Struct, frozen=True, kw_only=True):
    """A session to be."""

    id: str
    project: str
    repository: str
    created: datetime
    issue: Issue
    branch: str
    requester: str = ""
    agent_type: str = ""
    agent_name: str = ""
    priority: int = 0
    native_id: str = ""  #: The conversation its first run goes on with; empty: a new one.


class Session(Struct, frozen=True, kw_only=True):
    """All that is known of a session: its facts, and what was last decided about it."""

    id: str
    project: str
    repository: str
    created: datetime
    issue: Issue
    requester: str
    agent_type: str
    agent_name: str  #: The identity at work; empty: none was given to it.
    branch: str
    run: int
    slot: bool
    wants_slot: bool  #: Whether it has something to run and no slot.
    wanted_since: datetime | None
    waits: str  #: Why it was given no slot, where that was asked for.
    priority: int  #: Among those that want a slot: steps of waiting that it is ahead.
    restored_at: datetime | None
    spent: Spending  #: Since it was last restored.
    spent_ever: Spending
    metadata: Mapping[str, str]
    agent: Agent
    work: Work
    pulls: tuple[Pull, ...]
    commands: tuple[Command, ...]
    ended: Ended | None
    status: str
    since: datetime  #: When `status` became what it is.
    because: str
    reason: str
    blockers: tuple[str, ...]
    decided_at: datetime | None  #: When a decision last differed from the one before it.
    due: datetime | None  #: When it is visited next.
    version: int  #: How often its facts changed.

    @property
    def activity(self) -> Activity:
        """What its agent is doing."""
        return self.agent.activity


class QueuedSession(Struct, frozen=True, kw_only=True):
    """A session that waits for a slot."""

    session: str
    position: int  #: From 1.
    starts_at: datetime | None  #: When it may be its turn; None: nothing is known of that.
    waits: str  #: Why it has none yet.
    since: datetime
    priority: int
    awaited: bool  #: Whether a person's own command is what it wants to run for.


class UsageTotal(Struct, frozen=True, kw_only=True):
    """What models were used for under one roof, and what that cost."""

    name: str  #: Of a session, an agent, a repository, a day ...
    sessions: int
    input: int  #: Tokens, likewise below.
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    unpriced: int  #: Of all but `cache_read`, those that are not in `cost_usd`: without a price.
    cost_usd: float
    active_seconds: float  #: Of turns that have ended.


class AgentRecord(Struct, frozen=True, kw_only=True):
    """What became of all that one agent worked on."""

    agent: str
    sessions: int = 0
    live: int = 0  #: Of them, not over.
    outcomes: Mapping[str, int] = {}  #: How many ended how.
    first_pass: int = (
        0  #: Merged as they were opened: without a repair, and without a review round.
    )
    repairs: int = 0  #: Messages about failed checks and conflicts.
    review_rounds: int = 0  #: Messages about reviews and comments.
    cost_usd: float = 0.0
    unpriced: int = 0  #: Tokens that are not in it, because nobody knows their price.
    seconds_to_merge: float | None = None  #: The median of those that were merged; None: none was.

    @property
    def first_pass_rate(self) -> float | None:
        """Of those that were merged; None: none was."""
        merged = self.outcomes.get(Status.MERGED, 0)
        return self.first_pass / merged if merged else None


class LiveSession(Struct, frozen=True, kw_only=True):
    """What a sweep needs of a session."""

    id: str
    project: str
    repository: str
    number: int
    branch: str
    agent_type: str
    run: int
    status: str
    agent: Agent
    work: Work
    pulls: tuple[int, ...]  #: The numbers of its pull requests.
    blocked: bool  #: Whether its issue waits for others.


class Observation(Struct, frozen=True, kw_only=True):
    """What was seen of one session; None: not looked at."""

    session: str
    run: int | None = None  #: Of which run `agent` and `work` speak; None: of any.
    agent: Agent | None = None
    work: Work | None = None
    pulls: tuple[Pull, ...] | None = None
    issue: Issue | None = None
    received: tuple[int, ...] = ()  #: Rows of the outbox: what was sent there has arrived.
    advanced: tuple[int, ...] = ()  #: Answers of which one step arrived, and the next is due.
    missing: tuple[int, ...] = ()  #: What was sent and has not arrived in time.


class DecisionRecord(Struct, frozen=True, kw_only=True):
    """A decision with all that it was made from, but for the time: that is its history row's."""

    facts: Facts
    policy: Policy
    decision: Decision


class SessionDecision(Struct, frozen=True, kw_only=True):
    """A decision, as it is written down."""

    status: str
    reason: str
    because: str
    run: int
    blockers: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    recheck_at: datetime | None = None
    ended: Ended | None = None
    frees_slot: bool = False  #: Whether it has a slot and needs it no more.
    wants_slot: bool = False  #: Whether it has something to run and no slot.
    judgement: DecisionRecord | None = None  #: What it was made from, kept where it is news.


class LoadedSession(Struct, frozen=True, kw_only=True):
    """One session as a visit finds it."""

    session: str
    version: int  #: How often its facts had changed: a decision counts for this one alone.
    facts: Facts | CorruptRow
    before: SessionDecision = SessionDecision(
        status="", reason="", because="", run=0
    )  #: As it is written now.


class Receipt(Struct, frozen=True, kw_only=True):
    """How a message or an answer is found again where it was sent to."""

    sent: Sent
    tries: int = 1  #: How often it was sent; of an answer in several steps: this step.
    dialog: str = ""  #: The dialog that was answered; empty: it is a message.
    step: str = ""  #: What the dialog showed when it was answered.
    steps: int = 1  #: How many steps of the answer were taken.


class AwaitedReceipt(Struct, frozen=True, kw_only=True):
    """A message or an answer that may have arrived at an agent."""

    seq: int
    session: str
    key: str
    run: int
    receipt: Receipt | None  #: None: it is not known to have been sent.


class DueAction(Struct, frozen=True, kw_only=True):
    """An action to do now."""

    seq: int
    session: str  #: Empty: it concerns the repository alone.
    repository: str
    action: Action
    attempts: int  #: How often it was tried before.
    receipt: Receipt | None = None  #: Of the last time it was sent.

    @property
    def subject(self) -> str:
        """The session or the repository, as the log names it."""
        return self.session or self.repository

    @property
    def queue(self) -> str:
        """Actions of one queue are carried out one after the other."""
        return self.session or f"{self.repository} {self.seq}"


class OutboxEntry(Struct, frozen=True, kw_only=True):
    """An action that was written down, and what came of it so far."""

    seq: int
    key: str
    state: str  #: `due`, `sent` (and awaits its receipt), `done` or `dead`.
    attempts: int
    created: datetime
    next_at: datetime  #: When it is tried next, while it is due.
    done_at: datetime | None
    result: str
    reason: str  #: Why it was given up.
    error: str  #: Of the last try that failed.
    action: Action


class HistoryKind(StrEnum):
    """What can happen to a session: every kind of row its history has."""

    CREATED = "created"
    COMMAND = "command"  #: A person asked for something.
    OBSERVED = "observed"  #: The agent, its program, its work, the issue or a pull request changed.
    SLOT = "slot"  #: It was given a place to run a program.
    DECISION = "decision"
    DONE = "done"  #: An action was carried out; likewise below.
    FAILED = "failed"
    WITHDRAWN = "withdrawn"
    FREEZE = "freeze"
    UNFREEZE = "unfreeze"


class HistoryRow(Struct, frozen=True, kw_only=True):
    """One thing that happened to a session, with who did it and by what that is known."""

    seq: int
    session: str
    at: datetime
    kind: HistoryKind
    actor: str  #: A person's login, `agent`, `github`, or the bot's own name.
    data: Mapping[str, Any]
