"""Actions: everything a decision may request, each with a key derived from its cause.

Actions on the program carry the run in their key; actions on GitHub do not.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from lifecycle.model.key import Key
from lifecycle.model.policy import MergeMethod
from lifecycle.model.status import Status


class Prompt(Struct, frozen=True, kw_only=True):
    """A message to the agent: which text of `config/prompts/`, and what goes into it."""

    name: str  #: The file's name without `.md`.
    values: Mapping[str, str] = field(default_factory=dict)
    items: tuple[Mapping[str, str], ...] = ()  #: What it lists: failed checks, remarks.


class Start(Struct, frozen=True, kw_only=True, tag="start"):
    """Make the workspace if it is not there and start the program of one run."""

    key: Key
    run: int
    prompt: Prompt
    resume: str = ""  #: The agent's own conversation to resume.
    agent: str = ""  #: Who takes over: an agent's name or an agent type; empty: who has it.
    covers: tuple[Key, ...] = ()  #: Further keys that are done when this is.
    #: What waits for the agent at GitHub, for one that remembers nothing: `what`, `text`, `log`.
    waiting: tuple[Mapping[str, str], ...] = ()


class SendMessage(Struct, frozen=True, kw_only=True, tag="send_message"):
    """Send a message to the running program."""

    key: Key
    run: int
    prompt: Prompt
    covers: tuple[Key, ...] = ()


class Publish(Struct, frozen=True, kw_only=True, tag="publish"):
    """Fetch the workspace's commits, check them and push them to the session's branch."""

    key: Key
    head: str
    protected: tuple[str, ...] = ()  #: Paths that may not be changed by it.


class MergeRemote(Struct, frozen=True, kw_only=True, tag="merge_remote"):
    """Merge the commits that others pushed to the session's branch into its workspace.

    Its result is `conflict` if they conflict with the agent's own commits.
    """

    key: Key
    head: str  #: GitHub's commit.
    into: str  #: The workspace's.


class UpdateBranch(Struct, frozen=True, kw_only=True, tag="update_branch"):
    """Have GitHub merge the base into a pull request's branch, if its head has not changed."""

    key: Key
    number: int
    head: str


class Rerun(Struct, frozen=True, kw_only=True, tag="rerun"):
    """Rerun failed or cancelled checks."""

    key: Key
    number: int
    runs: tuple[int, ...]  #: Numbers of check runs.


class OpenPull(Struct, frozen=True, kw_only=True, tag="open_pull"):
    """Open the pull request of the pushed branch."""

    key: Key
    head: str
    draft: bool = False


class MakeReady(Struct, frozen=True, kw_only=True, tag="make_ready"):
    """Take a pull request out of draft."""

    key: Key
    number: int


class RequestReview(Struct, frozen=True, kw_only=True, tag="request_review"):
    """Ask people and teams for their review."""

    key: Key
    number: int
    reviewers: tuple[str, ...]  #: Logins; a team is `owner/team`.


class Comment(Struct, frozen=True, kw_only=True, tag="comment"):
    """Comment on the issue or the pull request."""

    key: Key
    number: int
    topic: str  #: Which sentence of `bot/text/messages.py`.
    values: Mapping[str, str] = field(default_factory=dict)


class StatusSummary(Struct, frozen=True, kw_only=True):
    """A session's status with its evidence, as reports show it."""

    session: str
    agent: str
    branch: str
    status: Status
    because: str
    pull: int | None = None
    blockers: tuple[str, ...] = ()  #: `name: sentence`.
    question: str = ""  #: What the agent asks.
    remedy: str = ""
    cost: str = ""  #: Empty: nothing was spent, or it is nobody's business here.
    commands: tuple[str, ...] = ()  #: Names of those that depend on the status and work in it.


class Report(Struct, frozen=True, kw_only=True, tag="report"):
    """Create or update the bot's status comment on an issue or a pull request."""

    key: Key
    number: int
    comment: int | None  #: The comment, where it is known.
    summary: StatusSummary


class ReportCheck(Struct, frozen=True, kw_only=True, tag="report_check"):
    """Create or update the bot's check run on a commit. It never blocks a merge."""

    key: Key
    head: str
    check: int | None  #: The check run, where it is known.
    summary: StatusSummary


class FaultyLine(Struct, frozen=True, kw_only=True):
    """What is wrong with a line of a file."""

    line: int
    says: str


class ReportConfiguration(Struct, frozen=True, kw_only=True, tag="report_configuration"):
    """Report what is wrong with a repository's own configuration, as a check of its commit."""

    key: Key
    head: str
    path: str
    problems: tuple[FaultyLine, ...]


class ShowStatus(Struct, frozen=True, kw_only=True, tag="show_status"):
    """Label the issue with a status, and remove the labels of all others."""

    key: Key
    number: int
    status: Status


class Label(Struct, frozen=True, kw_only=True, tag="label"):
    """Add a label to the issue, or remove it."""

    key: Key
    number: int
    name: str
    on: bool


class React(Struct, frozen=True, kw_only=True, tag="react"):
    """Add a reaction to a comment, as an acknowledgement."""

    key: Key
    comment: int
    content: str  #: GitHub's name of it, e.g. `eyes`.


class Reply(Struct, frozen=True, kw_only=True, tag="reply"):
    """Answer in review threads, as one review."""

    key: Key
    number: int
    threads: tuple[str, ...]
    topic: str
    values: Mapping[str, str] = field(default_factory=dict)
    resolve: bool = False  #: Whether that settles it.


class MergePull(Struct, frozen=True, kw_only=True, tag="merge_pull"):
    """Merge a pull request, but only at the commit that was judged."""

    key: Key
    number: int
    sha: str
    method: MergeMethod
    asked: bool = False  #: Whether a person named the method, so that no other will do.
    by: str = ""  #: On whose word; empty: policy merges by itself.


class Enqueue(Struct, frozen=True, kw_only=True, tag="enqueue"):
    """Add a pull request to GitHub's merge queue, but only at the commit that was judged."""

    key: Key
    number: int
    sha: str
    by: str = ""  #: As of a merge.


class Dequeue(Struct, frozen=True, kw_only=True, tag="dequeue"):
    """Remove a pull request from GitHub's merge queue."""

    key: Key
    number: int


class CloseIssue(Struct, frozen=True, kw_only=True, tag="close_issue"):
    """Close the issue, if the merge did not."""

    key: Key
    number: int


class DeleteBranch(Struct, frozen=True, kw_only=True, tag="delete_branch"):
    """Delete the session's branch on GitHub, if it is still at the merged commit."""

    key: Key
    branch: str
    sha: str


class Stop(Struct, frozen=True, kw_only=True, tag="stop"):
    """Stop the program of a run and all its processes; the workspace stays."""

    key: Key
    run: int


class Release(Struct, frozen=True, kw_only=True, tag="release"):
    """Stop the program and remove the workspace; unpushed work is kept in the mirror first."""

    key: Key
    run: int


Action = (
    Start
    | SendMessage
    | Publish
    | MergeRemote
    | UpdateBranch
    | Rerun
    | OpenPull
    | MakeReady
    | RequestReview
    | Comment
    | Report
    | ReportCheck
    | ReportConfiguration
    | ShowStatus
    | Label
    | React
    | Reply
    | MergePull
    | Enqueue
    | Dequeue
    | CloseIssue
    | DeleteBranch
    | Stop
    | Release
)
