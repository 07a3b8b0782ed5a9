"""What a session's terminal shows and what its branch changes, from its host."""

import pytest

from bot.show.changes import NoChanges
from bot.show.terminal import Terminal, terminal
from bot.store import Observation
from bot.system.redaction import Redaction
from lifecycle.model.facts import Pull
from runtimes.base import Unavailable
from tests.harness.site import Site

SECRET = "s3cret-of-the-agent"


def shown(site: Site) -> Terminal:
    return terminal(site.scenario.store, site.locations, Redaction([SECRET]))


def paths(site: Site) -> list[str]:
    return [file.path for file in shown(site).changes(site.id).files]


def test_commits_that_are_not_pushed_are_shown_from_the_workspace(site: Site) -> None:
    site.starts()
    head = site.commits("new.txt")
    found = shown(site).changes(site.id)
    assert (found.head, found.base, [file.path for file in found.files]) == (
        head,
        site.session.work.base,
        ["new.txt"],
    )


def test_pushed_commits_are_shown_once_the_workspace_is_gone(site: Site) -> None:
    site.starts()
    site.commits("new.txt")
    site.locations.mirror("widgets").take(site.workspace)
    site.workspace.remove()
    assert paths(site) == ["new.txt"]


def test_commits_of_the_base_branch_are_not_changes(site: Site) -> None:
    site.starts()
    head = site.commits("new.txt")
    mirror = site.locations.mirror("widgets")
    mirror.take(site.workspace)
    unknown = Pull(number=34, head=head, base="c" * 40)
    seen = Observation(session=site.id, pulls=(unknown,))
    site.scenario.store.observations.record([seen], site.scenario.clock())
    assert paths(site) == ["new.txt"]


def test_a_secret_in_a_commit_is_masked(site: Site) -> None:
    site.starts()
    site.commits(SECRET)
    (file,) = shown(site).changes(site.id).files
    text = "".join(token.text for line in file.lines for token in line.tokens)
    assert text
    assert SECRET not in text + file.path


def test_without_commits_there_are_no_changes(site: Site) -> None:
    with pytest.raises(NoChanges, match="no commits yet"):
        shown(site).changes(site.id)
    with pytest.raises(NoChanges, match="no session"):
        shown(site).changes("nope")


def test_a_removed_project_has_no_changes_to_show(site: Site) -> None:
    site.starts()
    site.commits("new.txt")
    projects = site.locations.projects
    assert isinstance(projects, dict)
    projects.pop("widgets")
    with pytest.raises(NoChanges, match="project widgets is no longer configured"):
        shown(site).changes(site.id)


def test_commits_that_are_gone_are_no_error(site: Site) -> None:
    site.starts()
    site.commits("new.txt")
    site.workspace.remove()
    with pytest.raises(NoChanges, match="cannot be read"):
        shown(site).changes(site.id)


def test_a_screen_is_shown_without_secrets_while_the_session_lasts(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(site).screen(site.id) == ""
    site.starts()
    screens = {f"{site.id}_r1": f"\x1b[31m{SECRET}\x1b[0m"}
    monkeypatch.setattr(site.runtime, "screens", lambda names, coloured: screens)
    assert shown(site).screen(site.id) == "\x1b[31m[secret]\x1b[0m"
    site.ends()
    assert shown(site).screen(site.id) == ""
    assert shown(site).screen("nope") == ""


def test_a_runtime_that_does_not_answer_shows_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(names: object, *, coloured: bool) -> None:
        raise Unavailable("no tmux")

    site.starts()
    monkeypatch.setattr(site.runtime, "screens", fails)
    assert shown(site).screen(site.id) == ""
