"""Commits with more text than can be searched for secrets."""

import pytest

from lifecycle.model.status import Reason
from tests.act.test_runs import refuses_to_publish
from tests.harness.site import Site


@pytest.mark.parametrize("limited_in_time", [True, False])
def test_more_text_than_can_be_searched_for_secrets_is_not_pushed(
    site: Site, monkeypatch: pytest.MonkeyPatch, limited_in_time: bool
) -> None:
    if not limited_in_time:  # Git has written all of it before.
        monkeypatch.setattr("resource.prlimit", lambda *_: None)
    monkeypatch.setattr("runtimes.workspaces.push_checks._PATCH_BYTES", 10)
    site.starts()
    site.commits("a")
    refusal = refuses_to_publish(site)
    assert "too much to search for secrets" in refusal.why
    assert refusal.reason is Reason.PUSH_REFUSED
