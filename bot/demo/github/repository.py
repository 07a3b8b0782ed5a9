"""A repository: its bare git repository, issues, pull requests, people and rules."""

from collections.abc import Callable
from dataclasses import dataclass

from bot.demo.github.checks import CheckedRepository
from bot.demo.github.git import Git
from bot.demo.github.hosting import Hosting, Move
from bot.demo.github.issues import Issue
from bot.demo.github.pulls import Pull
from bot.demo.github.world import locked


class Forge(Hosting):
    """All repositories of one server."""

    def __init__(self) -> None:
        super().__init__()
        self.repositories: dict[str, Repository] = {}
        self.moved: dict[str, Repository] = {}  #: Renamed repositories by earlier name.


@dataclass(eq=False, kw_only=True, repr=False)
class Repository(CheckedRepository):
    world: Forge
    add_hook: Callable[["Repository", str, str], int]

    def webhook(self, url: str, secret: str) -> int:
        """Create a webhook for all events of this repository; return its id."""
        return self.add_hook(self, url, secret)

    # -- issues and pull requests

    @property
    def issues(self) -> list[Issue]:
        return [issue for issue in self.issues_and_pulls.values() if not issue.is_pull]

    @property
    def pulls(self) -> list[Pull]:
        # A copy, because another thread may open one meanwhile.
        return [one for one in list(self.issues_and_pulls.values()) if isinstance(one, Pull)]

    @locked
    def open_issue(self, title: str, body: str = "", *, by: str) -> Issue:
        issue = Issue(
            repo=self,
            number=len(self.issues_and_pulls) + 1,
            title=title,
            body=body,
            user=self.world.account(by),
            **self.world.identity("I"),
        )
        self.issues_and_pulls[issue.number] = self.world.add(issue)
        issue.publish("opened", by)
        return issue

    @locked
    def open_pull(
        self,
        head: str,
        base: str | None = None,
        *,
        title: str,
        by: str,
        body: str = "",
        draft: bool = False,
        source: "Repository | None" = None,
    ) -> Pull:
        """Open a pull request for a branch of this repository, or of the fork `source`."""
        base = base or self.default_branch
        pull = Pull(
            repo=self,
            number=len(self.issues_and_pulls) + 1,
            title=title,
            body=body,
            user=self.world.account(by),
            source=source or self,
            head_branch=head,
            head=(source or self).heads[head],
            base_branch=base,
            base=self.heads[base],
            draft=draft,
            **self.world.identity("PR"),
        )
        self.issues_and_pulls[pull.number] = self.world.add(pull)
        pull.keep_head()
        pull.publish("opened", by)
        self.world.head_moved(pull)
        return pull

    # -- branches

    @locked
    def fork(self, login: str) -> "Repository":
        """Fork the repository into another account."""
        owner = self.world.account(login)
        git = Git(self.git.path.parent.parent / login / self.git.path.name)
        git.init_from(self.git.path)
        fork = Repository(
            world=self.world,
            owner=owner,
            name=self.name,
            git=git,
            default_branch=self.default_branch,
            parent=self,
            heads=git.heads(),
            permissions={login: "admin"},
            add_hook=self.add_hook,
            **self.world.identity("R"),
        )
        self.world.repositories[fork.full_name.lower()] = self.world.add(fork)
        return fork

    @locked
    def rename(self, name: str, by: str) -> None:
        """Rename the repository.

        The old name redirects to it until another repository takes the old name.
        """
        before, known = self.full_name, self.world.repositories
        changes = {"repository": {"name": {"from": self.name}}}
        self.world.moved[before.lower()] = known.pop(before.lower())
        self.name = name
        self.git.path = self.git.path.rename(self.git.path.with_name(f"{name}.git"))
        known[self.full_name.lower()] = self
        self.publish("repository", "renamed", by, changes=changes)

    def refs_moved(self, by: str) -> None:
        """Compare the branches with their last known commits, and apply the effects of changes."""
        before, self.heads = self.heads, self.git.heads()
        for branch in sorted(before.keys() | self.heads.keys()):
            old, new = before.get(branch), self.heads.get(branch)
            if old != new:
                move = Move(
                    repository=self.full_name,
                    branch=branch,
                    before=old,
                    after=new,
                    user=by,
                    **self.world.identity("A"),
                )
                self._branch_moved(move)

    def _branch_moved(self, move: Move) -> None:
        self.moves.append(move)
        self.updated_at = self.world.now()
        self.publish("push", None, move.user, push=move)
        for repo in self.world.repositories.values():
            for pull in repo.pulls:
                if pull.source is self and pull.head_branch == move.branch:
                    pull.head_pushed(move.after, move.user)
                if pull.repo is self and pull.base_branch == move.branch:
                    pull.base_pushed(move.user)
        if move.branch == self.default_branch and move.before and move.after:
            for commit in list(self.git.log(f"{move.before}..{move.after}")):
                for issue in self.closing(commit.message) if self.closes_issues else ():
                    issue.close(move.user)
        if move.after:
            for app in self.world.apps.values():
                if app.installed:
                    suite = self.checks.suite(app, move.after)
                    self.publish("check_suite", "requested", move.user, check_suite=suite)
