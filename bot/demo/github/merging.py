"""Checks whether a pull request may be merged, and makes the commits of merges."""

from dataclasses import dataclass

from bot.demo.github.git import Conflict
from bot.demo.github.reviews import Proposal


class Refused(Exception):
    """GitHub does not merge. The message is GitHub's own."""


@dataclass(kw_only=True)
class AcceptedMerge:
    """An accepted background merge and its result."""

    uuid: str
    by: str
    sha: str
    method: str
    title: str | None = None
    message: str | None = None
    merged: str = ""  #: The commit that the merge made; if empty, none yet.
    failed: str = ""  #: Why the merge failed; if empty, it did not.


def mergeable(pull: Proposal) -> bool:
    try:
        pull.repo.git.merge_tree(pull.base_tip, pull.head)
    except Conflict:
        return False
    return True


def behind(pull: Proposal) -> bool:
    return not pull.repo.git.contains(pull.head, pull.base_tip)


def unmet(pull: Proposal) -> list[str]:
    """Return GitHub's sentences about the checks and reviews that are required but missing."""
    rules = pull.protection
    if rules is None:
        return []
    outcomes = pull.repo.checks.outcomes(pull.head)
    states = {
        "pending": "is pending",
        "failure": "is failing",
        "missing": "is expected",
    }
    found = [
        f'Required status check "{name}" {states[outcome]}.'
        for name in rules.required_checks
        if (outcome := outcomes.get(name, "missing")) != "success"
    ]
    if pull.review_decision == "CHANGES_REQUESTED":
        found.append("Changes have been requested.")
    if pull.review_decision == "REVIEW_REQUIRED":
        found.append(
            f"At least {rules.required_reviews} approving review is required "
            "by reviewers with write access."
        )
    return found


def state(pull: Proposal) -> str:
    """Return GitHub's merge state. If several apply, returns the worst."""
    if pull.state != "open":
        return "UNKNOWN"
    if not mergeable(pull):
        return "DIRTY"
    if pull.draft:
        return "DRAFT"
    if unmet(pull):
        return "BLOCKED"
    if pull.protection and pull.protection.strict and behind(pull):
        return "BEHIND"
    outcomes = pull.repo.checks.outcomes(pull.head).values()
    return "CLEAN" if all(outcome == "success" for outcome in outcomes) else "UNSTABLE"


def check(pull: Proposal, method: str) -> None:
    """Raise `Refused` with GitHub's sentence if a merge is not allowed now; ignores conflicts."""
    if method not in pull.repo.merge_methods:
        name = {"merge": "Merge commits", "squash": "Squash merges", "rebase": "Rebase merges"}
        raise Refused(f"{name[method]} are not allowed on this repository.")
    if pull.state != "open":
        raise Refused("Pull Request is not mergeable")
    if pull.draft:
        raise Refused("Pull Request is still a draft")
    if reasons := unmet(pull):
        raise Refused(" ".join(reasons))
    if pull.protection and pull.protection.queue:
        raise Refused("Changes must be made through the merge queue")
    if pull.protection and pull.protection.strict and behind(pull):
        raise Refused("Head branch is out of date. Review and try the merge again.")


def merge_commit(
    pull: Proposal, by: str, method: str, title: str | None, message: str | None
) -> str:
    """Make the commits of a merge, and return the last one; moves no branch.

    Without a `title`, the commit has GitHub's default title. With the method `rebase`, the commits
    keep their messages. Raises `git.Conflict`.
    """
    git, base = pull.repo.git, pull.base_tip
    person, committer = pull.world.account(by).signature, pull.world.web_flow.signature
    if method == "rebase":
        return git.replay(base, base, pull.head, committer)
    tree = git.merge_tree(base, pull.head)
    if method == "squash":
        text = _text(title or f"{pull.title} (#{pull.number})", message)
        return git.commit_tree(tree, (base,), text, pull.user.signature, committer)
    source = f"{pull.source.owner.login}/{pull.head_branch}"
    title = title or f"Merge pull request #{pull.number} from {source}"
    text = _text(title, pull.title if message is None else message)
    return git.commit_tree(tree, (base, pull.head), text, person, committer)


def queue_commit(pull: Proposal, by: str) -> str:
    """Make and return the commit that the merge queue tests. Raises `Refused`."""
    rules = pull.protection
    if rules is None or not rules.queue:
        raise Refused("The merge queue is not enabled")
    if pull.state != "open" or pull.draft:
        raise Refused("Pull request is not mergeable")
    if reasons := unmet(pull):
        raise Refused(" ".join(reasons))
    try:
        return merge_commit(pull, by, "squash", None, None)
    except Conflict as conflict:
        raise Refused("Pull request has conflicts with its base") from conflict


def update_commit(pull: Proposal, by: str) -> str:
    """Make and return the commit that merges the base into the head. Raises `Refused`."""
    git, base = pull.repo.git, pull.base_tip
    if not behind(pull):
        raise Refused("There are no new commits on the base branch.")
    try:
        tree = git.merge_tree(pull.head, base)
    except Conflict as conflict:
        raise Refused("merge conflict between base and head") from conflict
    text = f"Merge branch '{pull.base_branch}' into {pull.head_branch}"
    person = pull.world.account(by).signature
    return git.commit_tree(tree, (pull.head, base), text, person, pull.world.web_flow.signature)


def _text(title: str, message: str | None) -> str:
    return f"{title}\n\n{message}" if message else title
