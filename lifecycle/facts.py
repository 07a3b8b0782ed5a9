"""Everything known of a session at one instant; frozen, and the only input of a decision."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from lifecycle.status import (
    Activity,
    CheckState,
    Merge,
    Probe,
    PullState,
    Reason,
    Review,
    Status,
)


class Issue(Struct, frozen=True, kw_only=True):
    """The issue a session works on; title and body as they stood at the trigger."""

    number: int
    title: str
    body: str = ""
    url: str = ""
    author: str = ""
    open: bool = True
    #: GitHub's word for a closed issue: `completed`, `not_planned`, `duplicate`, or empty.
    state_reason: str = ""
    labelled: bool = True  #: Whether the label that asked for an agent is still on it.
    labelled_at: datetime | None = None  #: When it was put on, the time that was answered last.


class Exit(Struct, frozen=True, kw_only=True):
    """A program's end as its supervisor wrote it down: proof, not a probe."""

    at: datetime
    code: int | None = None  #: Exit code, or None where a signal ended it.
    signal: int | None = None
    tail: str = ""  #: The last lines it printed.


class Agent(Struct, frozen=True, kw_only=True):
    """The program of one run, as seen at its runtime and in its own files."""

    run: int = 0
    activity: Activity = Activity.NONE
    since: datetime | None = None  #: When `activity` began, by its evidence.
    seen: datetime | None = None  #: When there was last evidence of progress.
    evidence: str = ""  #: One line, for people: what was read, and where.
    question: str = ""  #: What it asks, while `waiting_input`.
    error: str = ""  #: What it says, while `blocked`.
    summary: str = ""  #: What it says it did.
    runtime: Probe = Probe.UNKNOWN
    program: Probe = Probe.UNKNOWN
    doubted: datetime | None = None  #: Since when the probes fail or disagree; None: they do not.
    exit: Exit | None = None
    native_id: str = ""  #: The agent's own name for its conversation, for resuming it.


class Work(Struct, frozen=True, kw_only=True):
    """The workspace: which commits it holds, and whether anything is not committed."""

    path: str = ""
    branch: str = ""
    base: str = ""  #: The commit the branch was made from.
    head: str = ""  #: The branch's commit now.
    dirty: bool | None = None  #: None: not looked since `head` or the activity changed.


class Check(Struct, frozen=True, kw_only=True):
    """The newest run of one check or commit status on the head."""

    id: str  #: Its identity for people and keys: application, workflow and name.
    name: str
    state: CheckState
    required: bool = False
    url: str = ""
    log: str = ""  #: The tail of a failed one's log, without control characters.
    run_id: int | None = None  #: The check run's number; None for a commit status.


class Remark(Struct, frozen=True, kw_only=True):
    """One thing a person said: a review's body, a thread's comment, a comment."""

    id: str
    author: str
    body: str
    at: datetime
    allowed: bool = False  #: Whether GitHub says the author may write to the repository.
    bot: bool = False  #: The account's type, as GitHub gives it; never guessed from the name.
    own: bool = False  #: Whether Mergewright wrote it.


class Thread(Struct, frozen=True, kw_only=True):
    """A review thread with every comment of it."""

    id: str
    path: str = ""
    line: int | None = None
    diff: str = ""
    resolved: bool = False
    outdated: bool = False
    remarks: tuple[Remark, ...] = ()


class Verdict(Struct, frozen=True, kw_only=True):
    """One reviewer's latest review that takes a side."""

    author: str
    approved: bool  #: False: changes requested.
    sha: str  #: The head it was given on.
    allowed: bool = False
    remark: Remark | None = None  #: Its body, where it has one.


class Pull(Struct, frozen=True, kw_only=True):
    """A pull request of this session, as last read whole."""

    number: int
    url: str = ""
    title: str = ""
    state: PullState = PullState.OPEN
    draft: bool = False
    head: str = ""
    base: str = ""  #: The base branch's commit.
    base_branch: str = ""
    merge: Merge = Merge.UNKNOWN
    review: Review = Review.NONE
    checks: tuple[Check, ...] = ()
    checks_complete: bool = True  #: False: some page is missing; never read as passing.
    #: Whether the base branch's rules require checks, so that none at all is not "settled".
    checks_expected: bool = False
    verdicts: tuple[Verdict, ...] = ()
    threads: tuple[Thread, ...] = ()
    comments: tuple[Remark, ...] = ()
    merged_at: datetime | None = None
    head_since: datetime | None = None  #: When this head was first seen.
    green_since: datetime | None = None  #: When its checks last turned all green, any head.
    read_at: datetime | None = None


class Wish(Struct, frozen=True, kw_only=True):
    """What a person asked for. Its key is its cause: the comment it stands in, or a request."""

    key: str
    kind: str  #: A name in COMMANDS, or `restore`.
    actor: str
    at: datetime  #: When it was granted.
    text: str = ""
    head: str = ""  #: The head that stood when it was written, for wishes bound to one.
    comment: int | None = None  #: The comment to answer and react to.


class Done(Struct, frozen=True, kw_only=True):
    """That an action was carried out."""

    at: datetime
    result: str = ""  #: What came of it, e.g. a pull request's number or a pushed sha.


class Failure(Struct, frozen=True, kw_only=True):
    """That an action was given up."""

    at: datetime
    reason: Reason
    detail: str


class Ended(Struct, frozen=True, kw_only=True):
    """The outcome an earlier decision came to; it changes only by a merge or a restore."""

    status: Status
    reason: Reason
    because: str
    at: datetime


class Facts(Struct, frozen=True, kw_only=True):
    """One session, seen at one instant."""

    session: str
    project: str
    created: datetime
    issue: Issue
    requester: str = ""
    agent_type: str = ""
    branch: str = ""
    run: int = 0  #: The run last ordered; 0: none yet.
    slot: bool = False  #: Whether it may run a program now.
    agent: Agent = Agent()
    work: Work = Work()
    pulls: tuple[Pull, ...] = ()
    wishes: tuple[Wish, ...] = ()
    done: Mapping[str, Done] = field(default_factory=dict)
    pending: frozenset[str] = frozenset()  #: Keys written down and not yet done.
    failures: Mapping[str, Failure] = field(default_factory=dict)
    ended: Ended | None = None
