"""A commit is not pushed if its encoding makes git show its message as empty."""

from lifecycle.model.status import Reason
from tests.act.test_runs import refuses_to_publish
from tests.harness.site import Site, git


def test_a_commit_message_that_git_does_not_show_is_not_pushed(site: Site) -> None:
    site.starts()
    site.commits("a")
    named = ("-c", "i18n.commitEncoding=IBM037")
    git(site.workspace.path, *named, "commit", "--quiet", "--allow-empty", "-m", "Mend [skip ci]")
    refusal = refuses_to_publish(site)
    assert "declares the message encoding IBM037" in refusal.why
    assert refusal.reason is Reason.COMMIT_MESSAGES
