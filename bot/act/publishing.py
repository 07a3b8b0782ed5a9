"""Pushes an agent's commits to GitHub and opens its pull request."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from msgspec.structs import replace

from bot.act.results import (
    ActionResult,
    Completed,
    FinalCheck,
    Rejected,
    RetryLater,
    Withdrawn,
)
from bot.act.workspace_files import upload_lfs
from bot.github.client import GitHub
from bot.store import FactsReader, Observation, RefreshRequest, Session
from bot.system.locations import Locations
from bot.system.redaction import Redaction
from bot.system.secret_forms import looks_like_secret
from bot.text import messages
from bot.text.markdown import visible
from bot.text.prompt_text import printable
from lifecycle.model import actions
from lifecycle.model.key import KeyKind
from lifecycle.model.status import Origin, PullState, Reason
from runtimes.workspaces import held_commits, signing
from runtimes.workspaces.commit_log import Commit
from runtimes.workspaces.git import EMAIL
from runtimes.workspaces.mirror import Mirror, PushRefused
from runtimes.workspaces.push_checks import (
    PatchTooLarge,
    foreign_encoding,
    holds,
    skips_checks,
    touched,
)

#: The number of characters that GitHub accepts in the body of a pull request (measured).
_MOST_OF_SUMMARY = 65_536
#: The most paths of changed files that are recorded for one push.
_MOST_PATHS = 200
_MOST_NAMED = 20  #: The most protected paths that a refusal names.


@dataclass(frozen=True)
class Publishing:
    """Pushes commits and opens pull requests. Every method may be repeated after a crash."""

    facts: FactsReader
    github: GitHub
    locations: Locations
    redact: Redaction
    add_paths: Callable[[str, Sequence[str]], None]  #: Records the files that a session changes.
    signer: signing.CommitSigner | None = None  #: If None, pushes to be signed are refused.

    def publish(
        self, session: Session, publish: actions.Publish, check: FinalCheck
    ) -> ActionResult:
        """Import the agent's commits, check them as untrusted input, and push them.

        The push is refused if somebody else pushed commits that `head` does not contain. If the bot
        signs commits, nothing unsigned is pushed: the commits are replaced by signed ones, in the
        workspace too, and a later decision orders the push of these.
        """
        pushed = self._pushes(session.id)
        mirror = self.locations.mirror(session.project) if pushed else self._identified(session)
        head = publish.head
        workspace = self.locations.workspace_of(session)
        if mirror.take(workspace) != head:
            # Not withdrawn: until the new head is observed, the same push would be ordered again.
            return RetryLater("the agent has committed since")
        if publish.checked and mirror.allowed(session.branch) == head:
            publish = replace(publish, protected=(), checked=False)
        if refused := self._refusal(session, mirror, publish):
            return refused
        if publish.sign and (result := self._sign(session, mirror, publish, check)):
            return result
        if stopped := check():
            return stopped
        if refused := upload_lfs(
            self.locations, session, workspace, head, self.redact, checked=publish.checked
        ):
            return refused
        return check() or self._push(session, mirror, head, pushed, check)

    def _sign(
        self, session: Session, mirror: Mirror, publish: actions.Publish, check: FinalCheck
    ) -> ActionResult | None:
        """Replace the commits by signed ones and return the result; None if they are all signed.

        Nothing is pushed before the workspace has the signed commits. Otherwise its branch and
        GitHub's would diverge.
        """
        head = publish.head
        if self.signer is None:
            return Rejected(messages.NO_SIGNING_KEY, Reason.PUSH_REFUSED)
        signed = signing.sign_commits(mirror, session.id, head, self.signer)
        if signed == head:
            return None
        if not publish.checked:
            mirror.allow(session.branch, signed)
        workspace = self.locations.workspace_of(session)
        if stopped := check():
            return stopped
        if not (workspace.adopt(head, head) and workspace.adopt(head, signed, at=head)):
            return RetryLater("the agent has checked out another commit or moved the branch")
        observed = Observation(
            session=session.id, run=session.run, work=replace(session.work, head=signed)
        )
        return Withdrawn(f"its commits are signed now: {signed}", observed)

    def _identified(self, session: Session) -> Mirror:
        """Look up the repository's current name on GitHub, by its ID if known; return its mirror.

        A push is addressed to a name, and after a rename another repository may have taken the old
        name. This is needed before the bot's first push and after a refused push. At every other
        push, git itself checks that the branch is still at the commit that the bot pushed last.
        """
        identity = self.github.read.identity(session.repository)
        self.github.aliases[session.repository] = identity
        return self.locations.mirror(session.project)

    def _push(
        self,
        session: Session,
        mirror: Mirror,
        head: str,
        pushed: Mapping[str, datetime],
        check: FinalCheck,
    ) -> ActionResult:
        #: The commit that the bot pushed last or adopted. If empty, the branch must not exist.
        adopted = session.work.base if session.origin is Origin.PULL else ""
        last = max(pushed, key=pushed.__getitem__, default=adopted)
        try:
            mirror.push(head, session.branch, expected=last)
        except PushRefused as refused:
            # The branch may be at a push that a crash left unmarked, or at a person's commit that
            # the agent has merged. Commits that are ancestors of `head` are not lost by a push.
            mirror = self._identified(session)
            mirror.refresh()
            # A branch that was deleted before it had a pull request is created again.
            there = mirror.head_of(session.branch) or ""
            contained = mirror.is_ancestor(there, head) if there else not session.pulls
            if not refused.moved or not contained:
                raise
            if there and not pushed and mirror.is_ancestor(there, session.work.base):
                why = messages.push_refused(messages.foreign_branch(session.branch))
                return Rejected(why, Reason.PUSH_REFUSED)
            if stopped := check():
                return stopped
            mirror.push(head, session.branch, expected=there)
        changed = touched(mirror, _base(session, mirror), "", head, ["*"])
        self.add_paths(session.id, changed[:_MOST_PATHS])
        known = [pull.number for pull in session.pulls if pull.state is PullState.OPEN]
        return Completed(
            result=head, refreshes=tuple(refresh(session, f"pull:{number}") for number in known)
        )

    def _refusal(
        self, session: Session, mirror: Mirror, publish: actions.Publish
    ) -> Rejected | None:
        """Return why these commits must not be pushed, or None if they may be.

        A person can waive only `PROTECTED_PATHS` and `COMMITS_HELD`, with the command `allow`.
        """
        head = publish.head
        if session.origin is Origin.PULL and not mirror.is_ancestor(session.work.base, head):
            why = messages.rewritten(session.work.base)
            return Rejected(why, Reason.PUSH_REFUSED)
        commits = mirror.commits(head)
        if encoding := foreign_encoding(commits):
            why = f"commit messages must be in UTF-8, but {encoding}"
            return Rejected(why, Reason.COMMIT_MESSAGES)
        if skips := skips_checks(mirror, head):
            why = f"the message of {head[:7]} keeps checks from running: {skips}"
            return Rejected(why, Reason.COMMIT_MESSAGES)
        if closing := closing_others(commits, session.issue.number):
            why = f"once merged, the messages of {closing} would close other issues"
            return Rejected(why, Reason.COMMIT_MESSAGES)
        try:
            found = holds(mirror, commits, self.redact.finds)
        except PatchTooLarge as large:
            why = (
                f"the commits change more than {large.megabytes} MB of text, too much to search for"
                " secrets; leave large generated files out of them"
            )
            return Rejected(why, Reason.PUSH_REFUSED)
        if found:
            why = (
                "the commits contain a key, token or password of Mergewright's server; have the"
                " agent remove it from every commit"
            )
            return Rejected(why, Reason.PUSH_REFUSED)
        there = mirror.head_of(session.branch) or ""
        changed = touched(mirror, _base(session, mirror), there, head, publish.protected)
        if changed:
            more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
            return Rejected(", ".join(changed[:_MOST_NAMED]) + more, Reason.PROTECTED_PATHS)
        us = self.signer.email if publish.sign and self.signer else EMAIL
        if not publish.checked:
            return None
        why = _held(mirror, commits, _base(session, mirror), there, publish, us)
        return Rejected(why, Reason.COMMITS_HELD) if why else None

    def open_pull(
        self, session: Session, head: str, draft: bool, check: FinalCheck, *, first: bool = False
    ) -> ActionResult:
        """Open a pull request for the pushed branch, with the repository's template.

        `first` says that no earlier attempt can have opened one, so GitHub is not searched for it.
        """
        project, mirror = (
            self.locations.projects[session.project],
            made(self.locations.mirror(session.project)),
        )
        base = project.base_branch or self.github.read.default_branch(session.repository)
        commits = mirror.commits(head, session.work.base)
        subjects, issue = [commit.subject for commit in commits], session.issue
        title, text = self._handed_over(session)
        owner = f"{project.fork.partition('/')[0]}:" if project.push_to == "fork" else ""
        if stopped := check():
            return stopped
        number = self.github.write.open_pull(
            session.repository,
            f"{owner}{session.branch}",
            base,
            messages.pull_title(
                project.pull_title,
                session.id.removeprefix(f"{session.project}-"),
                issue.title,
                [title] if title else subjects,
            ),
            messages.pull_body(
                issue.number,
                session.agent_type,
                session.requester,
                text or session.agent.summary,
                subjects,
                mirror.pull_template(session.work.base),
            ),
            draft,
            self._pushes(session.id),
            first=first,
        )
        self.github.write.label(session.repository, number, *project.pull_labels)
        return Completed(result=str(number), refreshes=(refresh(session, f"pull:{number}"),))

    def _handed_over(self, session: Session) -> tuple[str, str]:
        """Return the title and text that the agent wrote for its pull request, or empty strings."""
        run = self.locations.run_of(session)
        text = self.locations.host.records.handover(run).summary
        summary = printable(visible(text[:_MOST_OF_SUMMARY]))
        title, _, rest = summary.strip().partition("\n")
        return title.strip("# \t"), rest.strip()

    def _pushes(self, session: str) -> dict[str, datetime]:
        """Return the head commit of each push by the bot to the session's branch, and its time."""
        done = self.facts.get(session).done.items()
        return {key.cause[0]: one.at for key, one in done if key.kind is KeyKind.PUSH}


def _held(
    mirror: Mirror,
    commits: Sequence[Commit],
    base: str,
    there: str,
    publish: actions.Publish,
    us: str,
) -> str:
    """Return why a person should see these commits before a push; empty if nothing is wrong.

    `base` is the commit with which the pull request is compared. `there` is the commit of the
    branch on GitHub; it is empty if GitHub has no such branch. `us` is the email of the bot as a
    committer.
    """
    head, most = publish.head, publish.max_file_mb

    def is_ours(email: str) -> bool:
        return email == EMAIL or any(fnmatchcase(email, one) for one in publish.commit_authors)

    large = held_commits.large_files(mirror, head, most) if most else []
    foreign = held_commits.foreign_commits(commits, is_ours, us)
    removed = held_commits.removed_commits(mirror, there, head, base, is_ours, us) if there else []
    # Large files are not read.
    places = [] if large else held_commits.suspicious_places(mirror, commits, looks_like_secret)
    return messages.held_commits(
        large=[(one.path, one.size) for one in large],
        foreign=[(one.sha, one.email) for one in foreign],
        removed=[(one.sha, one.email) for one in removed],
        suspicious=[(one.sha, one.path) for one in places],
    )


def made(mirror: Mirror) -> Mirror:
    """Return the mirror; fetch it first if its folder is missing, as after restoring a backup."""
    if not mirror.path.is_dir():
        mirror.refresh()
    return mirror


def _base(session: Session, mirror: Mirror) -> str:
    """Return the tip of the open pull request's base branch, or else the session's base commit."""
    onto = [pull.base_branch for pull in session.pulls if pull.state is PullState.OPEN]
    return (mirror.head_of(onto[0]) if onto else None) or session.work.base


def closing_others(commits: Iterable[Commit], issue: int) -> str:
    """Return the commits whose messages would close issues other than `issue` once merged.

    The commits are abbreviated to 7 digits and joined by commas, 20 at most; empty if there are
    none. See
    https://docs.github.com/en/issues/tracking-your-work-with-issues/linking-a-pull-request-to-an-issue
    """
    found = [c.sha[:7] for c in commits if messages.closes_others(f"{c.subject}\n{c.body}", issue)]
    return ", ".join(found[:20])


def refresh(session: Session, subject: str) -> RefreshRequest:
    """Return a request to refresh `subject`: `branch:NAME`, `issue:NUMBER` or `pull:NUMBER`."""
    return RefreshRequest(repository=session.repository, subject=subject)
