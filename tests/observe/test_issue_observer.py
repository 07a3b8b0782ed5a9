"""The issue observer, and labels and commands of outsiders."""

import dataclasses
import json
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from bot.decide.policies import Policies
from bot.github.errors import Refused, TryLater
from bot.github.snapshots import IssueEvent
from bot.github.write_access import WriteAccess
from bot.intake.dry_run import Effect, WebhookFile, effects
from bot.intake.inbox import Inbox
from bot.store import NewCommand, NewSession, StoreFull
from config.settings import ProjectSettings
from lifecycle.decide import decide
from lifecycle.model.facts import Issue
from lifecycle.model.policy import Policy
from lifecycle.model.status import Status
from tests.harness.observers import PROJECTS, REPOSITORY, Bench, seen

NAMES = ("ada", "ada claude", "claude", "rob", "rob shell", "shell")


@pytest.mark.parametrize("broken", [TryLater("down"), ValueError("odd")])
def test_an_unreadable_issue_delays_no_other(bench: Bench, broken: Exception) -> None:
    bench.github.issues[1] = broken
    bench.labelled(12)
    bench.refreshes("issue:1", "issue:12")
    bench.issues.read_requested()
    assert bench.store.sessions.get("widgets-12") is not None
    assert bench.waiting() == ["issue:1"]
    assert bench.store.refreshes.due(bench.scenario.clock(), ("",)) == []


def test_an_unreadable_pull_request_delays_no_other(bench: Bench) -> None:
    bench.pushed("a1")
    bench.github.pulls[33] = ValueError("odd")
    bench.pull()
    bench.refreshes("pull:33", "pull:34")
    bench.pulls.read_requested()
    assert bench.store.sessions.get("widgets-12").pulls
    assert "pull:33" in bench.waiting()


def test_a_refresh_requested_during_a_read_leads_to_another_read(bench: Bench) -> None:
    bench.labelled(12)
    read = bench.github.issue

    def refreshed(repository: str, number: int) -> Any:
        bench.refreshes("issue:12")
        return read(repository, number)

    bench.github.issue = refreshed  # type: ignore[method-assign]
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    assert bench.waiting() == ["issue:12"]


@pytest.mark.parametrize("actor", ["mallory", ""])
def test_a_label_by_an_outsider_or_an_unknown_person_opens_nothing(
    bench: Bench, actor: str
) -> None:
    bench.labelled(by=actor)
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    assert bench.store.sessions.get("widgets-12") is None


def test_a_label_without_a_known_actor_opens_nothing(bench: Bench) -> None:
    bench.labelled(labelings=())
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    assert bench.store.sessions.get("widgets-12") is None


@pytest.mark.parametrize("editor", ["mallory", ""])
def test_an_outsiders_edit_in_the_second_of_the_label_prevents_the_session(
    bench: Bench, editor: str
) -> None:
    bench.labelled(edits=(IssueEvent(actor=editor, at=bench.scenario.clock()),))
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    assert bench.store.sessions.get("widgets-12") is None


def test_a_deleted_issue_ends_its_session(bench: Bench) -> None:
    bench.scenario.session()
    for _ in range(2):
        bench.refreshes("issue:12", "issue:99")
        bench.issues.read_requested()
        assert bench.waiting() == []
    facts = bench.store.facts.get("widgets-12")
    assert (facts.issue.open, facts.issue.state_reason) == (False, "deleted")
    assert facts.issue.title == "It breaks"
    decision = decide(facts, Policy(), bench.scenario.clock())
    assert decision.status is Status.TERMINATED
    assert decision.because == "the issue was deleted or moved to another repository"


def test_an_unreadable_issue_does_not_count_as_deleted(bench: Bench) -> None:
    before = bench.store.sessions.get(bench.scenario.session())
    bench.github.issues[12] = Refused("no access", 403)
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    assert bench.store.sessions.get("widgets-12") == before


def test_without_its_project_an_issue_does_not_count_as_unlabelled(bench: Bench) -> None:
    bench.scenario.session()
    bench.labelled()
    bench.issues.projects = {}
    bench.refreshes("issue:12")
    bench.issues.read_requested()
    assert bench.store.sessions.get("widgets-12").issue.labelled


def command(key: str, actor: str, at: Any) -> NewCommand:
    return NewCommand(
        key=key, repository=REPOSITORY, number=12, kind="stop", actor=actor, at=at, comment=7
    )


def test_a_command_waits_while_its_permission_cannot_be_read(bench: Bench) -> None:
    bench.scenario.session()
    bench.github.refuses.add(REPOSITORY)
    bench.store.commands.add(command("comment:7", "ada", bench.scenario.clock()))
    assert bench.commands.settle() == 0
    assert bench.commands.settle() == 0
    assert bench.github.asked == 1
    bench.github.refuses.clear()
    bench.scenario.clock.passes(60)
    assert bench.commands.settle() == 1
    assert [command.actor for command in bench.store.sessions.get("widgets-12").commands] == ["ada"]


def test_a_refusing_repository_delays_only_its_own_commands(bench: Bench) -> None:
    bench.scenario.session()
    at = bench.scenario.clock()
    elsewhere = replace(command("comment:1", "ada", at), repository="acme/gears")
    bench.store.sessions.create(
        replace(new_session(bench), id="gears-12", repository="acme/gears", branch="g")
    )
    bench.github.refuses.add("acme/gears")
    bench.store.commands.add(elsewhere)
    bench.store.commands.add(command("comment:7", "ada", at))
    assert bench.commands.settle() == 1
    assert bench.store.sessions.get("widgets-12").commands
    assert [command.key for command in bench.store.commands.new()] == ["comment:1"]


def new_session(bench: Bench) -> NewSession:
    return NewSession(
        id="x",
        project="gears",
        repository="x",
        created=bench.scenario.clock(),
        issue=Issue(number=12, title="x"),
        branch="x",
    )


def test_an_outsiders_command_is_refused(bench: Bench) -> None:
    bench.scenario.session()
    bench.store.commands.add(command("comment:7", "mallory", bench.scenario.clock()))
    bench.commands.settle()
    assert bench.store.sessions.get("widgets-12").commands == ()
    assert bench.store.commands.new() == []
    assert [one.login for one in bench.store.outsiders.unnotified()] == ["mallory"]


def test_listed_people_may_give_commands_but_merging_needs_write_access(bench: Bench) -> None:
    github: Any = bench.github
    projects = {"widgets": ProjectSettings(repository="Acme/Widgets", people=("Mallory",))}
    policies = Policies(bench.store, projects, Policy(bots=("ci-bot",)))
    listed = WriteAccess(github, bench.scenario.clock, policies.is_listed)
    assert listed.may_command(REPOSITORY, "ci-bot[bot]")
    assert not listed.may_command(REPOSITORY, "ci-bot")
    assert listed.may_command(REPOSITORY, "mallory")
    assert not listed.may_command("acme/gears", "mallory")
    assert not listed.may_write(REPOSITORY, "mallory")
    bench.commands._people = listed
    bench.scenario.session()
    for kind in ("pause", "merge"):
        asked = replace(command(f"comment:{kind}", "mallory", bench.scenario.clock()), kind=kind)
        bench.store.commands.add(asked)
    bench.commands.settle()
    assert [one.kind for one in bench.store.sessions.get("widgets-12").commands] == ["pause"]


def test_a_webhook_about_a_repository_refreshes_everything_in_it(bench: Bench) -> None:
    bench.scenario.session()
    bench.github.issues = {7: None}
    bench.refreshes("repository:")
    bench.issues.read_requested()
    assert sorted(bench.waiting()) == ["branch:mergewright/12-it-breaks", "issue:12", "issue:7"]


def test_a_repository_whose_issues_cannot_be_listed_is_refreshed_later(bench: Bench) -> None:
    bench.github.refuses.add(REPOSITORY)
    bench.refreshes("repository:")
    bench.issues.read_requested()
    assert bench.waiting() == ["repository:"]


def test_a_webhook_about_a_repository_concerns_no_single_session(bench: Bench) -> None:
    bench.scenario.session()
    body = {"action": "archived", "repository": {"id": 1, "full_name": REPOSITORY}}
    webhook = WebhookFile(event="repository", body=json.dumps(body).encode())
    inbox = Inbox(bench.store, frozenset({REPOSITORY}), lambda: None)
    assert effects(bench.store, inbox, webhook) == [
        Effect(what=f"the bot reads {words} of {REPOSITORY} again", session="")
        for words in ("people's permissions", "everything")
    ]


def test_a_session_waits_exactly_as_long_as_its_issue_is_blocked(bench: Bench) -> None:
    bench.labelled()
    bench.github.blocked[12] = ("#7", "acme/gears#3")
    seen(bench, 12)
    facts = bench.store.facts.get("widgets-12")
    assert facts.issue.blocked_by == ("#7", "acme/gears#3")
    bench.github.issues[7] = replace(bench.labelled(7), issue=Issue(number=7, title="x"))
    bench.github.blocked[12] = ()
    seen(bench, 7)
    assert bench.store.facts.get("widgets-12").issue.blocked_by
    closed = Issue(number=7, title="x", open=False)
    bench.github.issues[7] = replace(bench.labelled(7), issue=closed)
    seen(bench, 7)
    assert bench.store.facts.get("widgets-12").issue.blocked_by == ()


@pytest.mark.parametrize(
    ("blocked", "circle"),
    [
        ({12: ("#7",), 7: ("#12",)}, True),
        ({12: ("#7", "acme/gears#12"), 7: ("#8", "#9"), 9: ("#12",)}, True),
        ({12: ("#7",), 7: ("#8",), 8: ("#7",)}, False),
        ({12: ("acme/gears#7",), 7: ("#12",)}, False),
        ({12: ("#7",), **{n: (f"#{n + 1}",) for n in range(7, 99)}, 99: ("#12",)}, False),
    ],
    ids=["two", "by way of another", "theirs alone", "of another repository", "far away"],
)
def test_a_circle_of_blocking_issues_is_found(
    bench: Bench, blocked: dict[int, tuple[str, ...]], circle: bool
) -> None:
    bench.labelled()
    bench.github.blocked |= blocked
    seen(bench, 12)
    assert bench.store.facts.get("widgets-12").issue.in_circle is circle
    bench.github.blocked[12] = ()
    seen(bench, 12)
    assert not bench.store.facts.get("widgets-12").issue.in_circle


def test_blockers_do_not_matter_after_the_first_run(bench: Bench) -> None:
    bench.labelled()
    seen(bench, 12)
    bench.scenario.orders("widgets-12", run=1)
    bench.github.blocked[12] = ("#7",)
    seen(bench, 12)
    assert bench.store.facts.get("widgets-12").issue.blocked_by == ()


def test_resync_lists_labels_and_assignments(bench: Bench) -> None:
    project = replace(PROJECTS["widgets"], assignee="robot")
    issues = dataclasses.replace(bench.issues, projects={"widgets": project})
    assert issues.labelled() == []
    agents = [f"mergewright:{name}" for name in NAMES]
    assert bench.github.listed == [(REPOSITORY, "mergewright", *agents, "@robot")]


def test_labels_are_listed_in_the_repositorys_own_spelling_too(bench: Bench) -> None:
    bench.github.spelled = ["MergeWright", "mergewright:ADA", "mergewright-needs-you", "Not ours"]
    bench.issues.labelled()
    agents = [f"mergewright:{name}" for name in NAMES]
    words = ("mergewright", *agents, "MergeWright", "mergewright:ADA")
    assert (REPOSITORY, *words) in bench.github.listed


def test_responses_are_cached_once_their_facts_are_stored(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.labelled()
    seen(bench, 12)
    assert bench.github.remembered == 1
    with monkeypatch.context() as broken:
        broken.setattr(
            bench.store.observations, "record", Mock(side_effect=StoreFull("no space left"))
        )
        seen(bench, 12)
    assert bench.github.remembered == 1
    bench.scenario.clock.passes(60)
    bench.issues.read_requested()
    assert bench.github.remembered == 2
