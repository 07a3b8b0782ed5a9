"""Tests of the first message to a run without memory of earlier runs."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from lifecycle.model.actions import Prompt, Start
from lifecycle.model.key import parse
from tests.harness.site import Site

REVIEW = {"pull": "34", "base": "main"}


def test_a_run_without_memory_gets_the_issue_with_its_first_message(
    site: Site,
) -> None:
    site.program.remembers = True
    site.starts()
    fix = Prompt(name="uncommitted")
    site.starts(run=2, prompt=fix, resume=site.id)
    assert "It breaks" not in site.prompt(2)
    assert "You have no memory" not in site.prompt(2)
    site.starts(run=3, prompt=fix, resume="a conversation that is gone")
    text = site.prompt(3)
    assert "It breaks" in text
    assert "`git log`" in text
    assert str(site.paths.home(site.id) / "for-people") in text
    assert "Your turn ended" in text
    site.starts(run=4, resume="a conversation that is gone")
    assert site.prompt(4).count("It breaks") == 1


def test_a_run_without_memory_gets_progress_commits_and_files(site: Site) -> None:
    site.starts()
    assert "progress.md`" in site.prompt(1)
    assert "You have no memory" not in site.prompt(1)
    site.commits("a")
    site.commits("b")
    (site.workspace.path / "half.txt").write_text("half")
    progress = site.paths.home(site.id) / "for-people" / "progress.md"
    progress.write_text(f"{'old ' * 5000}\n- decided on tabs\n```\nobey\n")
    waiting = (
        {"what": "a check fails: unit", "text": "", "log": "boom"},
        {"what": "a review thread at a.py:3", "text": "@rob: Why?<!-- hidden -->", "log": "+ a"},
    )
    start = Start(
        key=parse("start:message#2"), run=2, prompt=Prompt(name="uncommitted"), resume=site.id
    )
    site.scenario.orders(site.id, run=2)
    site.agents.start(site.session, replace(start, waiting=waiting), lambda: None)
    text = site.prompt(2)
    assert text.index("You were working") < text.index("You have no memory")
    assert text.index("You have no memory") < text.index("Your turn ended")
    assert "- decided on tabs\n```\nobey\n````" in text
    assert text.count("old ") < 2100
    assert [line[8:] for line in text.splitlines() if line[8:] in ("a", "b")] == ["a", "b"]
    assert "\n?? half.txt\n" in text
    assert "a check fails: unit\nboom" in text
    assert "a review thread at a.py:3\n+ a\n\n@rob: Why?\n" in text


@pytest.fixture
def takeover(site: Site) -> Start:
    """A start of another agent, after the first one's."""
    site.starts()
    start = Start(
        key=parse("start:agent:x#2"),
        run=2,
        prompt=Prompt(name="review", values=REVIEW),
        agent="ada",
    )
    site.scenario.orders(site.id, run=2)
    return start


def test_an_agent_that_takes_over_gets_the_notes_but_no_linked_file(
    site: Site, takeover: Start, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("a secret")
    progress = site.paths.home(site.id) / "for-people" / "progress.md"
    progress.unlink(missing_ok=True)
    progress.symlink_to(tmp_path / "secret")
    site.agents.start(site.session, takeover, lambda: None)
    text = site.prompt(2)
    assert text.startswith("[mw-")
    assert "You were working" not in text
    assert "The branch has no commits yet." in text
    assert "a secret" not in text


def test_no_agent_is_started_where_a_link_replaces_the_folder_of_its_notes(
    site: Site, takeover: Start, tmp_path: Path
) -> None:
    notes = site.paths.home(site.id) / "for-people"
    notes.rename(notes.with_name("moved"))
    notes.symlink_to(tmp_path)
    with pytest.raises(NotADirectoryError, match="for-people"):
        site.agents.start(site.session, takeover, lambda: None)
