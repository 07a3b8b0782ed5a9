"""What was judged ready on its way into the base: merged by us, or by GitHub's merge queue."""

from collections.abc import Callable, Iterable
from functools import partial

from bot.act.outbox import Check, Impossible, Later, Outcome
from bot.act.publishing import closing_others, of_pull
from bot.github.client import GitHub
from bot.github.errors import Conflicted
from bot.github.write_access import WriteAccess, from_here
from bot.store import RefreshRequest, Session, Store
from bot.system.clock import Clock
from bot.system.locations import Sites
from bot.text import messages
from lifecycle.model.actions import Enqueue, MergePull
from lifecycle.model.policy import MergeMethod
from runtimes.workspaces.mirror import Commit


class Landing:
    """Merges and queues. Every method may be repeated after a crash."""

    def __init__(
        self, store: Store, github: GitHub, sites: Sites, people: WriteAccess, clock: Clock
    ) -> None:
        self._store = store
        self._github = github
        self._sites = sites
        self._people = people
        self._clock = clock

    def enqueue(self, session: Session, action: Enqueue, check: Check) -> Outcome:
        """Have GitHub's merge queue land the judged commit."""
        self._ask_anew(session, action)
        check()
        queue = partial(self._github.merges.enqueue, session.repository, action.number, action.sha)
        return self._landed(session, action.number, queue)

    def merge(self, session: Session, merge: MergePull, check: Check) -> Outcome:
        """Merge the judged commit, with what its commits say."""
        self._ask_anew(session, merge)
        mirror = self._sites.mirror(session.project)
        if not mirror.contains(merge.sha):
            mirror.refresh()  # Somebody else pushed it, or GitHub brought the branch up to date.
        pull = next((pull for pull in session.pulls if pull.number == merge.number), None)
        # What came in by an update of the branch is on its base already.
        base = mirror.head_of(pull.base_branch) if pull and pull.base_branch else None
        commits = mirror.subjects(base or session.work.base, merge.sha)
        title = messages.merge_title(pull.title if pull else session.issue.title, merge.number)
        message = messages.merge_message(session.issue.number, [c.subject for c in commits])
        method = self._method(session, merge, commits)
        check()
        return self._landed(
            session,
            merge.number,
            lambda: self._github.merges.merge(
                session.repository, merge.number, merge.sha, method, title, message
            ),
        )

    def _ask_anew(self, session: Session, action: MergePull | Enqueue) -> None:
        """See that those may write still on whose word it lands: that was read a while ago.

        Where somebody may not, the pull request is looked at before it is tried again.
        """
        heard = {
            verdict.author
            for pull in session.pulls
            for verdict in pull.verdicts
            if verdict.approved and verdict.allowed and pull.head == action.sha
        }
        if action.by and not from_here(action.by):
            heard.add(action.by)
        for login in sorted(heard):
            if not self._people.may_write(session.repository, login, fresh=True):
                self._store.refreshes.request([of_pull(session, action.number)], self._clock())
                raise Later(f"@{login}, on whose word it lands, may not write there any more")

    def _method(self, session: Session, merge: MergePull, commits: Iterable[Commit]) -> MergeMethod:
        """How to merge: as it was asked for, or in another way where the repository forbids it.

        Only a squash replaces the messages of commits, of which some would close other issues.
        """
        repository = self._github.read.repository(session.repository)
        allowed, method = repository.merge_methods, repository.way(merge.method)
        if merge.asked and method is not merge.method:
            others = ", ".join(allowed)
            raise Impossible(f"{session.repository} forbids {merge.method}; it allows {others}")
        closing = closing_others(commits, session.issue.number)
        if method is MergeMethod.SQUASH or not closing:
            return method
        if merge.asked or (allowed and MergeMethod.SQUASH not in allowed):
            raise Impossible(f"a {method} would close other issues: reword {closing}, or squash it")
        return MergeMethod.SQUASH

    def _landed(self, session: Session, number: int, land: Callable[[], str]) -> Outcome:
        """Have something landed. Where GitHub refuses it, look again before it is tried again."""
        look = (of_pull(session, number), _issue(session))
        try:
            return Outcome(result=land(), refreshes=look)
        except Conflicted:
            self._store.refreshes.request(look, self._clock())
            raise


def _issue(session: Session) -> RefreshRequest:
    return RefreshRequest(repository=session.repository, subject=f"issue:{session.issue.number}")
