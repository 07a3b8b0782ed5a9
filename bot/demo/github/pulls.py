"""Pull requests: their state, their checks, and what a merge does."""

from dataclasses import dataclass
from datetime import datetime

from bot.demo.github import merging
from bot.demo.github.checks import CheckRun, CommitStatus
from bot.demo.github.git import Conflict
from bot.demo.github.hosting import Protection
from bot.demo.github.issues import Issue
from bot.demo.github.reviews import Proposal
from bot.demo.github.world import User, locked


@dataclass(eq=False, kw_only=True, repr=False)
class Pull(Proposal):
    merged_at: datetime | None = None
    merged_by: User | None = None
    merge_commit: str | None = None
    queued: str = ""  #: The commit the merge queue tests; if empty, it is not in the queue.
    queue_base: str = ""  #: The commit of the base branch on which the queue tests it.
    accepted: merging.AcceptedMerge | None = None  #: The last background merge.

    # -- state

    @property
    def merged(self) -> bool:
        return self.merged_at is not None

    @property
    def from_fork(self) -> bool:
        return self.source is not self.repo

    @property
    def ref(self) -> str:
        return f"refs/pull/{self.number}/head"

    @property
    @locked
    def mergeable(self) -> bool | None:
        """Whether git can merge the pull request; None if it is not open."""
        return merging.mergeable(self) if self.state == "open" else None

    @property
    @locked
    def merge_state(self) -> str:
        """GitHub's merge state: CLEAN, DIRTY, BLOCKED, BEHIND, UNSTABLE, DRAFT or UNKNOWN."""
        return merging.state(self)

    @property
    def closes(self) -> list[Issue]:
        """The issues that the pull request's merge closes."""
        into_default = self.base_branch == self.repo.default_branch
        return self.repo.closing(self.body) if into_default else []

    # -- what people and programs do to it

    @locked
    def check(
        self,
        name: str,
        status: str = "completed",
        conclusion: str | None = None,
        log: str = "",
        app: str = "github-actions",
        required: bool = False,
        suite: str | None = None,
    ) -> CheckRun:
        """Report a check run on the head. `suite` is the workflow's name.

        `required` adds the check to those that the base branch's protection requires.
        """
        if required:
            rules = vars(self.protection or Protection())
            wanted = list(dict.fromkeys([*rules["required_checks"], name]))
            self.repo.protect(self.base_branch, **{**rules, "required_checks": wanted})
        run = self.repo.checks.run(self.world.app(app), self.head, name, suite)
        run.write_log(log)
        if status != "queued":
            ended = (conclusion or "success") if status == "completed" else None
            run.update(status=status, conclusion=ended)
        return run

    def status(
        self, context: str, state: str, target_url: str | None = None, *, by: str = "ci"
    ) -> CommitStatus:
        """Report a commit status on the head: `success`, `failure`, `error` or `pending`."""
        return self.repo.checks.status(self.head, context, state, by, target_url=target_url)

    @locked
    def mark_ready(self, by: str) -> None:
        if self.draft:
            self.draft = False
            self.happened("ready_for_review", by)
            self.publish("ready_for_review", by)

    @locked
    def mark_draft(self, by: str) -> None:
        if not self.draft:
            self.draft = True
            self.happened("convert_to_draft", by)
            self.publish("converted_to_draft", by)

    @locked
    def change_base(self, branch: str, by: str) -> None:
        """Change the branch that the pull request is to be merged into."""
        before, self.base_branch = self.base_branch, branch
        self.base = self.base_tip
        self.happened("base_ref_changed", by)
        self.publish("edited", by, changes={"base": {"ref": {"from": before}}})

    @locked
    def merge(
        self, by: str, method: str = "merge", title: str | None = None, message: str | None = None
    ) -> str:
        """Merge the pull request and return the merge commit. Raises `merging.Refused`."""
        merging.check(self, method)
        try:
            sha = merging.merge_commit(self, by, method, title, message)
        except Conflict as conflict:
            raise merging.Refused("Pull Request is not mergeable") from conflict
        self.set_merged(by, sha)
        self.repo.git.set_ref(f"refs/heads/{self.base_branch}", sha)
        self.repo.refs_moved(by)
        return sha

    @locked
    def update_branch(self, by: str) -> str:
        """Merge the base into the head branch, and return the merge commit.

        Raises `merging.Refused` if the head is up to date, or if the merge has conflicts.
        """
        sha = merging.update_commit(self, by)
        branch = f"refs/heads/{self.head_branch}"
        if self.from_fork:
            self.source.git.fetch(self.repo.git.path, sha, branch)
        else:
            self.repo.git.set_ref(branch, sha)
        self.source.refs_moved(by)
        return sha

    # -- merging in the background, and by the queue

    @locked
    def accept_merge(self, asked: merging.AcceptedMerge) -> None:
        """Accept an asynchronous merge.

        It is carried out when its result or another asynchronous merge is requested.
        """
        self.accepted = asked

    @locked
    def carry_out(self, asked: merging.AcceptedMerge) -> None:
        """Carry out an accepted merge if its commit is still the head.

        Records the result in `asked`.
        """
        try:
            if asked.sha != self.head:
                raise merging.Refused("Head branch was modified. Review and try the merge again.")
            asked.merged = self.merge(asked.by, asked.method, asked.title, asked.message)
        except merging.Refused as refused:
            asked.failed = str(refused)

    @locked
    def enqueue(self, by: str) -> None:
        """Add the pull request to the merge queue, which tests it. Raises `merging.Refused`."""
        if self.queued:
            raise merging.Refused("Pull request is already in the queue")
        self.queued, self.queue_base = merging.queue_commit(self, by), self.base_tip
        self.repo.git.set_ref(f"refs/heads/{self.queue_branch}", self.queued)
        self.repo.refs_moved(by)
        self.happened("added_to_merge_queue", by)
        self.publish("enqueued", by)
        self._publish_group("checks_requested", by)

    @locked
    def check_in_queue(self, name: str, conclusion: str = "success", log: str = "") -> CheckRun:
        """Report a check run on the commit that the queue tests."""
        run = self.repo.checks.run(self.world.app("github-actions"), self.queued, name)
        run.complete(conclusion, log)
        return run

    @locked
    def queue_merges(self) -> str:
        """Merge the pull request, as the queue does once its checks have passed.

        If the base branch has moved, the merge is made again on the new base, and not tested there.
        Raises `merging.Refused` on a conflict.
        """
        by, sha = "github-merge-queue[bot]", self.queued
        if self.base_tip != self.queue_base:
            sha = merging.queue_commit(self, by)
        self._leave_queue("merged", by)
        self.publish("dequeued", by, reason="MERGE")
        self.set_merged(by, sha)
        self.repo.git.set_ref(f"refs/heads/{self.base_branch}", sha)
        self.repo.refs_moved(by)
        return sha

    @locked
    def queue_puts_out(self, reason: str, by: str = "github-merge-queue[bot]") -> None:
        """Remove the pull request from the queue without a merge.

        `reason` is GitHub's word, such as `failed_checks`.
        """
        tried = self.queued
        self._leave_queue("dequeued", by)
        self.happened("removed_from_merge_queue", by, commit_id=tried, state_reason=reason)
        self.publish("dequeued", by, reason=reason.upper())

    @property
    def queue_branch(self) -> str:
        return f"gh-readonly-queue/{self.base_branch}/pr-{self.number}-{self.queue_base}"

    def _leave_queue(self, reason: str, by: str) -> None:
        self._publish_group("destroyed", by, reason=reason)
        self.repo.git.delete_ref(f"refs/heads/{self.queue_branch}")
        self.queued = ""
        self.repo.refs_moved(by)

    def _publish_group(self, action: str, by: str, **more: str) -> None:
        group = {
            "head_sha": self.queued,
            "head_ref": f"refs/heads/{self.queue_branch}",
            "base_sha": self.queue_base,
            "base_ref": f"refs/heads/{self.base_branch}",
        }
        self.repo.publish("merge_group", action, by, merge_group=group, **more)

    # -- what follows from pushes

    def keep_head(self) -> None:
        """Keep the head's commits under `refs/pull/`, so that they survive without the branch."""
        if self.from_fork:
            self.repo.git.fetch(self.source.git.path, f"refs/heads/{self.head_branch}", self.ref)
        else:
            self.repo.git.set_ref(self.ref, self.head)

    def head_pushed(self, sha: str | None, by: str) -> None:
        """Set the head of an open pull request to `sha`, to which its head branch has moved.

        If `sha` is None, the branch was deleted, and the pull request is closed.
        """
        if self.state != "open":
            return
        if sha is None:
            self.close(by)
            return
        before, self.head, self.base = self.head, sha, self.base_tip
        self.keep_head()
        changed = self.repo.git.changed(before, sha)
        for thread in self.threads:
            if thread.path in changed:
                thread.outdated, thread.line = True, None
        self.touch()
        self.publish("synchronize", by, before=before, after=sha)
        self.world.head_moved(self)

    def base_pushed(self, by: str) -> None:
        """Mark the pull request as merged if a push to the base contains its commits.

        If the base branch was deleted, close the pull request, as GitHub's API does.
        """
        if self.state == "open" and self.base_branch not in self.repo.heads:
            self.close(by)
        elif self.state == "open" and self.repo.git.contains(self.base_tip, self.head):
            self.set_merged(by, self.base_tip)

    def set_merged(self, by: str, sha: str) -> None:
        self.merge_commit, self.merged_at = sha, self.world.now()
        self.merged_by = self.world.account(by)
        self.happened("merged", by, commit_id=sha)
        self.set_closed(by, None, sha)
        self.publish("closed", by)
        for issue in self.closes if self.repo.closes_issues else ():
            issue.close(by)
