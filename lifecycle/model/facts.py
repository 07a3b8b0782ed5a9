"""Everything known about a session at one instant: the only input of a decision. Immutable.

At the end: what observers report of an issue that asks for an agent, to open a session for it.
"""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from lifecycle.model.key import Key
from lifecycle.model.status import (
    Activity,
    CheckState,
    Merge,
    Mover,
    Probe,
    PullState,
    Reason,
    Review,
    Status,
)


class Frozen(Struct, frozen=True, kw_only=True):
    """A freeze: a person stopped all effects."""

    scope: str  #: `all`, `project` or `session`: the widest that applies.
    by: str
    at: datetime


class Remark(Struct, frozen=True, kw_only=True):
    """A comment, a comment of a review thread, a review's body, or the edit of an issue."""

    id: str
    author: str
    body: str
    at: datetime
    allowed: bool = False  #: Whether GitHub says the author may write to the repository.
    bot: bool = False  #: The account's type, as GitHub gives it; never guessed from the name.
    own: bool = False  #: Whether Mergewright wrote it.
    edit: bool = False  #: Whether it is an edit of the issue, with the new title and text.
    to_bot: bool = False  #: Whether it is addressed to Mergewright, so not to the agent.


class Issue(Struct, frozen=True, kw_only=True):
    """The issue a session works on; title and body as they were at the trigger."""

    number: int
    title: str
    body: str = ""
    url: str = ""
    author: str = ""
    private: bool = False  #: Whether only its members see the repository.
    open: bool = True
    #: GitHub's word for a closed issue: `completed`, `not_planned`, `duplicate`, or empty.
    state_reason: str = ""
    labelled: bool = True  #: Whether the label that asked for an agent is still on it.
    frozen: Frozen | None = None  #: By the label that freezes; None: it is not on it.
    labelled_at: datetime | None = None  #: When it was put on, the time that was answered last.
    blocked_by: tuple[str, ...] = ()  #: The open issues it waits for, as `#5` or `owner/name#5`.
    in_circle: bool = False  #: Whether such an issue waits for this one in turn.
    #: Its newest comments, oldest first, and its last edit since the trigger. The bodies of people
    #: without access are empty.
    remarks: tuple[Remark, ...] = ()
    left_out: int = 0  #: How many older comments are not among them.
    labels: tuple[str, ...] = ()  #: Without those that are Mergewright's.
    milestone: str = ""
    linked: tuple[str, ...] = ()  #: Issues and pull requests that refer to it, as `#5`.
    #: Whether the bot may have commented on it before this session began.
    commented: bool = False


class Usage(Struct, frozen=True, kw_only=True):
    """Use of models, as the agent itself counts it."""

    input: int = 0  #: Tokens, as are the other kinds.
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost_usd: float | None = None  #: None: no price is known.
    unpriced: int = 0  #: Of all tokens, those that `cost_usd` does not hold: without a price.
    #: The same by model, where it says which it used; of a model there are no further ones.
    models: Mapping[str, "Usage"] = {}

    @property
    def tokens(self) -> int:
        """The tokens that a budget counts: all but those read from a cache."""
        return self.input + self.output + self.cache_write + self.reasoning


class Spending(Struct, frozen=True, kw_only=True):
    """What was spent so far, by a session's runs or by a repository in a day."""

    cost_usd: float = 0.0
    tokens: int = 0
    unpriced: int = 0  #: Tokens whose price is unknown.
    active_seconds: float = 0.0  #: Of turns that have ended; the one under way is not in it.


class Exit(Struct, frozen=True, kw_only=True):
    """A program's end as its supervisor wrote it down: proof, not a probe."""

    at: datetime
    code: int | None = None  #: Exit code, or None where a signal ended it.
    signal: int | None = None
    tail: str = ""  #: The last lines it printed.
    #: What proves that it was lost with its machine and did not fail by itself: another boot, a
    #: runtime that is gone. Empty: nothing does.
    lost: str = ""


class ProbeFailure(Struct, frozen=True, kw_only=True):
    """Consecutive probes that failed or contradict each other, all with the same evidence."""

    since: datetime
    evidence: str  #: What was seen, without its times: another evidence begins another doubt.
    rounds: int = 1  #: Counted up to what `Policy.probe_rounds` asks for.


class Agent(Struct, frozen=True, kw_only=True):
    """The program of one run, as seen at its runtime and in its own files."""

    run: int = 0
    activity: Activity = Activity.NONE
    since: datetime | None = None  #: When `activity` began, by its evidence.
    seen: datetime | None = None  #: When there was last evidence of progress.
    evidence: str = ""  #: One line, for people: what was read, and where.
    question: str = ""  #: What it asks, while `waiting_input`.
    error: str = ""  #: What it says, while `blocked`.
    limit_until: datetime | None = None  #: When the usage limit that blocks it resets, if it says.
    unauthorised: bool = False  #: Whether what blocks it is its key or login, as it says.
    calling: bool = False  #: Whether a tool it called has not returned: no silence, however long.
    usage: Usage = Usage()  #: Of this run so far.
    summary: str = ""  #: What it says it did.
    runtime: Probe = Probe.UNKNOWN
    program: Probe = Probe.UNKNOWN
    probe_failure: ProbeFailure | None = (
        None  #: Whether the probes fail or disagree; None: they do not.
    )
    exit: Exit | None = None
    native_id: str = ""  #: The agent's own name for its conversation, for resuming it.
    stopped: bool = False  #: Whether the bot ended it, so that it is not probed any more.


class OffBranch(Struct, frozen=True, kw_only=True):
    """Commits of the agent that are not on the session's branch."""

    head: str  #: The newest of them.
    branch: str = ""  #: The branch they are on; empty: on none, HEAD is detached.
    #: Whether they are checked out and build on the session's branch, so that it can move there.
    adoptable: bool = False


class Work(Struct, frozen=True, kw_only=True):
    """The workspace: which commits it holds, and whether anything is not committed."""

    path: str = ""
    branch: str = ""
    base: str = ""  #: The commit the branch was made from.
    head: str = ""  #: The branch's commit now.
    dirty: bool | None = None  #: None: not looked since `head` or the activity changed.
    off_branch: OffBranch | None = None  #: Read with `dirty`; None: there are no such commits.
    unreadable: str = ""  #: Why it could not be read when the agent came to rest.


class Check(Struct, frozen=True, kw_only=True):
    """The newest run of one check or commit status on the head."""

    id: str  #: Its identity for people and keys: application, workflow and name.
    name: str
    state: CheckState
    required: bool = False
    reported: bool = True  #: False: it is required, but has never reported on this head.
    url: str = ""
    log: str = ""  #: The tail of a failed one's log, without control characters.
    notes: str = ""  #: What it noted at lines of files, a line each.
    run_id: int | None = None  #: The check run's number; None for a commit status.
    red_on_base: bool = False  #: Whether it fails on the base's commit too.
    flaky: bool = False  #: Whether the project marks it as one that fails at random.


class Thread(Struct, frozen=True, kw_only=True):
    """A review thread with all its comments."""

    id: str
    path: str = ""
    line: int | None = None
    start: int | None = None  #: The first of its lines, where it is about several.
    diff: str = ""
    resolved: bool = False
    outdated: bool = False
    remarks: tuple[Remark, ...] = ()


class Verdict(Struct, frozen=True, kw_only=True):
    """One reviewer's latest review that approves or requests changes."""

    author: str
    bot: bool = False  #: By GitHub's type of the account.
    approved: bool  #: False: changes requested.
    sha: str  #: The head it was given on.
    for_base: bool = True  #: Whether the pull request had the same base branch then.
    allowed: bool = False
    remark: Remark | None = None  #: Its body, where it has one.


class Push(Struct, frozen=True, kw_only=True):
    """A push: a branch was moved to a commit."""

    sha: str
    at: datetime  #: When it was first seen there.
    by: str = ""  #: The login of who pushed it; empty: unknown.


class Dequeued(Struct, frozen=True, kw_only=True):
    """The removal of a pull request from GitHub's merge queue without a merge."""

    at: datetime
    reason: str = ""  #: GitHub's word for it.
    checks: tuple[Check, ...] = ()  #: What failed on the commit it was tried with.


class Pull(Struct, frozen=True, kw_only=True):
    """A pull request of this session, as last read completely."""

    number: int
    url: str = ""
    title: str = ""
    state: PullState = PullState.OPEN
    draft: bool = False
    labels: tuple[str, ...] = ()
    branch: str = ""  #: The branch its commits are on.
    head: str = ""
    head_by: Mover = Mover.BOT  #: Who moved the branch there.
    person: Push | None = None  #: The newest commit that a person brought there.
    contributors: frozenset[str] = frozenset()  #: Logins of people who pushed commits to it.
    #: Earlier heads whose approval this one keeps: only the base was merged into them since.
    carried: frozenset[str] = frozenset()
    base: str = ""  #: The base branch's commit.
    base_branch: str = ""
    base_since: datetime | None = None  #: When another base branch was first seen; None: never.
    merge: Merge = Merge.UNKNOWN
    clean_since: datetime | None = None  #: Since when GitHub says that this head can be merged.
    review: Review = Review.NONE
    checks: tuple[Check, ...] = ()
    checks_complete: bool = True  #: False: some page is missing; never read as passing.
    #: Names of checks that ran for the last merged pull requests, where none ran for this one.
    checks_expected: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    threads: tuple[Thread, ...] = ()
    comments: tuple[Remark, ...] = ()
    queue: bool = False  #: Whether its base is reached through GitHub's merge queue alone.
    barred: str = ""  #: The rule that keeps the bot from pushing to the base; empty: none known.
    dequeued: Dequeued | None = None  #: The last time that the queue put it out, at any head.
    frozen: Frozen | None = None  #: By the label that freezes; None: it is not on it.
    merged_at: datetime | None = None
    #: Since when it has this head: when the bot pushed it, or else when it was first read.
    head_since: datetime | None = None
    pending_since: datetime | None = None  #: Since when a check is pending at this head.
    green_since: datetime | None = None  #: When its checks last turned all green, any head.
    read_at: datetime | None = None


class Command(Struct, frozen=True, kw_only=True):
    """A person's command. Its key is an opaque text that names the comment or request."""

    key: str
    kind: str  #: A name in COMMANDS.
    actor: str
    at: datetime  #: When it was granted.
    text: str = ""
    head: str = ""  #: The head that stood when it was written, for commands bound to one.
    comment: int | None = None  #: The comment to react to.
    #: The issue or pull request where it was given, and is answered; 0: not on GitHub.
    number: int = 0


class Done(Struct, frozen=True, kw_only=True):
    """The record of an action that was carried out."""

    at: datetime
    result: str = ""  #: Its result, e.g. a pull request's number or a pushed sha.


class Sent(Struct, frozen=True, kw_only=True):
    """A message or an answer that was sent to a terminal and awaits its receipt."""

    at: datetime
    until: datetime  #: By when it is expected to show up in what the agent reads.
    missing: bool = False  #: Whether a look after `until` did not find it there.


class Failure(Struct, frozen=True, kw_only=True):
    """The record of an action that failed for good."""

    at: datetime
    reason: Reason
    detail: str


class Ended(Struct, frozen=True, kw_only=True):
    """The recorded outcome of a session; only a merge or a restore changes it."""

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
    start_due: datetime | None = None  #: Since when the start that is written down is being tried.
    waits: str = ""  #: Why it has no slot, if it waits for one.
    agent_name: str = ""  #: The identity at work: a name in the configuration's `agents`.
    agents: tuple[str, ...] = ()  #: The names that commands may use: agents and agent types.
    permission_mode: str = ""  #: Given when it was created; empty: that of its agent type.
    #: The permission modes that commands may give it, by these names.
    allowed_modes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    spent: Spending = Spending()  #: By all its runs since it was last restored.
    spent_ever: Spending = Spending()  #: By all runs there ever were for its issue.
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
    pending: frozenset[Key] = frozenset()  #: Keys written down and not yet done.
    sent: Mapping[Key, Sent] = field(default_factory=dict)  #: By the key of the action.
    failures: Mapping[Key, Failure] = field(default_factory=dict)
    ended: Ended | None = None
    #: How many sessions of its project ended how, where it was the last of them to end.
    finished: Mapping[str, int] = field(default_factory=dict)


class Labelled(Struct, frozen=True, kw_only=True, tag="labelled"):
    """A label or an assignment that asks for an agent."""

    actor: str  #: Empty: unknown.
    at: datetime
    agent: str  #: The name of an agent, or an agent type.
    names_agent: bool  #: Whether the label itself names the agent (`mergewright:NAME`).


class Reopened(Struct, frozen=True, kw_only=True, tag="reopened"):
    """An issue, or the pull request of its session, that was reopened."""

    actor: str  #: Empty: unknown.
    at: datetime
    number: int  #: Of the issue or the pull request.


class Requested(Struct, frozen=True, kw_only=True, tag="requested"):
    """A start command, already authorized, on an issue without a session."""

    key: str  #: Of the command.
    actor: str  #: A login, or a command line's or page's user (`cli:ann`).
    at: datetime
    agent: str  #: The name of an agent or an agent type; empty: the project's default.
    permission_mode: str = ""
    resume: str = ""  #: The agent's own conversation to resume.
    is_local: bool = False  #: Whether it came from this machine, where nobody waits for a comment.


Trigger = Labelled | Reopened | Requested


class Candidate(Struct, frozen=True, kw_only=True):
    """One trigger on one issue, with the permissions that were read for it."""

    project: str  #: Empty: no configured project has this repository.
    repository: str
    number: int  #: Of the issue.
    trigger: Trigger
    allowed: bool  #: Whether the actor has write access or is listed; read uncached.
    #: Who edited the text after the trigger without write access; empty: unknown, None: nobody.
    edited_by: str | None = None
    issue: Issue | None = None  #: None: there is no such issue. Not needed to reopen.
    is_pull: bool = False
    priority: int = 0  #: From the issue's labels.
