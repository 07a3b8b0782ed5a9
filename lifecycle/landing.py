"""What is done about the work: pushed, opened as a pull request, merged, tidied up after."""

from collections.abc import Iterator

from lifecycle import actions as do
from lifecycle.messages import Judged
from lifecycle.policy import Mode


def publish(judged: Judged) -> Iterator[do.Action]:
    """Commits go to GitHub at the end of a turn."""
    head = judged.view.facts.work.head
    yield do.Publish(key=f"push:{head}", head=head)


def open_pull(judged: Judged) -> Iterator[do.Action]:
    """What was pushed becomes a pull request."""
    view, facts = judged.view, judged.view.facts
    if view.pushed:
        yield do.OpenPull(key=f"pull:{facts.branch}", head=facts.work.head, draft=view.policy.draft)


def land(judged: Judged) -> Iterator[do.Action]:
    """Merge by policy or by a person's word, at the judged commit; otherwise say it is ready."""
    view, pull = judged.view, judged.view.pull
    if pull is None:
        return
    wish = view.wish("merge")
    asked = wish is not None and wish.head == pull.head
    if view.policy.mode is Mode.MERGE or asked:
        yield do.MergePull(
            key=f"merge:{pull.head}",
            number=pull.number,
            sha=pull.head,
            method=view.policy.merge_method,
        )
    else:
        yield do.Comment(
            key=f"comment:ready:{pull.head}",
            number=pull.number,
            topic="ready",
            values={"sha": pull.head},
        )


def tidy(judged: Judged) -> Iterator[do.Action]:
    """After the merge: the branch goes by policy, and the issue is closed if GitHub did not."""
    view, pull, policy = judged.view, judged.view.pull, judged.view.policy
    if pull is None:
        return
    if policy.delete_branch:
        key = f"branch:{view.facts.branch}"
        yield do.DeleteBranch(key=key, branch=view.facts.branch, sha=pull.head)
    if policy.close_issue:
        yield do.CloseIssue(key="issue:close", number=view.facts.issue.number)
