"""Changes that are proposed for a branch: their reviews, threads and review decision."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bot.demo.github.checks import CheckedRepository
from bot.demo.github.hosting import Protection
from bot.demo.github.issues import Comment, Issue
from bot.demo.github.world import Thing, User, World, locked

#: The review states that count for the review decision.
OPINIONS = ("APPROVED", "CHANGES_REQUESTED", "DISMISSED")


@dataclass(eq=False, kw_only=True, repr=False)
class Review(Thing):
    pull: "Proposal"
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
    """A review that only its author sees. An account has at most one per pull request."""

    replies: list[tuple["Thread", str]] = field(default_factory=list)

    @locked
    def submit(self) -> Review:
        """Publish the review with all its replies."""
        self.drop()
        review = self.pull.new_review(self.user.login, "COMMENTED", self.body)
        for thread, text in self.replies:
            self.pull.say_in_thread(thread, review, text)
        return review

    @locked
    def drop(self) -> None:
        """Discard the review."""
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
    """A conversation about one line. `line` is None once a push has changed the file."""

    pull: "Proposal"
    path: str
    line: int | None
    original_line: int
    original_commit: str
    diff_hunk: str
    start_line: int | None = None  #: The first line, if the thread began with several lines.
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
        """Reply in the thread. As on GitHub, the reply is a review of its own."""
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


@dataclass(eq=False, kw_only=True, repr=False)
class Proposal(Issue):
    """A change proposed for a branch: its commits, its reviews and their threads."""

    repo: CheckedRepository
    source: CheckedRepository  #: Where the head branch is: the repository itself, or a fork.
    head_branch: str
    head: str
    base_branch: str
    base: str  #: The base's commit when the head or `base_branch` last changed.
    draft: bool = False
    reviews: list[Review] = field(default_factory=list)
    pending: dict[str, PendingReview] = field(default_factory=dict)  #: By its author's login.
    threads: list[Thread] = field(default_factory=list)
    requested: list[User] = field(default_factory=list)  #: The accounts whose review is requested.

    event_name = "pull_request"
    part = "pull_request"

    @property
    def base_tip(self) -> str:
        """The current commit of the base branch."""
        return self.repo.heads.get(self.base_branch, self.base)

    @property
    def protection(self) -> Protection | None:
        return self.repo.protections.get(self.base_branch)

    @property
    def opinions(self) -> list[Review]:
        """Each reviewer's latest review among those with a state in `OPINIONS`."""
        sides = {r.user: r for r in self.reviews if r.state in OPINIONS}
        return list(sides.values())

    @property
    def review_decision(self) -> str | None:
        """GitHub's review decision; None if the base branch requires no review."""
        wanted = self.protection.required_reviews if self.protection else 0
        if not wanted:
            return None
        sides = [r.state for r in self.opinions if self.repo.allows(r.user.login, "write")]
        if "CHANGES_REQUESTED" in sides:
            return "CHANGES_REQUESTED"
        return "APPROVED" if sides.count("APPROVED") >= wanted else "REVIEW_REQUIRED"

    @locked
    def review(
        self,
        by: str,
        state: str,
        body: str = "",
        threads: Sequence[tuple[str, int, str]] = (),
        commit: str | None = None,
    ) -> Review:
        """Submit a review, with a new thread for each (path, line, text)."""
        review = self.new_review(by, state, body, commit)
        for path, line, text in threads:
            self.new_thread(review, path, line, text)
        return review

    def new_review(self, by: str, state: str, body: str, commit: str | None = None) -> Review:
        user = self.world.account(by)
        review = Review(
            pull=self,
            user=user,
            state=state,
            body=body,
            commit_id=commit or self.head,
            **self.world.identity("PRR"),
        )
        self.reviews.append(self.world.add(review))
        self.timeline.append(review)
        if user in self.requested:
            self.requested.remove(user)
        self.touch()
        review.publish("submitted", by)
        return review

    def new_thread(self, review: Review, path: str, line: int, text: str) -> ReviewComment:
        thread = Thread(
            pull=self,
            path=path,
            line=line,
            original_line=line,
            original_commit=review.commit_id,
            diff_hunk=self.repo.git.hunk(self.base_tip, review.commit_id, path, line),
            **self.world.identity("PRRT"),
        )
        self.threads.append(self.world.add(thread))
        return self.say_in_thread(thread, review, text)

    def say_in_thread(self, thread: Thread, review: Review, text: str) -> ReviewComment:
        comment = ReviewComment(
            issue=self,
            user=review.user,
            body=text,
            thread=thread,
            review=review,
            **self.world.identity("PRRC"),
        )
        thread.comments.append(self.world.add(comment))
        review.comments.append(comment)
        self.touch()
        self.publish_review_comment("created", review.user.login, comment)
        return comment

    @locked
    def begin_review(self, by: str) -> PendingReview:
        """Begin a review that is invisible until it is submitted.

        Raises `ValueError` if the account has begun one already.
        """
        if by in self.pending:
            raise ValueError("User can only have one pending review per pull request")
        begun = PendingReview(
            pull=self,
            user=self.world.account(by),
            state="PENDING",
            body="",
            commit_id=self.head,
            **self.world.identity("PRR"),
        )
        self.pending[by] = self.world.add(begun)
        return begun

    @locked
    def request_review(self, login: str, by: str) -> None:
        user = self.world.account(login)
        if user not in self.requested:
            self.requested.append(user)
            self.happened("review_requested", by)
            self.publish("review_requested", by, requested_reviewer=user)

    @locked
    def unrequest_review(self, login: str, by: str) -> None:
        user = self.world.account(login)
        if user in self.requested:
            self.requested.remove(user)
            self.publish("review_request_removed", by, requested_reviewer=user)

    def publish_review_comment(self, action: str, by: str, comment: Comment) -> None:
        self.repo.publish(
            "pull_request_review_comment", action, by, comment=comment, pull_request=self
        )
