"""A bot process hangs before the effect of each kind of action; late effects do no lasting harm."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, get_args

from bot.store import Store
from bot.system.locations import Paths
from bot.text.messages import report_title
from lifecycle.model.actions import (
    Action,
    AdoptCommits,
    DeleteBranch,
    MergePull,
    MergeRemote,
    OpenPull,
    PressKeys,
    ReportCheck,
    SendMessage,
    UpdateBranch,
)
from lifecycle.model.names import SHOWS_STATUS
from runtimes import RUNTIMES
from runtimes.base import Options
from tests.world import waiting
from tests.world.app_key import PRIVATE
from tests.world.freezing_bot import name_of
from tests.world.world import ALICE, BOT, ROB, SECRET, IssueStory, PullStory, World

T = TypeVar("T")

#: The bot starts dozens of times, which takes long on a busy machine.
PATIENCE = 300.0
#: Every kind of action that the outbox carries out for a decision.
KINDS = {name_of(kind) for kind in get_args(Action)} - {name_of(PressKeys)}
#: Those that have no effect any more once the sessions are over.
IMPOSSIBLE = {
    name_of(kind)
    for kind in (
        *(AdoptCommits, DeleteBranch, MergePull, MergeRemote, OpenPull, SendMessage),
        UpdateBranch,
    )
}
_POLICY = {
    "check_run": True,
    "draft": True,
    "report_seconds": 0.5,
    "resolve_threads": True,
    "reviewers": [ROB],
    "settle_seconds": 1,
    "state_labels": True,
}


def test_every_kind_of_action_may_come_late(world: World) -> None:
    """The test plays two sessions; one is merged, the other is stopped.

    For each kind of action in `KINDS`, one bot process freezes just before the effect of such an
    action. All these processes continue when both sessions are over.
    """
    bot = world.has_an_app().bot.login
    world.settings(_POLICY, resync_seconds=1, events="polling")
    # In each resync, each life looks for what the ones before it may do late.
    world.github.traffic.limits.update(core=1_000_000, graphql=1_000_000)
    world.repo.push(
        "main", {".github/mergewright.toml": '[policy]\nauto-merge = "on-a-whim"\n'}, by=ALICE
    )
    folder = world.folder / "frozen"
    with freezing_bot(world, folder):
        issue, pull = a_session_is_merged(world, folder)
        stopped = a_session_is_stopped(world)
        eventually(lambda: not_over(world, issue, stopped) == [], "nothing is left to do")
        assert {file.name for file in folder.iterdir()} == KINDS
        branch = pull.pull.head_branch
        moves = [move for move in world.repo.moves if move.branch == branch]

        (folder / "thaw").touch()
        eventually((folder / "thawed").exists, "the frozen bots have ended")
        eventually(lambda: not inherited(world), "the bot that leads has looked twice since")

    assert (folder / "thawed").read_text().split() == ["1"] * len(KINDS)
    late = {kind: (folder / kind).read_text() for kind in KINDS}
    assert {kind for kind, outcome in late.items() if outcome != "done"} == IMPOSSIBLE, str(late)
    again = [move for move in world.repo.moves if move.branch == branch][len(moves) :]
    assert [bool(move.after) for move in again] == [True, False], "pushed and deleted again"
    assert set(world.repo.heads) == {"main"}
    assert len(world.repo.pulls) == 1
    assert len([m for m in world.repo.moves if m.branch == "main" and m.user == bot]) == 1
    assert issue.issue.state == "closed"
    threads = [comment for thread in pull.pull.threads for comment in thread.comments]
    comments = [*issue.issue.comments, *stopped.issue.comments, *pull.pull.comments, *threads]
    keys = re.findall(r"mergewright:key=(\S+)", "".join(one.body for one in comments))
    assert max(Counter(keys).values()) == 1
    for story, status in ((issue, "merged"), (stopped, "killed")):
        own = [label for label in story.issue.labels if label != "mergewright"]
        assert own == [SHOWS_STATUS + status]
    messages = [entry["mark"] for entry in issue.agent.received if entry["kind"] == "message"]
    assert len(messages) == len(set(messages)) == 2
    shows_the_newest_status(world, issue)
    data = Paths(world.folder / "data")
    assert not (data.host / "workspaces" / issue.id).exists()
    assert RUNTIMES["tmux"](Options(data=data.runtime)).look() == {}


def a_session_is_merged(world: World, folder: Path) -> tuple[IssueStory, PullStory]:
    """Play a session with every kind of action but `Stop` and `PressKeys`."""
    issue = world.issue("Add widgets").is_labelled()
    agent = issue.agent.asks("Which colour?")
    eventually(lambda: "mergewright:needs-input" in issue.issue.labels, "people are called")
    issue.issue.comment("/mergewright answer Green.", by=ALICE)
    agent.receives("Green.", PATIENCE)
    agent.runs(["git", "checkout", "-q", "-b", "elsewhere"])
    agent.commits({"widgets.txt": "green\n"}).ends_its_turn()
    eventually(lambda: world.repo.pulls, "a pull request")
    pull = PullStory(world, world.repo.pulls[0])
    first = pull.pull.head
    pull.pull.check("unit", conclusion="cancelled", suite="ci")
    (again,) = eventually(
        lambda: [run for run in world.repo.checks.runs_of(first) if run.attempt == 2],
        "the check runs once more",
    )
    again.complete("success")
    eventually(lambda: not pull.pull.draft, "it is ready for review")
    eventually((folder / "request_review").exists, "the review is requested")
    pull.reviewer_asks_for("plugh, please")
    agent.receives("plugh, please", PATIENCE)
    agent.commits({"widgets.txt": "plugh\n"}, "Say plugh").ends_its_turn()
    second = pull.moves_from(first, PATIENCE)
    pull.ci_passes()
    eventually(lambda: all(thread.resolved for thread in pull.pull.threads), "it is resolved")
    world.repo.push("main", {"other.txt": "1\n"}, by=ALICE)
    issue.issue.comment("/mergewright update", by=ALICE)
    pull.moves_from(second, PATIENCE)
    eventually((folder / "merge_remote").exists, "the workspace follows")
    world.repo.protect("main", queue=True)
    pull.ci_passes().reviewer_approves()
    eventually(lambda: pull.pull.queued, "it is queued")
    issue.issue.comment("/mergewright cancel", by=ALICE)
    eventually(lambda: not pull.pull.queued, "it is taken out")
    world.repo.protect("main")
    eventually(lambda: not known_queues(world, issue), "the bot reads that there is no queue")
    world.repo.closes_issues = False  # The bot does.
    pull.pull.comment("/mergewright merge", by=ALICE)
    eventually(lambda: pull.pull.merged, "the merge")
    return issue, pull


def a_session_is_stopped(world: World) -> IssueStory:
    issue = world.issue("Not now").is_labelled()
    eventually(lambda: issue.agent.received, "its agent starts")
    issue.issue.comment("/mergewright stop", by=ALICE)
    eventually(lambda: SHOWS_STATUS + "killed" in issue.issue.labels, "it is killed")
    return issue


def known_queues(world: World, issue: IssueStory) -> list[int]:
    """The pull requests that have to be merged by a merge queue, as far as the bot knows."""
    store = Store.reading(Paths(world.folder / "data").database)
    try:
        return [pull.number for pull in store.facts.get(issue.id).pulls if pull.queue]
    finally:
        store.close()


def not_over(world: World, *issues: IssueStory) -> list[str]:
    """What these sessions still have to do."""
    store = Store.reading(Paths(world.folder / "data").database)
    try:
        found = [(one.id, store.sessions.get(one.id), store.facts.get(one.id)) for one in issues]
    finally:
        store.close()
    left = [f"{name}: {key}" for name, _, facts in found for key in facts.pending]
    return left + [name for name, session, _ in found if session is None or session.ended is None]


def inherited(world: World) -> int:
    """Return how many actions of former leaders the bot still checks for late effects."""
    store = Store.reading(Paths(world.folder / "data").database)
    try:
        return len(store.outbox.inherited())
    finally:
        store.close()


def shows_the_newest_status(world: World, issue: IssueStory) -> None:
    """Assert that on each commit, GitHub shows the status that the bot reported last for it."""
    store = Store.reading(Paths(world.folder / "data").database)
    reports = [one.action for one in store.outbox.of(issue.id) if one.state == "done"]
    store.close()
    newest = {
        one.head: report_title(one.summary)
        for one in reversed(reports)
        if isinstance(one, ReportCheck)
    }
    shown = {
        head: run.output["title"]
        for head in newest
        for run in world.repo.checks.runs_of(head)
        if run.suite.app.slug == BOT
    }
    assert shown == newest


@contextmanager
def freezing_bot(world: World, folder: Path) -> Iterator[None]:
    """A bot of `tests.world.freezing_bot` that is an App; it is killed at the end."""
    folder.mkdir()
    secrets = {"MERGEWRIGHT_GITHUB_PRIVATE_KEY": PRIVATE, "MERGEWRIGHT_WEBHOOK_SECRET": SECRET}
    config = world.folder / "mergewright.toml"
    with (world.folder / "bot.log").open("wb") as log:
        bot = subprocess.Popen(
            [sys.executable, "-m", "tests.world.freezing_bot", str(config), str(folder)],
            env={**os.environ, **secrets},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield
        finally:
            os.killpg(bot.pid, signal.SIGKILL)
            bot.communicate()


def eventually(condition: Callable[[], T | None], what: str) -> T:
    return waiting.eventually(condition, what, PATIENCE)
