"""Sessions are created once and found by issue, branch, pull request and commit."""

import sqlite3

import msgspec
import pytest

from bot.store import CorruptRow, Observation, Store
from lifecycle.judge.capacity import Caps
from lifecycle.model.actions import Stop
from lifecycle.model.facts import Agent, Command, Ended, Issue, Pull, Work
from lifecycle.model.key import parse
from lifecycle.model.status import Activity, Origin, Reason, Status
from tests.store.conftest import Clock, Scenario

REPOSITORY = "acme/widgets"


def ended(scenario: Scenario) -> Ended:
    return Ended(
        status=Status.KILLED, reason=Reason.MANUALLY_KILLED, because="ada said so", at=scenario.now
    )


def test_a_new_session_is_queued_and_due_at_once(scenario: Scenario, store: Store) -> None:
    name = scenario.session(12)
    session = store.sessions.get(name)
    assert session is not None
    assert (session.status, session.due, session.slot, session.run) == (
        "queued",
        scenario.now,
        False,
        0,
    )
    assert session.issue == Issue(number=12, title="It breaks")
    assert session.activity is Activity.NONE
    assert store.sessions.due(scenario.now) == [name]


@pytest.mark.parametrize("same", ["id", "branch"])
def test_an_id_and_a_branch_have_one_session_each(
    scenario: Scenario, store: Store, same: str
) -> None:
    scenario.session(12)
    first, other = scenario.new_session(12), scenario.new_session(13)
    second = msgspec.structs.replace(other, **{same: getattr(first, same)})
    assert store.sessions.create(second) is False
    assert len(store.sessions.all()) == 1


def test_a_session_is_found_by_issue_branch_pull_request_and_commit(
    scenario: Scenario, store: Store
) -> None:
    name = scenario.session(12)
    scenario.session(13)
    pulls = (Pull(number=34, head="feed"),)
    store.observations.record(
        [Observation(session=name, pulls=pulls, work=Work(head="cafe"))], scenario.now
    )
    assert store.sessions.of_subject(REPOSITORY, "issue:12") == name
    assert store.sessions.of_subject(REPOSITORY, "branch:mergewright/12-it-breaks") == name
    assert store.sessions.of_subject(REPOSITORY, "pull:34") == name
    assert store.sessions.of_subject(REPOSITORY, "sha:feed") == name
    assert store.sessions.of_subject(REPOSITORY, "sha:cafe") == name
    assert store.sessions.of_subject(REPOSITORY, "issue:99") is None
    known = [
        *("issue:12", "branch:mergewright/12-it-breaks", "pull:34", "sha:feed", "sha:cafe"),
        *("other:34", "number:12", "number:34", f"session:{name}"),
    ]
    unknown = ["issue:34", "pull:12", "branch:12", "sha:12", "number:99", "access:", "session:no"]
    pairs = [(REPOSITORY, subject) for subject in (*known, *unknown)]
    others = [("acme/gears", "issue:12"), ("acme/gears", f"session:{name}")]
    assert store.sessions.of_subjects([*pairs, *others]) == {
        (REPOSITORY, subject): name for subject in known
    }
    assert store.sessions.of_subject("acme/gadgets", "pull:34") is None


def test_a_pull_request_that_left_its_session_is_not_found(
    scenario: Scenario, store: Store
) -> None:
    name = scenario.session(12)
    for number in (34, 35):
        pulls = (Pull(number=number, head="feed"),)
        store.observations.record([Observation(session=name, pulls=pulls)], scenario.now)
    assert store.sessions.of_subject(REPOSITORY, "pull:34") is None
    assert store.sessions.of_subject(REPOSITORY, "pull:35") == name


def test_sessions_are_listed_newest_first_and_live_ones_separately(
    scenario: Scenario, store: Store
) -> None:
    for number in (1, 2, 3):
        scenario.session(number)
        scenario.clock.passes(1)
    scenario.decides("widgets-2", ended=ended(scenario), status="killed")
    assert [s.id for s in store.sessions.all()] == ["widgets-3", "widgets-2", "widgets-1"]
    assert [s.id for s in store.sessions.all(live=True)] == ["widgets-3", "widgets-1"]
    assert [s.id for s in store.sessions.all(live=False)] == ["widgets-2"]


def test_an_ended_session_is_live_until_its_actions_are_done(
    scenario: Scenario, store: Store
) -> None:
    name = scenario.session(12)
    stop = Stop(key=parse("stop:1"), run=1)
    scenario.decides(name, stop, ended=ended(scenario), status="killed", recheck_at=None)
    assert [row.id for row in store.sessions.live()] == [name]
    store.outbox.mark_done(store.outbox.due(scenario.now)[0].seq, "", scenario.now)
    assert store.sessions.live() == [], (
        "also where a recheck is due: its workspace is released in some days"
    )


def test_an_ended_session_is_live_while_it_holds_a_slot(scenario: Scenario, store: Store) -> None:
    name = scenario.session(12)
    store.slots.assign(Caps())
    scenario.decides(name, ended=ended(scenario), status="merged")
    assert [row.id for row in store.sessions.live()] == [name]
    scenario.decides(name, ended=ended(scenario), status="merged", frees_slot=True)
    assert store.sessions.live() == []


def test_live_sessions_have_their_agent_and_workspace(scenario: Scenario, store: Store) -> None:
    name = scenario.session(12)
    agent, work = Agent(run=0, activity=Activity.READY), Work(path="/somewhere", head="cafe")
    store.observations.record([Observation(session=name, agent=agent, work=work)], scenario.now)
    (row,) = store.sessions.live()
    assert (row.agent, row.work, row.number, row.agent_type) == (agent, work, 12, "claude")


def test_a_granted_command_is_a_fact_and_wakes_its_session(
    scenario: Scenario, store: Store
) -> None:
    name = scenario.session(12)
    scenario.decides(name, recheck_at=None)
    store.deliveries.add([scenario.delivery("a")]).result()
    store.deliveries.mark_done("a", [], [scenario.command(), scenario.command()])
    assert store.sessions.due(scenario.now) == []
    store.commands.grant("comment:7", name, scenario.now, head="cafe")
    assert store.sessions.due(scenario.now) == [name]
    assert store.commands.new() == []
    assert store.facts.get(name).commands == (
        Command(
            key="comment:7",
            kind="tell",
            actor="ada",
            at=scenario.now,
            text="mind the gap",
            number=12,
            head="cafe",
            comment=7,
        ),
    )


def test_a_command_is_granted_once(scenario: Scenario, store: Store) -> None:
    name = scenario.session(12)
    store.deliveries.add([scenario.delivery("a")]).result()
    store.deliveries.mark_done("a", [], [scenario.command()])
    store.commands.grant("comment:7", name, scenario.now, head="cafe")
    scenario.decides(name, recheck_at=None)
    store.commands.grant("comment:7", name, scenario.now, head="beef")
    assert store.facts.get(name).commands[0].head == "cafe"
    assert store.sessions.due(scenario.now) == []


def test_a_refused_command_is_not_granted_later(scenario: Scenario, store: Store) -> None:
    name = scenario.session(12)
    store.deliveries.add([scenario.delivery("a")]).result()
    store.deliveries.mark_done("a", [], [scenario.command()])
    store.commands.refuse("comment:7", "ada may not write here")
    store.commands.grant("comment:7", name, scenario.now)
    assert store.commands.new() == []
    assert store.facts.get(name).commands == ()


def test_a_corrupt_row_is_named_with_its_table_id_and_column(
    scenario: Scenario, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (12, 13):
        scenario.session(number)

    def spoil(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE sessions SET agent = '{\"run\":' WHERE id = 'widgets-12'")

    store.db.write(spoil)
    with pytest.raises(CorruptRow, match="sessions, row 'widgets-12', column 'agent'"):
        store.sessions.get("widgets-12")
    with pytest.raises(CorruptRow, match="sessions, row 'widgets-12', column 'agent'"):
        store.facts.get("widgets-12")
    assert [row.id for row in store.sessions.live()] == ["widgets-13"], "one bad row stops no other"
    assert [row.id for row in store.sessions.all()] == ["widgets-13"]
    assert "widgets-12" in caplog.text


def test_fields_of_a_newer_version_are_skipped(scenario: Scenario, store: Store) -> None:
    name = scenario.session(12)

    def add_field(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE sessions SET agent = json_insert(agent, '$.mood', 'good')")

    store.db.write(add_field)
    assert store.facts.get(name).agent == Agent()


def test_only_changed_live_sessions_are_read_again(scenario: Scenario, store: Store) -> None:
    first, second = scenario.session(12), scenario.session(13)
    before = store.sessions.live()
    assert all(after is known for after, known in zip(store.sessions.live(), before, strict=True))
    seen = Agent(activity=Activity.READY)
    store.observations.record([Observation(session=first, agent=seen)], scenario.now)
    changed, same = store.sessions.live()
    assert (changed.agent, same is before[1]) == (seen, True)
    store.observations.record(
        [Observation(session=second, pulls=(Pull(number=34, head="feed"),))], scenario.now
    )
    assert [live.pulls for live in store.sessions.live()] == [(), (34,)]
    scenario.decides(first, status="pr_open", run=7)
    assert [(live.status, live.run) for live in store.sessions.live()] == [
        ("pr_open", 7),
        ("queued", 0),
    ]
    store.db.write(
        lambda connection: connection.execute(
            "UPDATE sessions SET agent = '{', version = version + 1 WHERE id = ?", (first,)
        )
    )
    assert [live.id for live in store.sessions.live()] == [second], (
        "what cannot be read is not kept"
    )


def test_of_several_sessions_of_an_issue_the_newest_open_one_is_found(
    scenario: Scenario, store: Store, clock: Clock
) -> None:
    first = scenario.session(12)
    clock.passes(60)
    for name, branch in (("widgets-12b", "b"), ("widgets-12c", "c")):
        new = msgspec.structs.replace(scenario.new_session(12), id=name, branch=branch)
        assert store.sessions.create(new)
    assert store.sessions.of_issue(REPOSITORY, 12) == ["widgets-12c", "widgets-12b", first]
    assert store.sessions.of_subject(REPOSITORY, "issue:12") == "widgets-12c"
    subject = (REPOSITORY, "issue:12")
    assert store.sessions.of_subjects([subject]) == {subject: "widgets-12c"}
    over = Ended(status=Status.KILLED, reason=Reason.MANUALLY_KILLED, because="x", at=clock())
    for name in ("widgets-12c", "widgets-12b"):
        scenario.decides(name, status="killed", ended=over)
        found = store.sessions.of_subject(REPOSITORY, "issue:12")
        assert found == ("widgets-12b" if name == "widgets-12c" else first)
        assert store.sessions.of_subjects([subject]) == {subject: found}


def test_a_session_keeps_what_was_given_for_it(scenario: Scenario, store: Store) -> None:
    new = msgspec.structs.replace(
        scenario.new_session(0),
        id="widgets-p1",
        origin=Origin.PROMPT,
        budget_usd=2.5,
        metadata={"team": "core"},
    )
    assert store.sessions.create(new)
    session, facts = store.sessions.get("widgets-p1"), store.facts.get("widgets-p1")
    assert session is not None
    assert (session.origin, session.budget_usd, session.metadata) == ("prompt", 2.5, new.metadata)
    assert (facts.origin, facts.budget_usd, facts.issue.number) == (Origin.PROMPT, 2.5, 0)
    owner = store.sessions.owner("widgets-p1")
    assert owner is not None
    assert not owner.requested, "no label can ask for it again"
