"""The values that the store takes and returns. Times are aware datetimes in UTC."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from bot.store.errors import CorruptRow
from lifecycle.decide import Decision
from lifecycle.model.actions import Action
from lifecycle.model.candidates import Spawn
from lifecycle.model.facts import (
    Agent,
    Command,
    DiskExcess,
    Ended,
    Facts,
    Issue,
    Pull,
    Sent,
    Spending,
    Work,
)
from lifecycle.model.key import Key
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Blocker, Origin, Status


class Delivery(Struct, frozen=True, kw_only=True):
    """A webhook as it arrived."""

    id: str  #: GitHub's id, the header `X-GitHub-Delivery`; a redelivery has the same.
    event: str
    at: datetime
    body: bytes


class FailedDelivery(Struct, frozen=True, kw_only=True):
    """A webhook that could not be decoded or processed."""

    id: str
    event: str
    at: datetime
    error: str


class DeliveryOutcome(StrEnum):
    """Whether `deliveries.add` stored a delivery, knew it, or made a failed one due again."""

    NEW = "new"
    DUPLICATE = "duplicate"
    RETRIED = "retried"  #: The delivery had failed, and is processed once more.


ACCESS = "access:"  #: The subject of a request to read the bot's access to a repository.


class RefreshRequest(Struct, frozen=True, kw_only=True):
    """A request to read something at GitHub again, because it may have changed."""

    repository: str  #: `owner/name`
    #: Such as `issue:12`, `pull:34`, `branch:x` or `sha:abc`; also `repository:` for all its
    #: issues, `ACCESS`, and `other:34` for a pull request whose branch is not known yet.
    subject: str

    @property
    def name(self) -> str:
        """The repository and the subject, in the form in which the log names the request."""
        return f"{self.repository} {self.subject}"


class DueRefresh(RefreshRequest, frozen=True, kw_only=True):
    """A refresh to do now."""

    since: datetime  #: When it was last requested.
    due: datetime
    requests: int  #: How often it was requested. If that grows during a read, it is read again.


class NewCommand(Command, frozen=True, kw_only=True):
    """A person's command, with what is needed to authorize it and to find or open its session."""

    repository: str
    number: int  #: The issue or pull request that it concerns; if 0, neither.
    resume: str = ""  #: With `start`: the id of a conversation that the new session continues.
    spawn: Spawn | None = None  #: With `start`: the session to open; if None, that of the issue.
    addressee: str = ""  #: The id of the session that it names; if empty, it names none.


class ProcessedDelivery(Struct, frozen=True):
    """A delivery with its effects."""

    id: str
    refreshes: tuple[RefreshRequest, ...] = ()
    commands: tuple[NewCommand, ...] = ()
    repository: str = ""  #: The repository that the delivery names; empty if none or several.
    ignored: str = ""  #: Why it has no effects, a value of `Ignored`; if empty, it has some.


class StoredSize(Struct, frozen=True, kw_only=True):
    """A number of rows, and about how many bytes they take."""

    rows: int
    bytes: int


class ResourceOwner(Struct, frozen=True, kw_only=True):
    """A session, with what is needed to manage its folders, refs and programs."""

    id: str
    project: str
    branch: str
    agent_type: str
    run: int
    ended: Ended | None
    live: bool  #: Whether it is among `SessionsTable.live_ids`.
    requested: bool  #: Whether it has an issue that is open and asks for an agent, as last read.

    @property
    def ended_at(self) -> datetime | None:
        return self.ended.at if self.ended else None

    @property
    def over(self) -> bool:
        """Whether the session has ended, holds no slot and has no due action."""
        return self.ended is not None and not self.live


class CreatedSession(Struct, frozen=True, kw_only=True):
    """The fields that are set when a session is created; some change later, such as `priority`."""

    id: str
    project: str
    repository: str
    created: datetime
    issue: Issue
    branch: str
    origin: Origin = Origin.ISSUE
    requester: str = ""
    agent_type: str = ""
    agent_name: str = ""  #: The name of the assigned agent.
    budget_usd: float = 0.0  #: If 0, the project's.
    priority: int = 0  #: By how many steps it is moved up the queue for slots; down if negative.


class NewSession(CreatedSession, frozen=True, kw_only=True):
    """A session to create."""

    base: str = ""  #: The commit that its branch exists at already; if empty, it is a new branch.
    native_id: str = ""  #: The conversation that its first run continues; empty for a new one.
    permission_mode: str = ""  #: If empty, that of its agent type.
    metadata: Mapping[str, str] = {}


class Session(CreatedSession, frozen=True, kw_only=True):
    """A session with its facts and the last decision about it."""

    run: int
    slot: bool
    wants_slot: bool  #: Whether it has something to run and no slot.
    waits: str  #: Why it waits for a slot; empty if it does not, or if that is not known yet.
    restored_at: datetime | None
    spent: Spending  #: The usage since it was created or last restored.
    spent_ever: Spending  #: The usage of all its runs.
    metadata: Mapping[str, str]
    agent: Agent
    work: Work
    pulls: tuple[Pull, ...]
    commands: tuple[Command, ...]
    ended: Ended | None
    status: str
    since: datetime  #: Since when it has its `status`.
    because: str
    reason: str
    blockers: tuple[Blocker, ...]
    due: datetime | None  #: When it is reconciled next.
    version: int  #: Incremented when a fact or the decision changes, or it is woken.

    @property
    def activity(self) -> Activity:
        return self.agent.activity


class QueuedSession(Struct, frozen=True, kw_only=True):
    """A session that waits for a slot."""

    session: str
    project: str
    position: int  #: From 1.
    starts_at: datetime | None  #: Estimated; None if unknown.
    waits: str  #: Why it has no slot yet; empty if that is not known yet.
    since: datetime
    priority: int
    awaited: bool  #: Whether a person's command requested the run.


class AgentRecord(Struct, frozen=True, kw_only=True):
    """The record of one agent. Deleted sessions count only in its usage and cost."""

    agent: str
    sessions: int = 0
    live: int = 0  #: Sessions that have not ended.
    outcomes: Mapping[str, int] = {}  #: Ended sessions by status, and those `handed_over`.
    first_pass: int = 0  #: Merged sessions without a repair and without a review round.
    repairs: int = 0  #: Messages to the agent about failed checks and conflicts.
    review_rounds: int = 0  #: Messages to the agent about reviews and comments.
    cost_usd: float = 0.0
    unpriced: int = 0  #: Tokens without a known price; `cost_usd` excludes them.
    tokens: int = 0
    active_seconds: float = 0.0
    seconds_to_merge: float | None = None  #: Median from creation to merge; if None, no merge.

    @property
    def first_pass_rate(self) -> float | None:
        """The share of merged sessions without repairs or review rounds; None without merges."""
        merged = self.outcomes.get(Status.MERGED, 0)
        return self.first_pass / merged if merged else None


class LiveSession(Struct, frozen=True, kw_only=True):
    """The parts of a live session (see `SessionsTable.live_ids`) that observers use."""

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
    blocked: bool  #: Whether its issue is blocked by other issues.


class Observation(Struct, frozen=True, kw_only=True):
    """New facts of one session. A field is None if it was not observed."""

    session: str
    run: int | None = None  #: The run that `agent` and `work` belong to; None for the current one.
    agent: Agent | None = None
    work: Work | None = None
    pulls: tuple[Pull, ...] | None = None
    issue: Issue | None = None
    received: tuple[int, ...] = ()  #: `seq` of messages and answers (outbox) that have arrived.
    advanced: tuple[int, ...] = ()  #: `seq` of answers of which one step arrived: the next is due.
    measured: tuple[DiskExcess | None] | None = None  #: The new `Work.disk`; `work` is ignored.
    missing: tuple[int, ...] = ()  #: `seq` of messages and answers that did not arrive in time.


class DecisionRecord(Struct, frozen=True, kw_only=True):
    """A decision with its inputs. The row in the history has its time."""

    facts: Facts
    policy: Policy
    decision: Decision


class ReplayableDecision(Struct, frozen=True, kw_only=True):
    """A recorded decision with its inputs."""

    row: "HistoryRow"
    facts: Facts
    policy: Policy
    decision: dict[str, Any]  #: The decision as it was made, in JSON types.


class SessionDecision(Struct, frozen=True, kw_only=True):
    """A decision in the form in which the session's row stores it, with its actions."""

    status: str
    reason: str
    because: str
    run: int
    blockers: tuple[Blocker, ...] = ()
    actions: tuple[Action, ...] = ()
    recheck_at: datetime | None = None
    ended: Ended | None = None
    frees_slot: bool = False  #: Whether the session gives its slot back.
    wants_slot: bool = False  #: Whether the session has something to run and no slot.
    cause: str = ""  #: The key of the reason to notify people of the session; if empty, none.
    record: DecisionRecord | None = None  #: Written if the history gets a row for the decision.


class LoadedSession(Struct, frozen=True, kw_only=True):
    """One session as it is before a decision."""

    session: str
    repository: str = ""
    version: int  #: A decision is written only if the session still has this version.
    facts: Facts | CorruptRow  #: The error if a row of the session is corrupt.
    #: The last decision, as stored in its row.
    before: SessionDecision = SessionDecision(status="", reason="", because="", run=0)


class Receipt(Struct, frozen=True, kw_only=True):
    """How the arrival of a sent message or answer is recognised."""

    sent: Sent
    order: str = ""  #: Part of every attempt's key; new if a failed message becomes due again.
    tries: int = 1  #: How often it was sent, or for an answer, how often its current step was.
    dialog: str = ""  #: The dialog that was answered; empty for a message.
    state: str = ""  #: The state of that dialog when the step was sent; empty for a message.
    steps: int = 1  #: The number of the answer's steps sent so far.


class AwaitedReceipt(Struct, frozen=True, kw_only=True):
    """A message or an answer that may have arrived at an agent."""

    seq: int
    session: str
    key: Key
    run: int
    sent: bool  #: If False, the action is due, and may have been sent just before a crash.
    receipt: Receipt | None  #: Noted right before it is sent; None if it never was.


class DueAction(Struct, frozen=True, kw_only=True):
    """An action to execute now."""

    seq: int
    session: str  #: If empty, the action concerns the repository alone.
    repository: str
    action: Action
    attempts: int  #: The number of earlier attempts that failed and were counted.
    receipt: Receipt | None = None  #: Of a message or an answer: noted right before its last send.
    first: bool = False  #: Whether it certainly has no effect yet; if False, one is searched for.

    @property
    def subject(self) -> str:
        """The session or the repository, as it is named in the log."""
        return self.session or self.repository

    @property
    def queue(self) -> str:
        """The name of the action's queue, whose actions are executed one after another."""
        return self.session or f"{self.repository} {self.seq}"


class InheritedAction(DueAction, frozen=True, kw_only=True):
    """An action that was due when a leader was replaced; the former leader may still execute it."""

    former: str  #: The replaced leader's name; empty if nobody held the lease.
    at: datetime  #: When it was replaced.
    attempts: int = 0


class OutboxEntry(Struct, frozen=True, kw_only=True):
    """An action in the outbox, with its attempts and its result."""

    seq: int
    key: Key
    state: str  #: `due`, `sent` (awaits its receipt), `done` or `failed`.
    attempts: int
    created: datetime
    next_at: datetime  #: When it is attempted next, while it is due.
    done_at: datetime | None  #: When it was done or failed for good; None before.
    result: str  #: Empty until it is done.
    reason: str  #: Why it failed for good; empty if it did not.
    error: str  #: The error of the last failed attempt; if empty, none.
    action: Action


class HistoryKind(StrEnum):
    """The kinds of events in the history."""

    CREATED = "created"
    COMMAND = "command"  #: A person's command was granted.
    OBSERVED = "observed"  #: A change of the agent, its workspace, the issue or a pull request.
    SLOT = "slot"  #: The session got a slot.
    DECISION = "decision"
    DONE = "done"  #: An action was done.
    FAILED = "failed"  #: An action failed for good.
    WITHDRAWN = "withdrawn"  #: A due action was deleted.
    FREEZE = "freeze"
    UNFREEZE = "unfreeze"
    METADATA = "metadata"  #: Keys that were set or removed.
    KEYS = "keys"  #: A person typed into the terminal, or what they typed was dropped.


class HistoryRow(Struct, frozen=True, kw_only=True):
    """One event of a session."""

    seq: int
    session: str
    at: datetime
    kind: HistoryKind
    actor: str  #: A person (a login, or as `cli:ann`), `agent`, `github`, or the bot's own name.
    data: Mapping[str, Any]


class SessionEvent(Struct, frozen=True, kw_only=True):
    """One event of a session, with its project and actions."""

    row: HistoryRow
    project: str
    actions: Mapping[str, Action]  #: By key, at least those that `row` names; no withdrawn ones.
