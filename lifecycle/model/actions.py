"""Actions: everything a decision may request, each with a key derived from its cause.

Actions on the program carry the run in their key; actions on GitHub do not.
"""

import re
from collections.abc import Mapping

from msgspec import Struct, field

from lifecycle.model.key import Key
from lifecycle.model.policy import MergeMethod
from lifecycle.model.status import Blocker, Status


def _tag(name: str) -> str:
    """Return the name of a class in snake case."""
    return re.sub("(?<!^)([A-Z])", r"_\1", name).lower()


class _Action(Struct, frozen=True, kw_only=True, tag=_tag):
    key: Key


class _OnRun(_Action, frozen=True, kw_only=True):
    run: int


class _OnNumber(_Action, frozen=True, kw_only=True):
    number: int  #: Of the issue or the pull request.


class Prompt(Struct, frozen=True, kw_only=True):
    """A message to the agent: which text of `config/prompts/`, and what goes into it."""

    name: str  #: The file's name without `.md`.
    values: Mapping[str, str] = field(default_factory=dict)
    items: tuple[Mapping[str, str], ...] = ()  #: What it lists: failed checks, remarks.


class Start(_OnRun, frozen=True, kw_only=True):
    """Make the workspace if it is not there and start the program of one run."""

    prompt: Prompt
    resume: str = ""  #: The agent's own conversation to resume.
    agent: str = ""  #: Who takes over: an agent's name or an agent type; empty: who has it.
    permission_mode: str = ""  #: That of the session; empty: that of the agent type.
    covers: tuple[Key, ...] = ()  #: Further keys that are done when this is.
    #: What people wrote about the issue, for a first run: `what`, `text`, `log`.
    discussion: tuple[Mapping[str, str], ...] = ()
    #: What waits for the agent at GitHub, for one that remembers nothing: `what`, `text`, `log`.
    waiting: tuple[Mapping[str, str], ...] = ()


class SendMessage(_OnRun, frozen=True, kw_only=True):
    """Send a message to the running program."""

    prompt: Prompt
    covers: tuple[Key, ...] = ()


class Publish(_Action, frozen=True, kw_only=True):
    """Fetch the workspace's commits, check them and push them to the session's branch."""

    head: str
    protected: tuple[str, ...] = ()  #: Paths that may not be changed by it.
    #: Whether it is held for large files, foreign authors, commits it removes, suspected secrets.
    checked: bool = False
    max_file_mb: int = 0  #: As in the policy; same for `commit_authors`.
    commit_authors: tuple[str, ...] = ()


class AdoptCommits(_Action, frozen=True, kw_only=True):
    """Move the session's branch in the workspace to the commit that the agent checked out.

    The agent's next commits are on the session's branch then.
    """

    head: str  #: The commit checked out.
    onto: str  #: The commit of the session's branch.


class MergeRemote(_Action, frozen=True, kw_only=True):
    """Merge the commits that others pushed to the session's branch into its workspace.

    Its result is `conflict` if they conflict with the agent's own commits.
    """

    head: str  #: GitHub's commit.
    into: str  #: The workspace's.


class UpdateBranch(_OnNumber, frozen=True, kw_only=True):
    """Have GitHub merge the base into a pull request's branch, if its head has not changed."""

    head: str


class Rerun(_OnNumber, frozen=True, kw_only=True):
    """Rerun failed or cancelled checks."""

    runs: tuple[int, ...]  #: Numbers of check runs.


class OpenPull(_Action, frozen=True, kw_only=True):
    """Open the pull request of the pushed branch."""

    head: str
    draft: bool = False


class MakeReady(_OnNumber, frozen=True, kw_only=True):
    """Take a pull request out of draft."""


class RequestReview(_OnNumber, frozen=True, kw_only=True):
    """Ask people and teams for their review."""

    reviewers: tuple[str, ...]  #: Logins; a team is `owner/team`.


class Comment(_OnNumber, frozen=True, kw_only=True):
    """Comment on the issue or the pull request.

    Number 0 is a reply for the command line or the page, which show it from its record.
    """

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
    blockers: tuple[Blocker, ...] = ()
    question: str = ""  #: What the agent asks.
    remedy: str = ""
    cost: str = ""  #: Empty: nothing was spent, or it is nobody's business here.
    commands: tuple[str, ...] = ()  #: Names of those that depend on the status and work in it.


class Report(_OnNumber, frozen=True, kw_only=True):
    """Create or update the bot's status comment on an issue or a pull request."""

    comment: int | None  #: The comment, where it is known.
    summary: StatusSummary


class ReportCheck(_Action, frozen=True, kw_only=True):
    """Create or update the bot's check run on a commit. It never blocks a merge."""

    head: str
    check: int | None  #: The check run, where it is known.
    summary: StatusSummary


class FaultyLine(Struct, frozen=True, kw_only=True):
    """What is wrong with a line of a file."""

    line: int
    says: str


class ReportConfiguration(_Action, frozen=True, kw_only=True):
    """Report what is wrong with a repository's own configuration, as a check of its commit."""

    head: str
    path: str
    problems: tuple[FaultyLine, ...]


class ShowStatus(_OnNumber, frozen=True, kw_only=True):
    """Label the issue with a status, and remove the labels of all others."""

    status: Status


class Label(_OnNumber, frozen=True, kw_only=True):
    """Add a label to the issue, or remove it."""

    name: str
    on: bool


class React(_Action, frozen=True, kw_only=True):
    """Add a reaction to a comment or to an issue itself, as an acknowledgement."""

    comment: int = 0  #: 0: to the issue.
    issue: int = 0
    content: str  #: GitHub's name of it, e.g. `eyes`.


class Reply(_OnNumber, frozen=True, kw_only=True):
    """Answer in review threads, as one review."""

    threads: tuple[str, ...]
    topic: str
    values: Mapping[str, str] = field(default_factory=dict)
    resolve: bool = False  #: Whether that settles it.


class MergePull(_OnNumber, frozen=True, kw_only=True):
    """Merge a pull request, but only the commit that was judged and into the branch it was for."""

    sha: str
    base: str = ""  #: Empty: any.
    method: MergeMethod
    asked: bool = False  #: Whether a person named the method, so that no other will do.
    by: str = ""  #: On whose word; empty: policy merges by itself.


class Enqueue(_OnNumber, frozen=True, kw_only=True):
    """Add a pull request to GitHub's merge queue, with the same conditions."""

    sha: str
    base: str = ""  #: Empty: any.
    by: str = ""  #: As of a merge.


class Dequeue(_OnNumber, frozen=True, kw_only=True):
    """Remove a pull request from GitHub's merge queue."""


class CloseIssue(_OnNumber, frozen=True, kw_only=True):
    """Close the issue, if the merge did not."""


class DeleteBranch(_Action, frozen=True, kw_only=True):
    """Delete the session's branch on GitHub, if it is still at the merged commit.

    Open pull requests that are based on it are moved to the base branch of the merged one.
    """

    branch: str
    sha: str
    base: str = ""


class Stop(_OnRun, frozen=True, kw_only=True):
    """Stop the program of a run and all its processes; the workspace stays."""


class Release(_OnRun, frozen=True, kw_only=True):
    """Stop the program and remove the workspace; unpushed work is kept in the mirror first."""


Action = (
    Start
    | SendMessage
    | Publish
    | AdoptCommits
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
