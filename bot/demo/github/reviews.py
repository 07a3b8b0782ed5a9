"""Reviews, their threads and the comments in them."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from bot.demo.github.issues import Comment
from bot.demo.github.world import Thing, User, World, locked

if TYPE_CHECKING:
    from bot.demo.github.pulls import Pull

#: The reviews that take a side, which the decision is made of.
OPINIONS = ("APPROVED", "CHANGES_REQUESTED", "DISMISSED")


@dataclass(eq=False, kw_only=True, repr=False)
class Review(Thing):
    pull: "Pull"
    user: User
    state: str
    body: str
    commit_id: str
    last_edited_at: datetime | None = None
    editor: User | None = None
    comments: list["ReviewComment"] = field(default_factory=list)

    @property
    def world(self) -> World:
        return self.pull.world

    @property
    def url(self) -> str:
        return f"{self.pull.url}#pullrequestreview-{self.id}"

    @locked
    def dismiss(self, by: str, message: str = "") -> None:
        self.state = "DISMISSED"
        self.pull.happened("review_dismissed", by)
        self.publish("dismissed", by)

    @locked
    def edit(self, body: str, by: str) -> None:
        before, self.body = self.body, body
        self.editor = self.world.account(by)
        self.last_edited_at = self.updated_at = self.world.now()
        self.publish("edited", by, changes={"body": {"from": before}})

    def publish(self, action: str, by: str, **parts: object) -> None:
        self.pull.repo.publish(
            "pull_request_review", action, by, review=self, pull_request=self.pull, **parts
        )


@dataclass(eq=False, kw_only=True, repr=False)
class PendingReview(Review):
    """What somebody has begun to say and nobody else sees; each has at most one at a time."""

    replies: list[tuple["Thread", str]] = field(default_factory=list)

    @locked
    def submit(self) -> Review:
        """Say all of it at once."""
        self.drop()
        review = self.pull.new_review(self.user.login, "COMMENTED", self.body)
        for thread, text in self.replies:
            self.pull.say_in_thread(thread, review, text)
        return review

    @locked
    def drop(self) -> None:
        """Say none of it."""
        del self.pull.pending[self.user.login]
        del self.world.nodes[self.node_id]


@dataclass(eq=False, kw_only=True, repr=False)
class ReviewComment(Comment):
    """One comment in a thread."""

    thread: "Thread"
    review: Review

    @property
    def in_reply_to(self) -> "ReviewComment | None":
        first = self.thread.comments[0]
        return None if first is self else first

    @locked
    def delete(self, by: str) -> None:
        self.thread.comments.remove(self)
        self.review.comments.remove(self)
        del self.world.nodes[self.node_id]
        self.thread.pull.publish_review_comment("deleted", by, self)


@dataclass(eq=False, kw_only=True, repr=False)
class Thread(Thing):
    """A conversation about one line; `line` is None once the file has changed under it."""

    pull: "Pull"
    path: str
    line: int | None
    original_line: int
    original_commit: str
    diff_hunk: str
    start_line: int | None = None  #: The first of several lines, as the thread was made.
    outdated: bool = False
    resolved_by: User | None = None
    comments: list[ReviewComment] = field(default_factory=list)

    @property
    def world(self) -> World:
        return self.pull.world

    @property
    def resolved(self) -> bool:
        return self.resolved_by is not None

    @locked
    def reply(self, by: str, body: str) -> ReviewComment:
        """Answer in the thread; as at GitHub that is a review of its own."""
        return self.pull.say_in_thread(self, self.pull.new_review(by, "COMMENTED", ""), body)

    @locked
    def resolve(self, by: str) -> None:
        if not self.resolved:
            self.resolved_by = self.world.account(by)
            self.publish("resolved", by)

    @locked
    def unresolve(self, by: str) -> None:
        if self.resolved:
            self.resolved_by = None
            self.publish("unresolved", by)

    def publish(self, action: str, by: str) -> None:
        self.pull.repo.publish(
            "pull_request_review_thread", action, by, thread=self, pull_request=self.pull
        )
