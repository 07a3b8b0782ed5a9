"""Says which approvals of a pull request count, and why others do not."""

from lifecycle.model.facts import Pull, Verdict
from lifecycle.model.policy import Policy


def fault(approval: Verdict, pull: Pull, requester: str, policy: Policy) -> str:
    """Return why an approval does not count, such as "requested this work"; empty if it counts.

    The phrase is to be put after "who".

    https://docs.github.com/en/repositories/configuring-branches-and-merges-in-your-repository/managing-protected-branches/about-protected-branches#require-pull-request-reviews-before-merging
    """
    if not approval.allowed:
        return "is not listed in `bots`" if approval.bot else "has no write access"
    if approval.author == requester:
        return "requested this work"
    if approval.author in pull.contributors and not policy.contributors_approve:
        return "pushed commits to the branch"
    if approval.sha != pull.head and approval.sha not in pull.carried:
        return "approved an earlier commit"
    return "" if approval.for_base else "approved it for another base branch"
