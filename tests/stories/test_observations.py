"""Observations of agents: silence, usage limits, crashes and days of waiting."""

import os
import signal
import subprocess
from datetime import timedelta

from bot.system.locations import Paths
from lifecycle.model.key import parse
from lifecycle.model.status import Activity
from tests.world.waiting import eventually
from tests.world.world import World


def test_an_agent_killed_during_a_tool_call_resumes_in_a_new_run(world: World) -> None:
    issue = world.agent_starts()
    issue.agent.says("calling the tests")
    eventually(lambda: issue.session and issue.session.agent.calling, "its call is seen")
    world.time_passes(minutes=20)
    assert issue.becomes("working").activity is Activity.ACTIVE
    issue.agent.is_killed()
    assert issue.agent.resumes()["run"] == 2
    issue.agent.commits({"widgets.txt": "whole\n"}).ends_its_turn()
    assert issue.pull
    assert parse("start:crash#2") in world.store.facts.get(issue.id).done


def test_a_usage_limit_pauses_the_session_until_it_resets(world: World) -> None:
    issue = world.agent_starts()
    until = world.clock() + timedelta(seconds=3)
    issue.agent.says(f"limited {until.isoformat()} You've hit your limit.")
    again = issue.agent.resumes()
    assert (again["run"], world.clock() > until) == (2, True)
    issue.agent.commits({"widgets.txt": "one\n"}).ends_its_turn()
    assert issue.pull
    paused = [row.data for row in world.store.history.of(issue.id) if "paused" in row.data.values()]
    assert [row["reason"] for row in paused] == ["usage_limit"]
    assert f"resumes by itself at {until:%Y-%m-%d %H:%M} UTC" in paused[0]["because"]


def test_all_twenty_sessions_resume_after_the_tmux_servers_die(world: World) -> None:
    world.bot_starts(sessions=20)
    issues = [world.issue(f"Widget {n}").is_labelled() for n in range(20)]
    for issue in issues:
        issue.agent.starts()
    for socket in Paths(world.folder / "data").runtime.glob("t????????"):
        asked = ("tmux", "-S", str(socket), "display-message", "-p", "#{pid}")
        said = subprocess.run(asked, capture_output=True, text=True, check=True)
        os.kill(int(said.stdout), signal.SIGKILL)
    for issue in issues:
        assert issue.agent.resumes()["run"] == 2
    for issue in issues:
        facts = world.store.facts.get(issue.id)
        assert parse("start:lost#2") in facts.done
        assert issue.becomes("working").run == 2
    assert world.store.incidents.recent() == []


def test_a_pull_request_waiting_three_days_for_review_is_never_stuck(
    world: World,
) -> None:
    issue = world.agent_opens_a_pull_request(park_seconds=10_000_000, wait_seconds=10_000_000)
    pull = issue.pull.ci_passes()
    issue.becomes("review_pending")
    for much in ({"minutes": 11}, {"hours": 12}, {"days": 1}, {"days": 1, "hours": 12}):
        world.time_passes(**much)
        visited = world.clock()
        world.app.wiring.agent_observer.sweep()  # type: ignore[union-attr]
        world.app.wiring.reconciler.reconcile_live()  # type: ignore[union-attr]
        session = issue.session
        assert session is not None
        assert session.status == "review_pending", visited
    pull.reviewer_approves()
    eventually(lambda: pull.pull.merged, "the merge")
    went = [row.data.get("status") for row in world.store.history.of(issue.id)]
    assert "review_pending" in went
    assert not {"stuck", "needs_input", "errored"}.intersection(went)
