"""A repository: its bare git repository, issues, pull requests, people and rules."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.demo.github.checks import Checks
from bot.demo.github.git import Git
from bot.demo.github.issues import Issue, Label
from bot.demo.github.pulls import Pull
from bot.demo.github.world import Event, Thing, User, World, locked

#: What people may do, least first; each includes those before it.
LEVELS = ("none", "read", "triage", "write", "maintain", "admin")
_CLOSES = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:(?P<repo>[\w.-]+/[\w.-]+))?#(?P<number>\d+)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Move:
    """One branch that moved: `before` or `after` is None where it was made or deleted."""

    repository: str
    branch: str
    before: str | None
    after: str | None
    user: str


@dataclass(kw_only=True)
class Protection:
    """What a branch demands before anything is merged into it."""

    required_checks: list[str] = field(default_factory=list)
    required_reviews: int = 0
    strict: bool = False  #: The head must hold all of the base.
    queue: bool = False  #: Everything goes through the merge queue.
    signatures: bool = False  #: Its commits have to be signed.


@dataclass(eq=False, kw_only=True, repr=False)
class Repository(Thing):
    world: World
    owner: User
    name: str
    git: Git
    default_branch: str
    private: bool = False
    archived: bool = False
    parent: "Repository | None" = None  #: What it is a fork of.
    merge_methods: set[str] = field(default_factory=lambda: {"merge", "squash", "rebase"})
    async_merges: bool = False  #: Whether merges in the background are offered.
    heads: dict[str, str] = field(default_factory=dict)  #: Every branch's commit, as last seen.
    permissions: dict[str, str] = field(default_factory=dict)
    protections: dict[str, Protection] = field(default_factory=dict)
    issues_and_pulls: dict[int, Issue] = field(default_factory=dict)
    known_labels: dict[str, Label] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    add_hook: Callable[["Repository", str, str], int]

    def __post_init__(self) -> None:
        self.checks = Checks(self)

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def url(self) -> str:
        return f"{self.world.url}{self.full_name}"

    @property
    def clone_url(self) -> str:
        return f"{self.url}.git"

    # -- people

    def permission(self, login: str, level: str) -> None:
        """Say what somebody may do: one of `LEVELS`."""
        LEVELS.index(level)
        self.permissions[self.world.account(login).login] = level

    def level(self, login: str) -> str:
        """What somebody may do; everybody may read what is not private."""
        app = next((a for a in self.world.apps.values() if a.bot.login == login), None)
        everybody = "none" if self.private else "read"
        return self.permissions.get(login, "write" if app and app.installed else everybody)

    def allows(self, login: str, level: str) -> bool:
        return LEVELS.index(self.level(login)) >= LEVELS.index(level)

    def webhook(self, url: str, secret: str) -> int:
        """Send all events of this repository to an address; answers the hook's id."""
        return self.add_hook(self, url, secret)

    @locked
    def protect(
        self,
        branch: str,
        required_checks: Sequence[str] = (),
        required_reviews: int = 0,
        strict: bool = False,
        queue: bool = False,
        signatures: bool = False,
    ) -> None:
        """Protect a branch: nobody pushes to it, and merges wait for these."""
        self.protections[branch] = Protection(
            required_checks=list(required_checks),
            required_reviews=required_reviews,
            strict=strict,
            queue=queue,
            signatures=signatures,
        )
        self.git.refuse_pushes(list(self.protections))

    # -- issues and pull requests

    @property
    def issues(self) -> list[Issue]:
        return [issue for issue in self.issues_and_pulls.values() if not issue.is_pull]

    @property
    def pulls(self) -> list[Pull]:
        return [pull for pull in self.issues_and_pulls.values() if isinstance(pull, Pull)]

    @locked
    def label(self, name: str, by: str) -> Label:
        """The label of this name, made where there is none."""
        known = self.known_labels.get(name.lower())
        if known is None:
            known = Label(name=name, **self.world.identity("LA"))
            self.known_labels[name.lower()] = self.world.add(known)
            self.publish("label", "created", by, label=known)
        return known

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

    def closing(self, text: str) -> list[Issue]:
        """The issues that a text closes by GitHub's keywords."""
        found: dict[int, Issue] = {}
        for match in _CLOSES.finditer(text):
            issue = self.issues_and_pulls.get(int(match["number"]))
            here = (match["repo"] or self.full_name).lower() == self.full_name.lower()
            if issue and here and not issue.is_pull:
                found[issue.number] = issue
        return list(found.values())

    # -- branches

    @locked
    def push(
        self,
        branch: str,
        files: Mapping[str, str | None],
        *,
        by: str,
        message: str = "Change files",
        start: str | None = None,
    ) -> str:
        """Commit files on a branch as a person's push; None as content removes a file.

        A branch that is new begins at `start` (a branch), or at the default branch.
        """
        signature = self.world.account(by).signature
        parent = self.heads.get(branch) or self.heads.get(start or self.default_branch)
        sha = self.git.commit_files(branch, files, message, signature, parent)
        self.refs_moved(by)
        return sha

    @locked
    def reset(self, branch: str, sha: str, by: str) -> None:
        """Move a branch to a commit, as a person's forced push does."""
        self.git.set_ref(f"refs/heads/{branch}", sha)
        self.refs_moved(by)

    @locked
    def delete_branch(self, branch: str, by: str) -> None:
        self.git.delete_ref(f"refs/heads/{branch}")
        self.refs_moved(by)

    @locked
    def fork(self, login: str) -> "Repository":
        """A copy of it that belongs to somebody else."""
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
        """Call it otherwise; what is asked by its old name is sent on, until another takes it."""
        before, known = self.full_name, self.world.repositories
        changes = {"repository": {"name": {"from": self.name}}}
        self.world.moved[before.lower()] = known.pop(before.lower())
        self.name = name
        self.git.path = self.git.path.rename(self.git.path.with_name(f"{name}.git"))
        known[self.full_name.lower()] = self
        self.publish("repository", "renamed", by, changes=changes)

    @locked
    def archive(self, by: str, *, archived: bool = True) -> None:
        """Have it read-only, or writable again."""
        self.archived = archived
        self.publish("repository", "archived" if archived else "unarchived", by)

    def refs_moved(self, by: str) -> None:
        """Compare the branches with what was known; everything that follows, happens here."""
        before, self.heads = self.heads, self.git.heads()
        for branch in sorted(before.keys() | self.heads.keys()):
            old, new = before.get(branch), self.heads.get(branch)
            if old != new:
                self._branch_moved(
                    Move(repository=self.full_name, branch=branch, before=old, after=new, user=by)
                )

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
                for issue in self.closing(commit.message):
                    issue.close(move.user)
        if move.after:
            for app in self.world.apps.values():
                if app.installed:
                    suite = self.checks.suite(app, move.after)
                    self.publish("check_suite", "requested", move.user, check_suite=suite)

    def publish(self, event: str, action: str | None, by: str, **parts: Any) -> None:
        user = self.world.account(by)
        self.world.publish(Event(repo=self, name=event, action=action, by=user, parts=parts))
