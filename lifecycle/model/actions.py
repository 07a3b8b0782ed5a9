"""Actions: everything a decision may request, each with a key derived from its cause.

The keys of actions on a run's program, and of some comments, contain the run's number.
"""

import re
from collections.abc import Mapping
from datetime import datetime

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
    """A message to the agent: a template of `config/prompts/`, and the values to fill in."""

    #: The template's file name without `.md`. If empty, the program starts without a message.
    name: str
    values: Mapping[str, str] = field(default_factory=dict)  #: By placeholder.
    items: tuple[Mapping[str, str], ...] = ()  #: The failed checks or remarks that it lists.


class Start(_OnRun, frozen=True, kw_only=True):
    """Start the program of one run, in a new workspace if the session has none."""

    prompt: Prompt
    resume: str = ""  #: The agent's own id of the conversation to resume; if empty, a new one.
    agent: str = ""  #: The agent that takes over, as in `agent_names`; if empty, the current one.
    permission_mode: str = ""  #: The session's; if empty, that of the agent type.
    covers: tuple[Key, ...] = ()  #: Further keys that are recorded as done together with this one.
    #: What people wrote about the issue, for a first run; the keys are `what`, `text` and `log`.
    discussion: tuple[Mapping[str, str], ...] = ()
    #: Open work on GitHub and the issue's discussion, for an agent without memory of them; the keys
    #: are those of `discussion`.
    waiting: tuple[Mapping[str, str], ...] = ()


class SendMessage(_OnRun, frozen=True, kw_only=True):
    """Send a message to the running program."""

    prompt: Prompt
    covers: tuple[Key, ...] = ()


class PressKeys(_OnRun, frozen=True, kw_only=True):
    """Type into the program's terminal, at most once, what a person typed on a page.

    What was typed is stored only until the action is carried out, because it may be a password.
    """

    by: str  #: The person.
    at: datetime  #: When they typed.
    count: int  #: How many characters and keys.
    paste: str = ""  #: A text to paste first; empty: none.
    keys: tuple[str, ...] = ()  #: Characters, and names of keys; see `runtimes.base.KEY`.


class Publish(_Action, frozen=True, kw_only=True):
    """Fetch the workspace's commits, check them and push them to the session's branch."""

    head: str
    protected: tuple[str, ...] = ()  #: Patterns of paths that the commits must not change.
    #: Whether large files, foreign authors, removed commits and suspected secrets prevent the push.
    checked: bool = False
    max_file_mb: int = 0  #: As in the policy, like `commit_authors`; if 0, no limit.
    commit_authors: tuple[str, ...] = ()
    sign: bool = False  #: Whether the bot signs the commits first.


class AdoptCommits(_Action, frozen=True, kw_only=True):
    """Move the session's branch in the workspace to the commit that the agent checked out.

    After that, the agent commits to the session's branch.
    """

    head: str  #: The commit checked out.
    onto: str  #: The commit of the session's branch.


class MergeRemote(_Action, frozen=True, kw_only=True):
    """Merge the commits that others pushed to the session's branch into its workspace.

    The recorded result is `conflict` if they conflict with the agent's own commits.
    """

    head: str  #: The head of the branch on GitHub.
    into: str  #: The head of the branch in the workspace.


class UpdateBranch(_OnNumber, frozen=True, kw_only=True):
    """Have GitHub merge the base into a pull request's branch, if its head has not changed."""

    head: str


class Rerun(_OnNumber, frozen=True, kw_only=True):
    """Rerun failed or cancelled checks."""

    runs: tuple[int, ...]  #: GitHub's ids of the check runs.


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

    With number 0 nothing is posted: the command line or the page shows the recorded reply.
    """

    topic: str  #: A key of `MESSAGES` in `bot/text/messages.py`.
    values: Mapping[str, str] = field(default_factory=dict)  #: By parameter of that message.


class StatusSummary(Struct, frozen=True, kw_only=True):
    """A session's status with its evidence, as reports show it."""

    session: str
    agent: str
    branch: str
    status: Status
    because: str
    pull: int | None = None
    blockers: tuple[Blocker, ...] = ()
    question: str = ""  #: What the agent asks; if empty, nothing.
    remedy: str = ""  #: What people can do; if empty, there is no advice on the status's reason.
    cost: str = ""  #: In words; if empty, nothing was spent, or the policy does not publish costs.
    #: Names of the commands that depend on the status and work in it.
    commands: tuple[str, ...] = ()


class Report(_OnNumber, frozen=True, kw_only=True):
    """Create or update the bot's status comment on an issue or a pull request."""

    comment: int | None  #: The id of the comment to update; if None, not known.
    summary: StatusSummary


class ReportCheck(_Action, frozen=True, kw_only=True):
    """Create or update the bot's check run on a commit. It never blocks a merge."""

    head: str
    check: int | None  #: The id of the check run to update; if None, not known.
    summary: StatusSummary


class FaultyLine(Struct, frozen=True, kw_only=True):
    """A problem in one line of a file."""

    line: int  #: From 1.
    says: str


class ReportConfiguration(_Action, frozen=True, kw_only=True):
    """Report the problems of a repository's own configuration as a check run on its commit."""

    head: str
    path: str
    problems: tuple[FaultyLine, ...]


class ShowStatus(_OnNumber, frozen=True, kw_only=True):
    """Label the issue with a status, and remove the labels of all other statuses."""

    status: Status


class Label(_OnNumber, frozen=True, kw_only=True):
    """Add a label to an issue or a pull request, or remove it."""

    name: str
    on: bool


class React(_Action, frozen=True, kw_only=True):
    """Add a reaction to a comment or to an issue itself, as an acknowledgement."""

    comment: int = 0  #: The comment's id; if 0, the reaction is to the issue itself.
    issue: int = 0  #: The issue's number, for a reaction to the issue.
    content: str  #: GitHub's name of the reaction, e.g. `eyes`.


class Reply(_OnNumber, frozen=True, kw_only=True):
    """Reply in one or more review threads with the same text, as one review."""

    threads: tuple[str, ...]  #: GitHub's ids.
    topic: str  #: As in `Comment`.
    values: Mapping[str, str] = field(default_factory=dict)
    resolve: bool = False  #: Whether to resolve the threads as well.


class MergePull(_OnNumber, frozen=True, kw_only=True):
    """Merge a pull request, if its head and its base branch are still those that were judged."""

    sha: str  #: The head.
    base: str = ""  #: The base branch; if empty, any.
    method: MergeMethod
    asked: bool = False  #: Whether a person named the method, so that no other is tried.
    by: str = ""  #: Who commanded the merge; if empty, the policy merges without a command.


class Enqueue(_OnNumber, frozen=True, kw_only=True):
    """Add a pull request to GitHub's merge queue, if head and base branch are as judged."""

    sha: str
    base: str = ""  #: If empty, any.
    by: str = ""  #: As in `MergePull`.


class Dequeue(_OnNumber, frozen=True, kw_only=True):
    """Remove a pull request from GitHub's merge queue."""


class CloseIssue(_OnNumber, frozen=True, kw_only=True):
    """Close the issue, if the merge did not."""


class DeleteBranch(_Action, frozen=True, kw_only=True):
    """Delete the session's branch on GitHub, if it is still at the merged commit.

    If other open pull requests have this branch as their base, they first get a new base: the base
    branch of the merged pull request.
    """

    branch: str
    sha: str
    base: str = ""  #: That base branch; if empty, a branch with such pull requests is kept.


class Stop(_OnRun, frozen=True, kw_only=True):
    """Stop the program of a run and all its processes; the workspace stays."""


class Release(_OnRun, frozen=True, kw_only=True):
    """Stop the program, save uncommitted and unpushed work in the mirror, remove the workspace.

    The mirror is the project's clone in the data directory.
    """


Action = (
    Start
    | SendMessage
    | PressKeys
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
