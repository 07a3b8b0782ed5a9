"""Runs are started, continued after losses, handed over and stopped; workspaces are removed."""

import shutil
from datetime import UTC, datetime
from unittest.mock import MagicMock, Mock

import pytest

from bot.act.results import ActionResult, Completed, Rejected, RetryLater
from bot.act.runs import AgentRuns
from bot.github.errors import NotInstalled, Refused, TryLater
from bot.store import Observation, Session
from bot.system.redaction import Redaction
from lifecycle.judge.capacity import Caps
from lifecycle.model.actions import Prompt, Publish, Start
from lifecycle.model.facts import Pull
from lifecycle.model.key import parse
from lifecycle.model.status import PullState, Reason
from runtimes.host import run_name
from runtimes.workspaces.git import GitFailure
from tests.harness.site import Site, git

SECRET = "hunter2-of-the-agent"
REDACT = Redaction([SECRET])


def test_a_deleted_worktree_is_restored_from_the_fetched_commits(site: Site) -> None:
    site.starts()
    head = site.commits("a")
    site.locations.mirror("widgets").take(site.workspace)
    shutil.rmtree(site.workspace.place)
    site.starts(run=2)
    assert site.workspace.head() == head
    assert (site.workspace.path / "a").exists()


@pytest.mark.parametrize("outside", [True, False])
def test_only_an_agent_that_can_write_outside_its_workspace_gets_the_path_of_the_summary_file(
    site: Site, outside: bool
) -> None:
    site.program.writes_outside = outside
    site.starts()
    files = site.files
    assert (str(files.summary) in files.prompt.read_text()) is outside


def test_a_released_worktree_is_restored_from_its_preserved_work(site: Site) -> None:
    site.starts()
    head = site.commits("a")
    (site.workspace.path / "b").write_text("not committed")
    kept = site.agents.release(site.session, 1)
    assert isinstance(kept, Completed)
    assert kept.result.startswith("kept ")
    assert not site.workspace.place.exists()
    site.starts(run=2)
    assert site.workspace.head() == head
    assert (site.workspace.path / "b").read_text() == "not committed"


def test_a_workspace_that_another_bot_made_during_a_late_release_stays(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bot was suspended in the release; another released and restored the session meanwhile."""
    site.starts()

    def another_acts(session: Session) -> None:
        monkeypatch.undo()
        site.agents.release(session, 1)
        site.starts(run=2)
        (site.workspace.path / "b").write_text("not committed")

    monkeypatch.setattr(site.archive, "keep", another_acts)
    site.agents.release(site.session, 1)
    assert (site.workspace.path / "b").exists()
    assert site.files.dir.parent.exists()


def test_a_deleted_git_directory_loses_no_files(site: Site) -> None:
    site.starts()
    site.commits("a")
    shutil.rmtree(site.workspace.repository)
    site.starts(run=2)
    assert (site.workspace.path / "a").exists()


@pytest.mark.parametrize("missing", ["repository.git/refs/heads/{branch}", "made"])
def test_the_workspace_of_a_run_whose_start_was_not_recorded_is_not_made_again(
    site: Site, missing: str
) -> None:
    """The bot was killed right after the start; the agent renames its branch meanwhile."""
    site.starts()
    steers = site.workspace.path / "CLAUDE.md"
    steers.write_text("not committed")
    made = site.workspace.path.stat().st_ino
    (site.workspace.place / missing.format(branch=site.session.branch)).unlink()
    site.starts()
    assert (site.workspace.path.stat().st_ino, steers.exists()) == (made, True)


def test_a_restore_without_branch_workspace_or_preserved_work_is_rejected(
    site: Site,
) -> None:
    site.starts()
    site.commits("a")
    shutil.rmtree(site.workspace.place)
    refusal = site.tries_to_start(run=2)
    assert isinstance(refusal, Rejected)
    assert "branch mergewright/12-it-breaks is not on GitHub" in refusal.why
    assert "no work" in refusal.why
    assert refusal.reason is Reason.BRANCH_GONE


def test_a_session_without_commits_starts_from_the_base(site: Site) -> None:
    site.starts()
    shutil.rmtree(site.workspace.place)
    site.starts(run=2)
    assert site.workspace.made


def publishes(site: Site) -> str:
    """Push the agent's commits."""
    result = tries_to_publish(site)
    assert isinstance(result, Completed), result
    return result.result


def refuses_to_publish(site: Site) -> Rejected:
    result = tries_to_publish(site)
    assert isinstance(result, Rejected), result
    return result


def tries_to_publish(site: Site) -> ActionResult:
    # Only the repository's name is requested.
    act = site.dispatcher(MagicMock(), redact=REDACT)
    head = site.workspace.head() or ""
    site.scenario.orders(
        site.id, Publish(key=parse(f"push:{head}"), head=head), run=site.session.run
    )
    (due,) = site.scenario.store.outbox.due(site.scenario.clock())
    outcome = act.do(due, lambda: None)
    if isinstance(outcome, Completed):
        site.scenario.store.outbox.mark_done(due.seq, outcome.result, site.scenario.clock())
    site.scenario.clock.passes(1)
    return outcome


def test_a_branch_deleted_on_github_is_pushed_again_after_a_restore(site: Site) -> None:
    site.starts()
    site.commits("a")
    first = publishes(site)
    git(site.github, "branch", "-D", site.session.branch)
    shutil.rmtree(site.workspace.place)
    site.starts(run=2)
    assert site.workspace.head() == first
    site.commits("b")
    second = publishes(site)
    assert git(site.github, "rev-parse", site.session.branch) == second


def test_a_branch_deleted_with_its_pull_request_is_not_pushed_again(site: Site) -> None:
    site.starts()
    site.commits("a")
    first = publishes(site)
    pull = Pull(number=34, head=first, branch=site.session.branch, state=PullState.CLOSED)
    site.scenario.store.observations.record(
        [Observation(session=site.id, pulls=(pull,))], site.scenario.clock()
    )
    git(site.github, "branch", "-D", site.session.branch)
    site.commits("b")
    assert "stale info" in refuses_to_publish(site).why


def test_a_secret_is_not_pushed_even_if_a_later_commit_removes_it(site: Site) -> None:
    site.starts()
    site.commits("a")
    publishes(site)
    file = site.workspace.path / "b"
    file.write_text(f"key = {SECRET}\n")
    git(site.workspace.path, "add", "b")
    git(site.workspace.path, "commit", "--quiet", "-m", "Add a key")
    git(site.workspace.path, "rm", "--quiet", "b")
    site.commits("c")
    refusal = refuses_to_publish(site)
    assert "a key, token or password of Mergewright's server" in refusal.why
    assert refusal.reason is Reason.PUSH_REFUSED
    assert SECRET not in refusal.why


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("Mend\n\nFixes #9", "would close other issues"),
        ("Mend, closes acme/other#12", "would close other issues"),
        ("Mend [skip ci]", "keeps checks from running"),
    ],
)
def test_a_commit_message_with_effects_on_github_is_not_pushed(
    site: Site, message: str, why: str
) -> None:
    site.starts()
    site.commits("a")
    git(site.workspace.path, "commit", "--quiet", "--amend", "-m", message)
    refusal = refuses_to_publish(site)
    assert why in refusal.why
    assert refusal.reason is Reason.COMMIT_MESSAGES
    assert (site.workspace.head() or "?")[:7] in refusal.why


def test_commit_messages_of_the_base_and_of_pushed_commits_do_not_block_a_push(site: Site) -> None:
    site.starts()
    site.commits("a")
    first = publishes(site)
    tree = git(site.github, "rev-parse", "main^{tree}")
    theirs = git(site.github, "commit-tree", tree, "-p", "main", "-m", "Fixes #9")
    git(site.github, "update-ref", "refs/heads/main", theirs)
    ours = git(site.github, "commit-tree", f"{first}^{{tree}}", "-p", first, "-m", "Closes #8")
    git(site.github, "update-ref", f"refs/heads/{site.session.branch}", ours)
    site.locations.mirror("widgets").refresh()
    for name in ("main", site.session.branch):
        git(site.workspace.path, "fetch", "--quiet", "origin", name)
        git(site.workspace.path, "merge", "--quiet", "--no-edit", "FETCH_HEAD")
    assert publishes(site) == git(site.github, "rev-parse", site.session.branch)


def test_the_last_output_is_archived_at_the_stop_and_compressed_at_the_release(site: Site) -> None:
    site.starts()
    home = site.paths.home(site.id)
    (home / "notes").write_text("kept by nobody")
    log = site.paths.run(site.id, 1) / "output.log"
    log.write_text("last words\n")
    site.agents.stop(site.session, 1)
    copy = site.paths.archive / site.id / log.parent.name / "output.log"
    assert copy.read_text() == "last words\n"
    site.agents.release(site.session, 1)
    assert not home.exists()
    assert not copy.exists()
    assert copy.with_name("output.log.gz").exists()


def test_a_new_run_finds_the_conversation_of_a_lost_home(site: Site) -> None:
    site.starts()
    conversation = site.paths.archive / site.id / site.paths.home(site.id).name / ".talk.jsonl"
    conversation.parent.mkdir(parents=True)
    conversation.write_text("said\n")
    site.starts(run=2)
    assert (site.paths.home(site.id) / ".talk.jsonl").read_text() == "said\n"


def test_a_new_run_finds_no_instruction_files_of_the_run_before_it(site: Site) -> None:
    site.starts()
    orders = site.workspace.path / "CLAUDE.md"
    orders.write_text("obey")
    site.commits("a")
    site.starts(run=2)
    assert not orders.exists()
    assert "CLAUDE.md" not in site.prompt(2)
    orders.write_text("obey")
    git(site.workspace.path, "add", "CLAUDE.md")
    site.commits("b")
    site.starts(run=3)
    assert not orders.exists()
    assert "as they are on the base branch" in site.prompt(3)
    assert "CLAUDE.md. Leave them out" in site.prompt(3)


def test_a_program_gets_the_system_prompt_of_its_agent(site: Site) -> None:
    assert site.system_prompt_of_next_run() == ""
    site.scenario.store.db.write(
        lambda connection: connection.execute("UPDATE sessions SET agent_name = 'ada'")
    )
    assert site.system_prompt_of_next_run() == "Be kind."


def test_an_agent_that_takes_over_starts_with_its_own_prompt_after_the_old_program_ended(
    site: Site,
) -> None:
    site.starts()
    assert site.session.agent_name != "ada"
    log = site.paths.run(site.id, 1) / "output.log"
    log.write_text("last words\n")
    start = Start(key=parse("start:agent:x#2"), run=2, prompt=Prompt(name="take_over"), agent="ada")
    site.scenario.orders(site.id, run=2)
    site.agents.start(site.session, start, lambda: None)
    assert site.session.agent_name == "ada"
    assert site.program.run_limits.system == "Be kind."
    assert site.program.run_limits.tools == ("read",)
    assert set(site.runtime.look()) == {run_name(site.id, 2)}
    copy = site.paths.archive / site.id / log.parent.name / "output.log"
    assert copy.read_text() == "last words\n"


def test_a_busy_agent_takes_over_later_and_the_other_keeps_working(
    site: Site,
) -> None:
    store, now = site.scenario.store, site.scenario.clock()
    store.agents.assign(site.scenario.session(13), "ada", "shell", 1)
    store.slots.assign(Caps(sessions=0))
    site.starts()
    start = Start(key=parse("start:agent:x#2"), run=2, prompt=Prompt(name="take_over"), agent="ada")
    site.scenario.orders(site.id, run=2)
    full = site.agents.start(site.session, start, lambda: None)
    assert isinstance(full, RetryLater)
    assert "the agent ada has no free session slot" in full.why
    assert full.at
    assert full.at > now
    assert site.session.agent_name != "ada"
    assert set(site.runtime.look()) == {run_name(site.id, 1)}


def test_an_agent_that_is_not_configured_any_more_does_not_take_over(site: Site) -> None:
    start = Start(key=parse("start:agent:x#1"), run=1, prompt=Prompt(name="start"), agent="eve")
    site.scenario.orders(site.id, start)
    (due,) = site.scenario.store.outbox.due(site.scenario.clock())
    refusal = site.dispatcher().do(due, lambda: None)
    assert isinstance(refusal, Rejected)
    assert "[agents.eve] is no longer configured" in refusal.why


SUSPENDED = NotInstalled("It is suspended.", datetime(2030, 1, 2, 4, tzinfo=UTC))


@pytest.mark.parametrize(
    ("words", "github", "says", "outage"),
    [
        ("Could not resolve host: github.com", TryLater("down"), "could not resolve", True),
        ("not a tree", None, "not a tree", False),
        ("not granted: 403", Refused("It is gone.", 404), "not granted", False),
        ("not granted: 403", SUSPENDED, "suspended", True),
    ],
)
def test_failures_of_git_are_retried_as_an_outage_or_as_a_failed_start(
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    github: Exception | None,
    says: str,
    outage: bool,
) -> None:
    def fails(*_: object) -> None:
        raise GitFailure("fetch", "the mirror", words)

    asked = Mock()
    asked.read.repository.side_effect = github
    monkeypatch.setattr(AgentRuns, "start", fails)
    site.scenario.orders(
        site.id, Start(key=parse("start:first#1"), run=1, prompt=Prompt(name="start"))
    )
    (due,) = site.scenario.store.outbox.due(site.scenario.clock())
    later = site.dispatcher(asked).do(due, lambda: None)
    assert isinstance(later, RetryLater)
    assert says in later.why.lower()
    assert later.outage is outage
    assert later.at == (SUSPENDED.at if github is SUSPENDED else None)


def test_a_branch_that_somebody_else_pushed_before_is_not_used(site: Site) -> None:
    main = git(site.github, "rev-parse", "main")
    git(site.github, "update-ref", f"refs/heads/{site.session.branch}", main)
    refusal = site.tries_to_start()
    assert isinstance(refusal, Rejected)
    assert "already exists on GitHub and was not created by Mergewright" in refusal.why
    assert not site.workspace.made


def test_a_branch_that_the_bot_pushed_is_continued(site: Site) -> None:
    site.starts()
    site.commits("a")
    first = publishes(site)
    shutil.rmtree(site.workspace.place)
    shutil.rmtree(site.locations.mirror("widgets").path)
    site.starts(run=2)
    assert site.workspace.head() == first


def test_a_branch_that_somebody_else_pushed_meanwhile_is_not_overwritten(site: Site) -> None:
    site.starts()
    site.commits("a")
    main, branch = git(site.github, "rev-parse", "main"), site.session.branch
    git(site.github, "update-ref", f"refs/heads/{branch}", main)
    refusal = refuses_to_publish(site)
    assert "was not created by Mergewright" in refusal.why
    assert refusal.reason is Reason.PUSH_REFUSED
    assert git(site.github, "rev-parse", branch) == main


def test_a_push_that_a_crash_left_unrecorded_is_continued(site: Site) -> None:
    site.starts()
    first = site.commits("a")
    mirror = site.locations.mirror("widgets")
    mirror.take(site.workspace)
    mirror.push(first, site.session.branch, expected="")
    site.commits("b")
    second = publishes(site)
    assert git(site.github, "rev-parse", site.session.branch) == second
