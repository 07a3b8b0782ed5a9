"""Everything known about a session at one instant: a decision's input besides policy and time."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct, field

from lifecycle.model.key import Key
from lifecycle.model.status import (
    Activity,
    CheckState,
    DiskLimit,
    Merge,
    Mover,
    Origin,
    Probe,
    PullState,
    Reason,
    Review,
    Status,
)


class Frozen(Struct, frozen=True, kw_only=True):
    """A freeze: a person had the bot stop all actions for a session, a project or everything."""

    scope: str  #: What is frozen: `all`, `project` or `session`.
    by: str  #: If empty, unknown.
    at: datetime


class Remark(Struct, frozen=True, kw_only=True):
    """A comment, a comment of a review thread, a review's body, or the edit of an issue."""

    id: str
    author: str
    body: str
    at: datetime
    #: Whether its author and last editor may give commands, because they have write access or are
    #: listed in the configuration. For a bot's remark, only another account that edited it is
    #: checked.
    allowed: bool = False
    bot: bool = False  #: Whether GitHub's account type is bot; never guessed from the name.
    own: bool = False  #: Whether Mergewright wrote it.
    edit: bool = False  #: Whether it is an edit of the issue, with the new title and text.
    to_bot: bool = False  #: Whether it is addressed to Mergewright, so not to the agent.


class Issue(Struct, frozen=True, kw_only=True):
    """The issue a session works on. Title and body are kept from when the agent was requested.

    In a session without an issue, title and body are those of its prompt or of the pull request
    that it adopted. All other fields then have their defaults, except that with an adopted
    pull request, `private` is that of its repository. In a chat, the body is the person's first
    message.
    """

    number: int  #: If 0, there is no issue.
    title: str
    body: str = ""
    url: str = ""
    author: str = ""
    private: bool = False  #: Whether the repository is private.
    open: bool = True
    #: GitHub's word for a closed issue: `completed`, `not_planned`, `duplicate`, or empty. If the
    #: issue is gone, `deleted`.
    state_reason: str = ""
    #: Whether a label or an assignee asks for an agent. True for a session that needs neither.
    labelled: bool = True
    frozen: Frozen | None = None  #: By the label that freezes it; if None, that label is not set.
    #: When the label or assignee that was last acted on was added. None if there was none.
    labelled_at: datetime | None = None
    blocked_by: tuple[str, ...] = ()  #: The open issues it waits for, as `#5` or `owner/name#5`.
    in_circle: bool = False  #: Whether such an issue waits for this one in turn.
    #: The issue's newest comments, oldest first, and its last edit since the trigger. The body of
    #: a comment that the agent will never get is empty.
    remarks: tuple[Remark, ...] = ()
    left_out: int = 0  #: How many older comments `remarks` omits.
    labels: tuple[str, ...] = ()  #: Without Mergewright's own labels.
    milestone: str = ""
    linked: tuple[str, ...] = ()  #: Issues and pull requests that refer to it, as `#5`.
    #: Whether the bot may have commented on it before this session began.
    commented: bool = False


class Usage(Struct, frozen=True, kw_only=True):
    """Use of models, as the agent itself counts it."""

    input: int = 0  #: In tokens, as are the next four.
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost_usd: float | None = None  #: If None, no price is known.
    unpriced: int = 0  #: Tokens without a known price, which `cost_usd` does not include.
    #: The usage of each model, if the agent names its models; empty in the usage of one model.
    models: Mapping[str, "Usage"] = {}

    @property
    def tokens(self) -> int:
        """The tokens that a budget counts: all except those read from a cache."""
        return self.input + self.output + self.cache_write + self.reasoning


class Spending(Struct, frozen=True, kw_only=True):
    """What some runs have spent so far, such as those of a session, or of an agent in a day."""

    cost_usd: float = 0.0
    tokens: int = 0
    unpriced: int = 0  #: Tokens whose price is unknown.
    active_seconds: float = 0.0  #: Of turns that have ended, without the turn in progress.


class Exit(Struct, frozen=True, kw_only=True):
    """The proven end of a program, by its supervisor's record or, without one, by other proof."""

    at: datetime
    code: int | None = None  #: Exit code, or None if a signal ended it or the code is unknown.
    signal: int | None = None  #: The number of the signal that ended it, if any.
    tail: str = ""  #: The last lines it printed.
    #: The proof that the program was lost with its machine and did not fail by itself, such as a
    #: reboot or a missing runtime. Empty without proof.
    lost: str = ""


class ProbeFailure(Struct, frozen=True, kw_only=True):
    """Consecutive rounds in which the probes of runtime and program failed or disagreed.

    The `evidence` is the same in all rounds.
    """

    since: datetime
    evidence: str  #: What the probes showed, without times; other evidence starts a new count.
    rounds: int = 1  #: How many probes there were, counted up to `Policy.probe_rounds`.


class Agent(Struct, frozen=True, kw_only=True):
    """The agent's program in one run, as probes of its terminal and its own files show it."""

    run: int = 0
    activity: Activity = Activity.NONE
    since: datetime | None = None  #: When `activity` began, by its evidence.
    seen: datetime | None = None  #: When there was last evidence of progress.
    evidence: str = ""  #: One line, for people: what was read, and where.
    question: str = ""  #: What it asks, while `waiting_input`.
    error: str = ""  #: What it says, while `blocked`.
    limit_until: datetime | None = None  #: When its usage limit resets, if that is known.
    unauthorised: bool = False  #: Whether it reports that its key or login blocks it.
    calling: bool = False  #: Whether a tool call runs. Until it ends, the agent counts as active.
    usage: Usage = Usage()  #: Of this run so far.
    summary: str = ""  #: What it says it did.
    runtime: Probe = Probe.UNKNOWN
    program: Probe = Probe.UNKNOWN
    probe_failure: ProbeFailure | None = (
        None  #: How long the probes have failed or disagreed; if None, they do not.
    )
    exit: Exit | None = None
    native_id: str = ""  #: The agent's own name for its conversation, for resuming it.
    stopped: bool = False  #: Whether the bot ended it, so that it is not probed any more.


class OffBranch(Struct, frozen=True, kw_only=True):
    """Commits of the agent that are not on the session's branch."""

    head: str  #: The newest of these commits.
    branch: str = ""  #: The branch they are on; empty if HEAD is detached.
    #: Whether they are checked out and build on the session's branch, which can then move to them.
    adoptable: bool = False


class DiskExcess(Struct, frozen=True, kw_only=True):
    """The limit that a session's files on disk exceed."""

    limit: DiskLimit
    most: int = 0  #: The limit's value; 0 for `DiskLimit.READABLE`, which has none.
    since: datetime | None = None  #: When that was found; if None, not recorded yet.


class Work(Struct, frozen=True, kw_only=True):
    """The workspace: which commits it holds, and whether it has uncommitted changes."""

    path: str = ""
    branch: str = ""
    base: str = ""  #: The commit the branch was made from.
    head: str = ""  #: The branch's commit now.
    dirty: bool | None = None  #: If None, not examined since `head` or the activity changed.
    off_branch: OffBranch | None = None  #: Read with `dirty`; if None, there are no such commits.
    disk: DiskExcess | None = None  #: If None, as far as is known, its files exceed no limit.
    #: Why it could not be read after the agent's turn. Empty if it was read, or not examined yet.
    unreadable: str = ""


class Check(Struct, frozen=True, kw_only=True):
    """The newest run of one check or commit status on the head."""

    id: str  #: Its identity for people and keys: application, workflow and name.
    name: str
    state: CheckState
    required: bool = False
    reported: bool = True  #: If False, it is required, but has never reported on this head.
    url: str = ""
    log: str = ""  #: The end of its log if it failed, without control characters.
    notes: str = ""  #: Its annotations of files, one per line.
    run_id: int | None = None  #: GitHub's id of the check run; None for a commit status.
    red_on_base: bool = False  #: Whether it fails on the base's commit too.
    flaky: bool = False  #: Whether the project marks it as one that fails at random.


class Thread(Struct, frozen=True, kw_only=True):
    """A review thread with its comments, oldest first."""

    id: str
    path: str = ""
    line: int | None = None
    start: int | None = None  #: The first of its lines; if None, it is about `line` alone.
    diff: str = ""
    resolved: bool = False
    outdated: bool = False
    remarks: tuple[Remark, ...] = ()


class Verdict(Struct, frozen=True, kw_only=True):
    """One reviewer's latest review that approves or requests changes."""

    author: str
    bot: bool = False  #: As in `Remark`.
    approved: bool  #: If False, changes requested.
    sha: str  #: The head it was given on.
    for_base: bool = True  #: Whether the pull request had the same base branch then.
    allowed: bool = False  #: Whether the author has write access. A bot also has to be listed.
    remark: Remark | None = None  #: The review's body; if None, it has none.


class Push(Struct, frozen=True, kw_only=True):
    """A push: a branch was moved to a commit."""

    sha: str
    at: datetime  #: When it was first seen there.
    by: str = ""  #: The login of who pushed it; if empty, unknown.


class Dequeued(Struct, frozen=True, kw_only=True):
    """The removal of a pull request from GitHub's merge queue without a merge."""

    at: datetime
    reason: str = ""  #: As GitHub gives it; if empty, none.
    checks: tuple[Check, ...] = ()  #: The checks that failed on the merge queue's commit.


class Pull(Struct, frozen=True, kw_only=True):
    """A pull request of this session, as last read."""

    number: int
    url: str = ""
    title: str = ""
    state: PullState = PullState.OPEN
    draft: bool = False
    labels: tuple[str, ...] = ()
    branch: str = ""  #: The branch its commits are on.
    head: str = ""
    head_by: Mover = Mover.BOT  #: Who moved the branch there.
    person: Push | None = None  #: The newest push by a person; if None, there was none.
    contributors: frozenset[str] = frozenset()  #: Logins of people who pushed commits to it.
    #: Earlier heads whose approvals still count: only the base was merged into them since.
    carried: frozenset[str] = frozenset()
    base: str = ""  #: The base branch's commit.
    base_branch: str = ""
    #: When the base branch was first seen, if it replaced another one; else None.
    base_since: datetime | None = None
    merge: Merge = Merge.UNKNOWN
    clean_since: datetime | None = None  #: Since when GitHub says that this head can be merged.
    review: Review = Review.NONE
    checks: tuple[Check, ...] = ()
    #: If False, not all checks, reviews and threads could be read: checks do not count as passed.
    checks_complete: bool = True
    #: Names of the checks that ran for the last merged pull requests. They are read only if a check
    #: of this one failed or none ran.
    checks_expected: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    threads: tuple[Thread, ...] = ()
    comments: tuple[Remark, ...] = ()
    queue: bool = False  #: Whether its base branch requires GitHub's merge queue.
    barred: str = ""  #: The rule that keeps the bot from pushing to the base; if empty, none known.
    dequeued: Dequeued | None = None  #: Its last removal from the merge queue, at any head.
    frozen: Frozen | None = None  #: By the label that freezes it; if None, that label is not set.
    merged_at: datetime | None = None
    merged_by: str = ""  #: The login that merged it, if GitHub names one.
    #: When the bot pushed this head, or else when this head was first read.
    head_since: datetime | None = None
    pending_since: datetime | None = None  #: Since when a check is pending at this head.
    green_since: datetime | None = None  #: When all its checks last turned green, at any head.
    read_at: datetime | None = None  #: When it was first read.


class Command(Struct, frozen=True, kw_only=True):
    """A person's command. Its key is an opaque text that names the comment or request."""

    key: str
    kind: str  #: A name in `COMMANDS` of `bot.intake.commands`.
    actor: str
    at: datetime  #: When it was granted.
    text: str = ""  #: The argument.
    #: The head, at the time of writing, of the pull request that it is about. Empty if it could be
    #: about none or several. For `allow`, the session's commit that its text abbreviated when the
    #: command was granted; empty if that was another one.
    head: str = ""
    comment: int | None = None  #: The id of the comment to react to, if any.
    #: The issue or pull request where the command was given and gets its reply; 0 if it was not
    #: given on GitHub.
    number: int = 0


class Done(Struct, frozen=True, kw_only=True):
    """The record of an action that was carried out."""

    at: datetime
    result: str = ""  #: Its result, e.g. a pull request's number or a pushed sha.


class Sent(Struct, frozen=True, kw_only=True):
    """A message or an answer that was sent to a terminal and awaits its receipt."""

    at: datetime
    until: datetime  #: By when the agent's transcript is expected to show it.
    missing: bool = False  #: Whether the transcript did not show it after `until`.


class Failure(Struct, frozen=True, kw_only=True):
    """The record of an action that failed for good."""

    at: datetime
    reason: Reason
    detail: str


class Ended(Struct, frozen=True, kw_only=True):
    """The recorded outcome of a session. A merge replaces it; restoring the session removes it."""

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
    origin: Origin = Origin.ISSUE
    requester: str = ""
    agent_type: str = ""
    branch: str = ""
    run: int = 0  #: The run last ordered, or after a restore the run to start; if 0, none yet.
    slot: bool = False  #: Whether it may run a program now.
    #: When the pending start was or will be attempted next. None if no start is pending.
    start_due: datetime | None = None
    waits: str = ""  #: Why it has no slot, if it waits for one.
    agent_name: str = ""  #: The name of its agent: one of `[agents.NAME]`, or its agent type.
    agents: tuple[str, ...] = ()  #: The agents that commands may name, as in `agent_names`.
    permission_mode: str = ""  #: Given when it was created; if empty, that of its agent type.
    budget_usd: float = 0.0  #: Given when it was created; if 0, `Policy.session_usd`.
    #: The permission modes that commands may give it, by the names in `agents`.
    allowed_modes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spent: Spending = Spending()  #: By all its runs since it was last restored.
    spent_ever: Spending = Spending()  #: By all its runs there ever were.
    spent_beside: Spending = Spending()  #: By the other sessions of its issue.
    spent_today: Spending = Spending()  #: By all sessions of its repository, this UTC day.
    spent_by_person: Spending = Spending()  #: By all sessions of its requester, this UTC day.
    spent_by_agent: Spending = Spending()  #: By all runs of its agent, this UTC day.
    frozen: Frozen | None = None
    archived: bool = False  #: Whether its repository is archived: nothing can be written there.
    removed: bool = False  #: Whether its project is gone: nothing may be done there.
    restored_at: datetime | None = None
    agent: Agent = Agent()
    work: Work = Work()
    pulls: tuple[Pull, ...] = ()
    commands: tuple[Command, ...] = ()
    done: Mapping[Key, Done] = field(default_factory=dict)
    pending: frozenset[Key] = frozenset()  #: Keys of actions to be carried out; none of `sent`.
    sent: Mapping[Key, Sent] = field(default_factory=dict)  #: By the key of the action.
    failures: Mapping[Key, Failure] = field(default_factory=dict)
    ended: Ended | None = None
    #: How many sessions of the project ended since its last summary, by status. Empty unless this
    #: session was the last to end.
    finished: Mapping[str, int] = field(default_factory=dict)

    @property
    def subject_number(self) -> int:
        """The number of the issue, or else of the first pull request; 0 if there is neither."""
        return subject_number(self.issue, self.pulls)


def subject_number(issue: Issue, pulls: Iterable[Pull]) -> int:
    """Return the issue's number, else the lowest number of the pull requests, else 0."""
    return issue.number or min((pull.number for pull in pulls), default=0)
