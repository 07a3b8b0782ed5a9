"""What notifiers send, when, and how often."""

from bot.store import Observation
from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity, Reason, Status
from tests.notify.conftest import PAGE, Desk, settings

# -- one message a cause ---------------------------------------------------------------------------


def test_a_session_that_needs_a_person_is_one_message(desk: Desk) -> None:
    name = desk.scenario.session(12)
    desk.needs(name)
    desk.looks()
    desk.later(3600)
    desk.starts(team=settings())  # Another process.
    desk.looks()
    (message,) = desk.team.kept
    assert message.type == "session.needs_person"
    assert message.title == "widgets-12 needs you: It breaks"
    assert message.text.splitlines() == [
        "Action needed: All failed checks also fail on main: unit.",
        "",
        "Fix the base branch and update this branch on GitHub, or write `/mergewright tell TEXT` "
        "to have the agent repair the failing checks in this pull request.",
        "",
        f"Act on it: {PAGE}sessions/widgets-12",
    ]
    assert message.data["session"] == "widgets-12"
    assert message.data["repository"] == "acme/widgets"
    assert message.data["issue"] == 12
    assert message.data["priority"] == "action"


def test_another_cause_of_the_same_session_is_another_message(desk: Desk) -> None:
    name = desk.scenario.session(12)
    desk.needs(name, cause="question:1#1")
    desk.looks()
    desk.needs(name, cause="question:2#1")
    desk.looks()
    desk.later(120)
    assert desk.team.types == ["session.needs_person"] * 2, "the first one may only be hidden"
    desk.needs(name, cause="question:1#1")
    desk.later(3600)
    assert desk.team.types == ["session.needs_person"] * 2
    desk.decides(name)
    desk.looks()
    desk.later(61)
    assert desk.team.types[2:] == ["session.resolved"] * 2


def test_a_question_has_its_choices_and_a_link_that_answers(desk: Desk) -> None:
    name = desk.scenario.session(12)
    desk.decides(name)
    asked = "Which colour? (Blue / Green)"
    agent = Agent(run=1, activity=Activity.WAITING_INPUT, question=asked)
    seen = Observation(session=name, run=1, agent=agent)
    desk.store.observations.record([seen], desk.clock())
    asks = f"the agent asks: {asked}"
    desk.needs(name, cause="question:1#1", reason=Reason.AGENT_QUESTION, because=asks)
    desk.looks()
    (message,) = desk.team.kept
    assert message.data["question"] == asked
    assert message.data["choices"] == ["Blue", "Green"]
    assert message.data["url"] == f"{PAGE}sessions/{name}#text"
    assert "1. Blue\n2. Green" in message.text
    assert message.text.endswith(f"Answer: {PAGE}sessions/{name}#text")


def test_what_agents_and_people_wrote_notifies_nobody_and_links_nowhere(desk: Desk) -> None:
    name = desk.scenario.session(12)
    desk.needs(name, because="it says <!channel> @everyone [pay](https://evil.example)")
    desk.looks()
    (message,) = desk.team.kept
    for effective in ("<!channel", "@everyone", "](https"):
        assert effective not in message.text
    assert "@everyone" in message.data["because"], "programs get the text as it is"


def test_a_long_text_is_cut_before_its_link(desk: Desk) -> None:
    name = desk.scenario.session(12)
    desk.needs(name, because="x" * 10_000)
    desk.looks()
    (message,) = desk.team.kept
    assert len(message.text) < 2000
    assert message.text.endswith(f"Act on it: {PAGE}sessions/{name}")


def test_an_incident_of_the_bot_is_one_message(desk: Desk) -> None:
    desk.store.incidents.report("disk", "the disk is full", desk.clock())
    desk.looks()
    desk.store.incidents.report("disk", "the disk is very full", desk.clock())
    desk.looks()
    desk.store.incidents.clear("disk", desk.clock())
    desk.looks()
    desk.later(61)
    opened, resolved = desk.team.kept
    assert (opened.type, opened.priority) == ("incident.opened", "urgent")
    assert opened.text == f"The disk is full.\n\nSee: {PAGE}"
    assert resolved.type == "incident.resolved"
    desk.store.incidents.report("disk", "the disk is full", desk.clock())
    desk.looks()
    assert desk.team.types[2:] == ["incident.opened"], "it is another one"


def test_ends_of_sessions_are_sent_once(desk: Desk) -> None:
    merged, failed = desk.scenario.session(12), desk.scenario.session(13)
    desk.looks()
    desk.clock.passes(1)
    desk.ends(merged, Status.MERGED, Reason.PR_MERGED, "#34 was merged")
    desk.ends(failed, Status.ERRORED, Reason.SPAWN_FAILED, "the agent cannot start")
    desk.looks()
    desk.starts(team=settings())
    desk.later(30)
    desk.later(3600)
    desk.starts(team=settings())
    desk.looks()
    first, second = desk.team.kept
    assert first.title == "widgets-12 is merged: It breaks"
    assert first.priority == "info"
    assert first.text == f"#34 was merged.\n\nSee: {PAGE}sessions/widgets-12"
    assert second.title == "widgets-13 has failed: It breaks"
    assert second.priority == "warning"
    assert "mergewright doctor" in second.text


def test_what_ended_before_a_notifier_was_configured_is_no_news(desk: Desk) -> None:
    desk.ends(desk.scenario.session(12), Status.MERGED, Reason.PR_MERGED, "#34 was merged")
    desk.clock.passes(1)
    desk.looks()
    desk.later(60)
    assert desk.team.kept == []


# -- resolved --------------------------------------------------------------------------------------


def test_what_was_sent_is_resolved_once_its_cause_is_gone_for_a_minute(desk: Desk) -> None:
    name = desk.scenario.session(12)
    desk.needs(name)
    desk.looks()
    desk.decides(name)
    desk.looks()
    desk.later(59)
    assert desk.team.types == ["session.needs_person"]
    desk.later(2)
    desk.later(3600)
    raised, resolved = desk.team.kept
    assert resolved.type == "session.resolved"
    assert resolved.title == "widgets-12: an earlier message is settled: It breaks"
    assert "all failed checks also fail on main" in resolved.text
    assert resolved.data["raised"] == raised.id
    desk.needs(name)
    desk.looks()
    assert desk.team.types[2:] == ["session.needs_person"], "people were notified of its end"


def test_a_cause_that_comes_back_within_a_minute_was_never_gone(desk: Desk) -> None:
    name = desk.scenario.session(12)
    desk.needs(name)
    desk.looks()
    desk.decides(name)
    desk.later(50)
    desk.needs(name)
    desk.later(50)
    desk.decides(name)
    desk.later(50)
    assert desk.team.types == ["session.needs_person"]
    desk.later(61)
    assert desk.team.types == ["session.needs_person", "session.resolved"]


def test_what_nobody_got_is_withdrawn_with_its_cause(desk: Desk) -> None:
    name = desk.scenario.session(12)
    desk.team.down = "refused"
    desk.needs(name)
    desk.looks()
    desk.decides(name)
    desk.looks()
    desk.team.down = ""
    desk.later(3600)
    assert desk.team.kept == []
    assert desk.store.notifications.undelivered() == {}


# -- routing ---------------------------------------------------------------------------------------


def test_each_notifier_gets_its_projects_and_priorities(desk: Desk) -> None:
    desk.starts(
        everything=settings(),
        gears=settings(projects=("gears",)),
        widgets=settings(projects=("widgets",), priority="action"),
        urgent=settings(priority="urgent"),
    )
    limited, needing = desk.scenario.session(12), desk.scenario.session(13)
    until = "the agent's usage limit is reached"
    desk.decides(
        limited, status="paused", reason=Reason.USAGE_LIMIT, because=until, cause="usage_limit:1#1"
    )
    desk.needs(needing)
    desk.store.incidents.report("disk", "the disk is full", desk.clock())
    desk.looks(9)
    about = {
        name: [message.data.get("session", "bot") for message in sender.kept]
        for name, sender in desk.senders.items()
    }
    assert about == {
        "team": [],
        "everything": ["widgets-12", "widgets-13", "bot"],
        "gears": [],
        "widgets": ["widgets-13"],
        "urgent": ["bot"],
    }
    paused = desk.senders["everything"].kept[0]
    assert paused.title == "widgets-12 is paused: It breaks"


def test_messages_of_a_notifier_that_was_removed_are_forgotten(desk: Desk) -> None:
    desk.team.down = "refused"
    desk.needs(desk.scenario.session(12))
    desk.looks()
    desk.starts(other=settings())
    desk.looks()
    assert desk.senders["other"].types == ["session.needs_person"]
    assert desk.store.notifications.undelivered() == {}
