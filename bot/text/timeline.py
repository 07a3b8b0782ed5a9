"""The sentences of a session's timeline, in plain words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from bot.text.history import characters, describe_action
from lifecycle.model import actions as do
from lifecycle.model.status import CheckState, Origin, Status
from lifecycle.read.sentences import person


class Line(NamedTuple):
    """One sentence; text in backticks is code."""

    text: str
    tone: str = "calm"  #: As the CSS classes of statuses: `calm`, `busy`, `good`, `warn`, ...
    #: Whether the sentence is a detail of the last sentence before it that is no detail.
    minor: bool = False
    #: If that last sentence begins with this text, this sentence is a detail of it. Empty for no
    #: detail.
    detail_of: str = ""
    #: If that last sentence begins with this text, this sentence replaces it. Empty to replace
    #: none.
    replaces: str = ""


def _minor(text: str) -> Line:
    return Line(text, minor=True)


_COMMITTED: Final = "The agent committed `{0}`"
_MERGED: Final = "Pull request {0} was merged"
_AUTOMATICALLY: Final = " automatically (`policy.auto-merge`)"

#: Patterns of the lines that observers record (`bot.store.observations`), with their sentences. The
#: first pattern that matches counts; `{0}` and `{1}` are its groups.
_OBSERVED: Final = tuple(
    (re.compile(pattern, re.DOTALL), line)
    for pattern, line in (
        (r"agent waiting input(?:: (.*))?", Line("The agent waits for an answer: {0}", "warn")),
        (r"agent blocked(?:: (.*))?", Line("The agent is blocked: {0}", "bad")),
        (r"agent active(?:: (.*))?", _minor("The agent is at work: {0}")),
        (r"agent (?:ready|idle)(?:: (.*))?", _minor("The agent has finished its turn: {0}")),
        (r"agent exited(?:: (.*))?", _minor("The agent's program has ended: {0}")),
        (r"program exited with 0", _minor("The agent's program exited with code 0")),
        (r"program exited with (.*)", Line("The agent's program exited with code {0}", "bad")),
        (r"program was ended by (signal \d+)", _minor("The agent's program was ended by {0}")),
        (r"program was lost: (.*)", Line("The agent's program was lost: {0}", "bad")),
        (r"program is gone", Line("The agent's program ended, but it is not known how", "bad")),
        (
            r"runtime/program ([^/\s]+)/([^/\s]+) -> \1/(\S+)",
            _minor("The agent's program: {1} before, {2} now"),
        ),
        (
            r"runtime/program ([^/\s]+)/([^/\s]+) -> ([^/\s]+)/\2",
            _minor("The agent's terminal: {0} before, {2} now"),
        ),
        (
            r"runtime/program ([^/\s]+)/([^/\s]+) -> ([^/\s]+)/(\S+)",
            _minor("The agent's terminal: {0} before, {2} now; its program: {1} before, {3} now"),
        ),
        (r"workspace at no commit", _minor("The workspace has no commit")),
        (r"workspace at (\w+)", Line(_COMMITTED, replaces=_COMMITTED.partition("{")[0])),
        (r"workspace has uncommitted changes", _minor("The workspace has uncommitted changes")),
        (
            r"workspace has commits on (.*)",
            Line("The agent committed on {0}, not on the session's branch", "warn"),
        ),
        (r"workspace unreadable: (.*)", Line("The workspace cannot be read: {0}", "bad")),
        (r"issue closed: deleted", Line("The issue was deleted or moved to another repository")),
        (r"issue closed: not_planned", Line("The issue was closed as not planned")),
        (r"issue closed(?:: (.*))?", Line("The issue was closed: {0}")),
        (r"issue reopened", Line("The issue was reopened")),
        (r"label added", Line("The label or assignment was added to the issue")),
        (r"label removed", Line("The label or assignment was removed from the issue", "warn")),
        (r"blocked by: (.*)", Line("The issue is blocked by {0}", "warn")),
        (r"not blocked", Line("The issue is no longer blocked")),
        (r"(#\d+) is merged", Line(_MERGED, "landed", detail_of=_MERGED)),
        (r"(#\d+) is merged by (\S+)", Line(f"{_MERGED} by @{{1}}", "landed", detail_of=_MERGED)),
        (r"(#\d+) is closed", Line("Pull request {0} was closed", "warn")),
        (r"(#\d+) is open", _minor("Pull request {0} is open")),
        (r"(#\d+) reopened", Line("Pull request {0} was reopened")),
        (r"(#\d+) is a draft", _minor("Pull request {0} is a draft")),
        (r"(#\d+) is ready for review", _minor("Pull request {0} is ready for review")),
        (r"(#\d+) at (\w+), pushed by person", Line("A person pushed `{1}` to {0}")),
        (
            r"(#\d+) at (\w+), pushed by update",
            Line("The base branch was merged into {0}: `{1}`"),
        ),
        (r"(#\d+) at (\w+), pushed by bot", _minor("{0} is at `{1}`")),
        (r"(#\d+) merge is conflict", Line("{0} conflicts with its base branch", "warn")),
        (r"(#\d+) merge is (\w+)", _minor("The merge state of {0} is {1}")),
        (r"(#\d+) review is changes_requested", _minor("Changes are requested on {0}")),
        (r"(#\d+) review is (\w+)", _minor("The review state of {0} is {1}")),
        (r"(#\d+) @(\S+) approved (\w+)", Line("@{1} approved {0} at `{2}`", "good")),
        (
            r"(#\d+) @(\S+) requested changes on (\w+)",
            Line("@{1} requested changes on {0}", "warn"),
        ),
        (r"(#\d+) @(\S+) commented", Line("@{1} commented on {0}", detail_of="@{1} ")),
        (r"(#\d+) thread \S+ resolved", _minor("A review thread of {0} was resolved")),
    )
)
_CHECKS: Final = re.compile(r"(#\d+) checks: (.*)", re.DOTALL)
#: The name may contain commas, as that of a matrix job does: `test (linux, 3.12)`.
_CHECK: Final = re.compile(rf"(.+?) ({'|'.join(CheckState)})(?:, |\Z)", re.DOTALL)

#: The sentences for messages to an agent, by the name of the prompt.
_MESSAGES: Final[Mapping[str, str]] = {
    "address_review": "The agent was notified of the review",
    "answer": "The answer was given to the agent",
    "chat_message": "The message was given to the agent",
    "fix_ci": "The agent was notified of the failed checks",
    "merge_branch": "The agent was asked to merge what others pushed",
    "move_commits": "The agent was asked to move its commits to the session's branch",
    "pull_request": "The agent was asked to finish its work as a pull request",
    "resolve_conflict": "The agent was asked to resolve the conflict",
    "review": "The agent was asked to review the pull request",
    "reword": "The agent was asked to reword a commit message",
    "self_review": "The agent was asked to review its own change",
    "tell": "The message was given to the agent",
    "uncommitted": "The agent was asked to commit its work",
}
#: The tones of statuses that get a sentence. For other statuses, the event that leads to them has a
#: sentence.
_NEWS: Final[Mapping[str, str]] = {
    Status.NEEDS_INPUT: "warn",
    Status.STUCK: "bad",
    Status.PAUSED: "warn",
    Status.MERGEABLE: "good",
    Status.ERRORED: "bad",
    Status.KILLED: "calm",
    Status.TERMINATED: "calm",
    Status.DONE: "landed",
}


def observed_line(line: str) -> Line:
    """Return the sentence for a line that an observer recorded, or the line itself if none fits."""
    for pattern, said in _OBSERVED:
        if match := pattern.fullmatch(line):
            groups = [group or "" for group in match.groups()]
            return said._replace(
                text=said.text.format(*groups).rstrip(": "),
                detail_of=said.detail_of.format(*groups),
            )
    return Line(line)


class CheckChange(NamedTuple):
    """A check of a pull request whose state changed."""

    pull: str  #: `#34`.
    name: str
    state: str


def check_changes(line: str) -> Iterator[CheckChange]:
    """Yield the checks in an observed line; none if the line is not about checks."""
    if match := _CHECKS.fullmatch(line):
        at = match.start(2)
        while check := _CHECK.match(line, at):
            yield CheckChange(match[1], check[1], check[2])
            at = check.end()


def checks_line(changes: list[CheckChange], was_red: frozenset[str]) -> list[Line]:
    """Return the sentences for changed checks. `was_red` are the names of those that had failed."""
    failed = [one for one in changes if one.state == CheckState.FAILED]
    fixed = [one for one in changes if one.state == CheckState.PASSED and one.name in was_red]
    others = [one for one in changes if one not in failed and one not in fixed]
    lines = []
    if failed:
        lines.append(Line(f"{_names(failed)} failed on {failed[0].pull}", "bad"))
    if fixed:
        lines.append(Line(f"{_names(fixed)} {_passes(fixed)} again", "good"))
    lines += (_minor(f"`{one.name}`: {one.state.replace('_', ' ')}") for one in others)
    return lines


def _names(checks: list[CheckChange]) -> str:
    return ", ".join(f"`{one.name}`" for one in checks)


def _passes(checks: list[CheckChange]) -> str:
    return "passes" if len(checks) == 1 else "pass"


def created_line(issue: int, origin: str, actor: str) -> Line:
    """Return the first line of a session's timeline: what the session was opened for.

    `issue` is 0 if there is none. `origin` is a value of `Origin`. `actor` may be empty.
    """
    if not issue:
        by = f" by {person(actor)}" if actor else ""
        if origin == Origin.CHAT:
            return Line(f"A chat was opened{by}", "busy")
        what = "this pull request" if origin == Origin.PULL else "a prompt"
        return Line(f"A session was opened for {what}{by}", "busy")
    who = f", as {person(actor)} requested" if actor else ""
    return Line(f"A session was opened for issue #{issue}{who}", "busy")


def command_line(actor: str, kind: str) -> Line:
    """Return the sentence for a person's command."""
    return Line(f"{person(actor)} gave the command `{kind}`")


def reply(text: str, *, accepted: bool) -> str:
    """Return the sentence for the reply to a command."""
    return f"{'Reply' if accepted else 'Refused'}: {text}"


def freeze_line(actor: str, scope: str, *, on: bool) -> Line:
    """Return the sentence for a freeze (`on`) or its end. An empty `scope` means everything."""
    what = scope.replace(":", " ") or "everything"
    return Line(f"{person(actor)} {'froze' if on else 'unfroze'} {what}", "warn" if on else "calm")


def metadata_line(actor: str, keys: Sequence[str]) -> Line:
    """Return the sentence for metadata that was set."""
    return Line(f"{person(actor)} set metadata: {', '.join(keys)}")


def keys_line(actor: str, count: int) -> Line:
    """Return the sentence for `count` characters that a person typed into the terminal."""
    return Line(f"{person(actor)} typed {characters(count)} into the terminal")


def dropped_line(actor: str, count: int, why: str) -> Line:
    """Return the sentence for `count` typed characters that may not have reached the terminal."""
    what = f"What {person(actor)} typed ({characters(count)})"
    return Line(f"{what} may not have reached the terminal: {why}", "warn")


def status_line(status: str, because: str, *, is_new: bool) -> Line:
    """Return the sentence for a decision: the text `because`, unchanged.

    The line is `minor` unless the decision changed the status (`is_new`) to one of `_NEWS`.
    """
    return Line(because, _NEWS.get(status, "calm"), minor=not is_new or status not in _NEWS)


def failed_line(action: str, error: str) -> Line:
    """Return the sentence for an action that the bot has given up. `action` is its phrase."""
    return Line(f"{action} failed: {error}", "bad")


def done_line(action: do.Action, result: str) -> Line:
    """Return the sentence for an action that was carried out."""
    match action:
        case do.Start(run=run, resume=resume):
            return Line(f"The agent was {'resumed' if resume else 'started'} (run {run})", "busy")
        case do.SendMessage(prompt=prompt):
            return Line(_MESSAGES.get(prompt.name, describe_action(action)), "busy")
        case do.Publish(head=head):
            committed = _COMMITTED.format(head[:7])
            return Line(f"Commits up to `{head[:7]}` were pushed", "busy", replaces=committed)
        case do.OpenPull():
            return Line(f"Pull request #{result} was opened", "busy")
        case do.MergePull(number=number, by=by):
            merged = _MERGED.format(f"#{number}")
            why = f", as {person(by)} commanded" if by else _AUTOMATICALLY
            # GitHub, which names the bot alone, may have been read before.
            return Line(f"{merged}{why}", "landed", replaces=merged)
        case do.Enqueue(number=number, by=by):
            why = f", as {person(by)} commanded" if by else _AUTOMATICALLY
            return Line(f"Pull request #{number} was added to the merge queue{why}", "busy")
        case do.Dequeue(number=number):
            return Line(f"Pull request #{number} was removed from the merge queue", "warn")
        case do.RequestReview(reviewers=reviewers):
            return Line(f"A review was requested from {', '.join(reviewers)}")
        case do.MakeReady(number=number):
            return Line(f"Pull request #{number} was marked as ready for review")
        case do.Rerun():
            return Line("Checks were started again")
        case do.UpdateBranch(number=number):
            return Line(f"The base branch was merged into #{number}")
        case do.MergeRemote():
            conflict = result == "conflict"
            what = "conflict with the agent's" if conflict else "were merged into the workspace"
            return Line(f"Commits of others {what}", "warn" if conflict else "calm")
        case do.AdoptCommits():
            return Line("The agent's commits were moved to the session's branch")
        case do.CloseIssue(number=number):
            return Line(f"Issue #{number} was closed")
        case do.Stop():
            return Line("The agent was stopped")
        case _:
            return _minor(f"{describe_action(action)}: done")
