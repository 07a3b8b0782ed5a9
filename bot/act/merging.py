"""Merges pull requests, directly or through GitHub's merge queue."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from bot.act.publishing import closing_others, made, refresh
from bot.act.results import ActionResult, Completed, FinalCheck, Rejected, RetryLater
from bot.github.client import GitHub
from bot.github.errors import Conflicted
from bot.github.merging import MergeTarget
from bot.github.write_access import WriteAccess
from bot.store import RefreshesTable, Session
from bot.system.clock import Clock
from bot.system.locations import Locations
from bot.text.merge_messages import merge_message, merge_title, trailers
from lifecycle.model.accounts import is_local
from lifecycle.model.actions import Enqueue, MergePull
from lifecycle.model.policy import MergeMethod
from runtimes.workspaces.commit_log import Commit

#: The author of each agent's commit, `NAME <EMAIL>`, ends with this (`runtimes.workspaces.git`).
_OURS = "@localhost>"


@dataclass(frozen=True)
class Merger:
    """Merges and enqueues pull requests. Every method is safe to repeat after a crash."""

    refreshes: RefreshesTable
    github: GitHub
    locations: Locations
    people: WriteAccess
    clock: Clock

    def enqueue(self, session: Session, action: Enqueue, check: FinalCheck) -> ActionResult:
        """Add the pull request to GitHub's merge queue, if its head is still `action.sha`."""
        if unsure := self._recheck_access(session, action):
            return unsure
        target = self._target(session, action)
        if isinstance(target, RetryLater):
            return target
        if stopped := check():
            return stopped
        queue = partial(self.github.merges.enqueue, session.repository, target, action.sha)
        return self._landed(session, action.number, queue)

    def merge(self, session: Session, merge: MergePull, check: FinalCheck) -> ActionResult:
        """Merge the pull request, if its head is still `merge.sha`."""
        if unsure := self._recheck_access(session, merge):
            return unsure
        mirror = made(self.locations.mirror(session.project))
        if not mirror.contains(merge.sha):
            mirror.refresh()  # A person pushed it, or GitHub updated the branch.
        pull = next((pull for pull in session.pulls if pull.number == merge.number), None)
        # Commits that an update of the branch merged are on its base already.
        base = mirror.head_of(pull.base_branch) if pull and pull.base_branch else None
        commits = mirror.commits(merge.sha, base or session.work.base)
        target = self._target(session, merge)
        if isinstance(target, RetryLater):
            return target
        method = _method(session, merge, target.methods, commits)
        if isinstance(method, Rejected):
            return method
        title, message = self._message(session, merge, method, commits)
        if stopped := check():
            return stopped
        return self._landed(
            session,
            merge.number,
            lambda: self.github.merges.merge(
                session.repository, merge.number, merge.sha, method, title, message
            ),
        )

    def _message(
        self, session: Session, merge: MergePull, method: MergeMethod, commits: Sequence[Commit]
    ) -> tuple[str, str]:
        """Return the title and the body of the merge commit, made from the project's templates."""
        project, issue = self.locations.projects[session.project], session.issue
        pull = next((pull for pull in session.pulls if pull.number == merge.number), None)
        title, credited = pull.title if pull else issue.title, tuple[str, ...]()
        if method is MergeMethod.SQUASH:  # The commits themselves stay otherwise.
            people = [one.author for one in commits if not one.author.endswith(_OURS)]
            credited = trailers([one.body for one in commits], people)
        body = ""
        if "{body}" in project.merge_message:
            body = self.github.merges.description(session.repository, merge.number)
        message = merge_message(
            project.merge_message,
            title=title,
            number=merge.number,
            issue=issue.number,
            subjects=[commit.subject for commit in commits],
            body=body,
            trailers=credited,
        )
        return merge_title(project.merge_title, title, merge.number, issue.number), message

    def _recheck_access(self, session: Session, action: MergePull | Enqueue) -> RetryLater | None:
        """Return a retry if someone who approved or requested the merge has lost write access.

        Returns None if all these people may still write. Access is read uncached. A refresh of the
        pull request is requested along with the retry.
        """
        logins = {
            verdict.author
            for pull in session.pulls
            for verdict in pull.verdicts
            if verdict.approved and verdict.allowed and pull.head == action.sha
        }
        if action.by and not is_local(action.by):
            logins.add(action.by)
        for login in sorted(logins):
            if not self.people.may_write(session.repository, login, fresh=True):
                self.refreshes.request([refresh(session, f"pull:{action.number}")], self.clock())
                return RetryLater(
                    f"@{login} approved or requested this merge and lost write access meanwhile"
                )
        return None

    def _target(self, session: Session, action: MergePull | Enqueue) -> MergeTarget | RetryLater:
        """Return where and how the pull request may be merged, or a retry if its base was changed.

        This is checked here because GitHub compares only the head when it merges, not the base.
        """
        target = self.github.merges.target(session.repository, action.number)
        if target.base_branch == action.base or not action.base:
            return target
        self.refreshes.request([refresh(session, f"pull:{action.number}")], self.clock())
        return RetryLater(f"the base branch was changed to {target.base_branch} meanwhile")

    def _landed(self, session: Session, number: int, land: Callable[[], str]) -> Completed:
        """Call `land`, which merges or enqueues, and return its result.

        If it raises `Conflicted`, the pull request may have changed: its refresh is requested, and
        the exception is raised again, so that `bot.act.dispatch` retries.
        """
        issue = session.issue.number
        subjects = (f"pull:{number}", *([f"issue:{issue}"] if issue else ()))
        refreshes = tuple(refresh(session, subject) for subject in subjects)
        try:
            return Completed(result=land(), refreshes=refreshes)
        except Conflicted:
            self.refreshes.request(refreshes, self.clock())
            raise


def _method(
    session: Session,
    merge: MergePull,
    allowed: tuple[MergeMethod, ...],
    commits: Iterable[Commit],
) -> MergeMethod | Rejected:
    """Return the method to merge with, or `Rejected` if there is none.

    A method that a person named is used or rejected. The policy's method is replaced by an allowed
    one if the repository forbids it, and by squash if commits have closing keywords for other
    issues, because only a squash replaces their messages.
    """
    method = merge.method if merge.method in allowed or not allowed else allowed[0]
    if merge.asked and method is not merge.method:
        why = f"{session.repository} forbids {merge.method}"
        return Rejected(
            f"{why}: write `/mergewright merge {allowed[0]}` and then `/mergewright retry`"
        )
    closing = closing_others(commits, session.issue.number)
    if method is MergeMethod.SQUASH or not closing:
        return method
    if merge.asked or (allowed and MergeMethod.SQUASH not in allowed):
        squash = not allowed or MergeMethod.SQUASH in allowed
        instead = (
            ", or write `/mergewright merge squash` and then `/mergewright retry`" if squash else ""
        )
        what = f"with a {method}, the messages of {closing} would close other issues"
        why = f"{what}: reword these messages{instead}"
        return Rejected(why)
    return MergeMethod.SQUASH
