"""Issues with their labels, comments, reactions and timeline."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.demo.github.hosting import Hosting, Label, RepositoryBase
from bot.demo.github.world import Thing, User, World, locked

_CLOSES = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:(?P<repo>[\w.-]+/[\w.-]+))?#(?P<number>\d+)\b",
    re.IGNORECASE,
)


@dataclass(eq=False, kw_only=True, repr=False)
class Reaction(Thing):
    user: User
    content: str


@dataclass(eq=False, kw_only=True, repr=False)
class TimelineEvent(Thing):
    """A timeline entry other than a comment or review, such as `labeled` or `closed`."""

    event: str
    issue: "Issue"
    actor: User
    label: Label | None = None
    assignee: User | None = None
    rename: tuple[str, str] | None = None  #: The title before and after.
    commit_id: str | None = None
    state_reason: str | None = None  #: Why it was closed, in GitHub's terms.
    source: "Issue | None" = None  #: The issue or pull request that refers to this one.


@dataclass(frozen=True)
class ContentEdit:
    """One edit of a text."""

    editor: User
    at: datetime


@dataclass(eq=False, kw_only=True, repr=False)
class Comment(Thing):
    """A comment on an issue or in a pull request's conversation."""

    issue: "Issue"
    user: User
    body: str
    last_edited_at: datetime | None = None
    editor: User | None = None
    reactions: list[Reaction] = field(default_factory=list)

    @property
    def world(self) -> World:
        return self.issue.world

    @locked
    def edit(self, body: str, by: str) -> None:
        before, self.body = self.body, body
        self.editor = self.world.account(by)
        self.last_edited_at = self.updated_at = self.world.now()
        changes = {"body": {"from": before}}
        self.issue.publish_comment("edited", by, self, changes=changes)

    @locked
    def delete(self, by: str) -> None:
        self.issue.comments.remove(self)
        self.issue.timeline.remove(self)
        del self.world.nodes[self.node_id]
        self.issue.publish_comment("deleted", by, self)

    @locked
    def react(self, content: str, by: str) -> Reaction:
        return react(self.world, self.reactions, content, by)


@dataclass(eq=False, kw_only=True, repr=False)
class Issue(Thing):
    """An issue. As on GitHub, every pull request is an issue."""

    repo: RepositoryBase
    number: int
    title: str
    body: str
    user: User
    state: str = "open"
    state_reason: str | None = None
    closed_at: datetime | None = None
    closed_by: User | None = None
    last_edited_at: datetime | None = None
    editor: User | None = None
    edits: list["ContentEdit"] = field(default_factory=list)  #: The edits of the body.
    label_list: list[Label] = field(default_factory=list)
    assignees: list[User] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    milestone: str = ""
    blocked_by: list["Issue"] = field(default_factory=list)  #: Issues that have to be closed first.
    timeline: list[Any] = field(default_factory=list)  #: Events, comments and reviews, in order.

    event_name = "issues"  #: The webhook event about changes of the issue.
    part = "issue"  #: The member of the event's body that has the issue.

    @property
    def world(self) -> Hosting:
        return self.repo.world

    @property
    def labels(self) -> list[str]:
        return [label.name for label in self.label_list]

    @property
    def is_pull(self) -> bool:
        return self.part == "pull_request"

    @property
    def url(self) -> str:
        kind = "pull" if self.is_pull else "issues"
        return f"{self.world.url}{self.repo.full_name}/{kind}/{self.number}"

    @locked
    def label(self, name: str, by: str) -> None:
        if name.lower() in (known.lower() for known in self.labels):
            return
        label = self.repo.label(name, by)
        self.label_list.append(label)
        self.happened("labeled", by, label=label)
        self.publish("labeled", by, label=label)

    @locked
    def unlabel(self, name: str, by: str) -> None:
        """Remove a label. Raises KeyError if the issue does not have it."""
        found = [label for label in self.label_list if label.name.lower() == name.lower()]
        if not found:
            raise KeyError(name)
        self.label_list.remove(found[0])
        self.happened("unlabeled", by, label=found[0])
        self.publish("unlabeled", by, label=found[0])

    @locked
    def assign(self, login: str, by: str) -> None:
        """Assign the issue to an account."""
        user = self.world.account(login)
        self.assignees.append(user)
        self.happened("assigned", by, assignee=user)
        self.publish("assigned", by)

    @locked
    def unassign(self, login: str, by: str) -> None:
        user = self.world.account(login)
        self.assignees.remove(user)
        self.happened("unassigned", by, assignee=user)
        self.publish("unassigned", by)

    @locked
    def waits_for(self, other: "Issue", by: str) -> None:
        """Mark the issue as blocked by another one."""
        self.blocked_by.append(other)
        parts = {"blocked_issue": self, "blocking_issue": other}
        self.repo.publish("issue_dependencies", "blocked_by_added", by, **parts)

    @locked
    def comment(self, text: str, by: str) -> Comment:
        identity = self.world.identity("IC")
        comment = Comment(issue=self, user=self.world.account(by), body=text, **identity)
        self.comments.append(self.world.add(comment))
        self.timeline.append(comment)
        self.touch()
        self.publish_comment("created", by, comment)
        return comment

    @locked
    def edit(self, *, by: str, title: str | None = None, body: str | None = None) -> None:
        changes: dict[str, Any] = {}
        if title is not None and title != self.title:
            changes["title"] = {"from": self.title}
            self.happened("renamed", by, rename=(self.title, title))
            self.title = title
        if body is not None and body != self.body:
            changes["body"] = {"from": self.body}
            self.body = body
            self.editor, self.last_edited_at = self.world.account(by), self.world.now()
            self.edits.append(ContentEdit(self.editor, self.last_edited_at))
        if changes:
            self.touch()
            self.publish("edited", by, changes=changes)

    @locked
    def close(self, by: str, reason: str = "completed") -> None:
        """Close the issue; `reason` is GitHub's: `completed`, `not_planned` or `duplicate`."""
        if self.state == "closed":
            return
        self.set_closed(by, None if self.is_pull else reason)
        self.publish("closed", by)

    @locked
    def reopen(self, by: str) -> None:
        if self.state == "open":
            return
        self.state, self.closed_at, self.closed_by = "open", None, None
        self.state_reason = None if self.is_pull else "reopened"
        self.happened("reopened", by)
        self.publish("reopened", by)

    @locked
    def react(self, content: str, by: str) -> Reaction:
        return react(self.world, self.reactions, content, by)

    def set_closed(self, by: str, reason: str | None, commit: str | None = None) -> None:
        self.state, self.state_reason = "closed", reason
        self.closed_at, self.closed_by = self.world.now(), self.world.account(by)
        self.happened("closed", by, commit_id=commit, state_reason=reason)

    def happened(self, event: str, by: str, **what: Any) -> None:
        """Append an event to the timeline."""
        prefix = {"labeled": "LE", "unlabeled": "UNLE", "renamed": "RTE"}.get(event, "EVT")
        actor = self.world.account(by)
        entry = TimelineEvent(
            event=event, issue=self, actor=actor, **what, **self.world.identity(prefix)
        )
        self.timeline.append(self.world.add(entry))
        self.touch()

    def touch(self) -> None:
        self.updated_at = self.world.now()

    def publish(self, action: str, by: str, **parts: Any) -> None:
        self.repo.publish(self.event_name, action, by, **{self.part: self}, **parts)

    def publish_comment(self, action: str, by: str, comment: Comment, **parts: Any) -> None:
        self.repo.publish("issue_comment", action, by, issue=self, comment=comment, **parts)


@dataclass(eq=False, kw_only=True, repr=False)
class TrackedRepository(RepositoryBase):
    """A repository with issues."""

    issues_and_pulls: dict[int, Issue] = field(default_factory=dict)

    def closing(self, text: str) -> list[Issue]:
        """Return the issues that a text closes with GitHub's keywords."""
        found: dict[int, Issue] = {}
        for match in _CLOSES.finditer(text):
            issue = self.issues_and_pulls.get(int(match["number"]))
            here = (match["repo"] or self.full_name).lower() == self.full_name.lower()
            if issue and here and not issue.is_pull:
                found[issue.number] = issue
        return list(found.values())


def react(world: World, reactions: list[Reaction], content: str, by: str) -> Reaction:
    """Add an account's reaction. If the account has the same reaction already, return that."""
    user = world.account(by)
    for known in reactions:
        if (known.user, known.content) == (user, content):
            return known
    reaction = Reaction(user=user, content=content, **world.identity("REA"))
    reactions.append(world.add(reaction))
    return reaction
