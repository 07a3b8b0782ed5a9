"""The base class of the stand-in's repositories: their names, branches, rules, labels and events.

Issues, checks and pull requests build on it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.demo.github.git import Git
from bot.demo.github.world import Thing, User, World, locked

#: The permission levels in a repository, lowest first; each includes those before it.
LEVELS = ("none", "read", "triage", "write", "maintain", "admin")


@dataclass(eq=False, kw_only=True, repr=False)
class Label(Thing):
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(eq=False, kw_only=True, repr=False)
class Move(Thing):
    """A change of a branch. `before` is None for a new branch, `after` for a deleted one."""

    repository: str
    branch: str
    before: str | None
    after: str | None
    user: str


@dataclass(kw_only=True)
class Protection:
    """The protection of a branch: what a merge requires, and who may push."""

    required_checks: list[str] = field(default_factory=list)
    required_reviews: int = 0
    strict: bool = False  #: The head must contain the base.
    queue: bool = False  #: Merges are only possible through the merge queue.
    #: The branch's commits must be signed. The stand-in does not enforce `signatures`, `pushers`
    #: and `bypass`: its APIs only show them.
    signatures: bool = False
    pushers: tuple[str, ...] | None = None  #: The only accounts that may push; if None, all.
    #: `current_user_can_bypass` of the ruleset that restricts updates; if empty, no ruleset does.
    bypass: str = ""


@dataclass(frozen=True, kw_only=True)
class Event:
    """An event for webhooks.

    `parts` has, by name, the members of its payload that not every payload has. Their values are
    JSON, or objects of the stand-in such as a pull request.
    """

    repo: "RepositoryBase"
    name: str
    action: str | None
    by: User
    parts: dict[str, Any] = field(default_factory=dict)


class Hosting(World):
    """A world that reports events to `publish`, and new heads of pull requests to `head_moved`."""

    def __init__(self) -> None:
        super().__init__()
        self.publish: Callable[[Event], None] = lambda event: None
        self.head_moved: Callable[[Thing], None] = lambda pull: None


@dataclass(eq=False, kw_only=True, repr=False)
class RepositoryBase(Thing, ABC):
    """The parts of a repository that its issues, checks and pull requests use."""

    world: Hosting
    owner: User
    name: str
    git: Git
    default_branch: str
    private: bool = False
    merge_methods: set[str] = field(default_factory=lambda: {"merge", "squash", "rebase"})
    archived: bool = False
    #: Whether a merge closes the issues that its texts name with GitHub's keywords.
    closes_issues: bool = True
    async_merges: bool = False  #: Whether merges in the background are offered.
    moves: list[Move] = field(default_factory=list)
    heads: dict[str, str] = field(default_factory=dict)  #: Every branch's commit, as last seen.
    parent: "RepositoryBase | None" = None  #: The repository of which it is a fork.
    permissions: dict[str, str] = field(default_factory=dict)
    protections: dict[str, Protection] = field(default_factory=dict)
    known_labels: dict[str, Label] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def url(self) -> str:
        return f"{self.world.url}{self.full_name}"

    @property
    def clone_url(self) -> str:
        return f"{self.url}.git"

    @abstractmethod
    def refs_moved(self, by: str) -> None:
        """Compare the branches with their last known commits, and apply the effects of changes."""

    # -- people

    def permission(self, login: str, level: str) -> None:
        """Set an account's permission to one of `LEVELS`."""
        LEVELS.index(level)
        self.permissions[self.world.account(login).login] = level

    def level(self, login: str) -> str:
        """Return an account's permission.

        By default, installed Apps may write, and everybody may read a public repository.
        """
        app = next((a for a in self.world.apps.values() if a.bot.login == login), None)
        everybody = "none" if self.private else "read"
        installed = app and app.installed and app.serves(self)
        return self.permissions.get(login, "write" if installed else everybody)

    def allows(self, login: str, level: str) -> bool:
        return LEVELS.index(self.level(login)) >= LEVELS.index(level)

    @locked
    def protect(
        self,
        branch: str,
        required_checks: Sequence[str] = (),
        required_reviews: int = 0,
        strict: bool = False,
        queue: bool = False,
        signatures: bool = False,
        pushers: tuple[str, ...] | None = None,
        bypass: str = "",
    ) -> None:
        """Protect a branch: refuse everybody's pushes; require these checks and reviews for merges.

        The other arguments are as in `Protection`; `pushers` is only shown, and exempts nobody.
        """
        self.protections[branch] = Protection(
            required_checks=list(required_checks),
            required_reviews=required_reviews,
            strict=strict,
            queue=queue,
            signatures=signatures,
            pushers=pushers,
            bypass=bypass,
        )
        self.git.refuse_pushes(list(self.protections))

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
        """Commit files on a branch, as when a person pushes. None as content removes a file.

        A new branch begins at the branch `start`, or at the default branch.
        """
        signature = self.world.account(by).signature
        parent = self.heads.get(branch) or self.heads.get(start or self.default_branch)
        sha = self.git.commit_files(branch, files, message, signature, parent)
        self.refs_moved(by)
        return sha

    @locked
    def reset(self, branch: str, sha: str, by: str) -> None:
        """Move a branch to a commit, as a force push does."""
        self.git.set_ref(f"refs/heads/{branch}", sha)
        self.refs_moved(by)

    @locked
    def delete_branch(self, branch: str, by: str) -> None:
        self.git.delete_ref(f"refs/heads/{branch}")
        self.refs_moved(by)

    # -- labels and events

    @locked
    def archive(self, by: str, *, archived: bool = True) -> None:
        """Make the repository read-only, or writable again."""
        self.archived = archived
        self.publish("repository", "archived" if archived else "unarchived", by)

    @locked
    def label(self, name: str, by: str) -> Label:
        """Return the label of this name; create it if there is none."""
        known = self.known_labels.get(name.lower())
        if known is None:
            known = Label(name=name, **self.world.identity("LA"))
            self.known_labels[name.lower()] = self.world.add(known)
            self.publish("label", "created", by, label=known)
        return known

    def publish(self, event: str, action: str | None, by: str, **parts: Any) -> None:
        user = self.world.account(by)
        self.world.publish(Event(repo=self, name=event, action=action, by=user, parts=parts))
