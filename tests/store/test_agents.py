"""What an agent's record says is read off its sessions."""

from msgspec.structs import replace

from bot.store import AgentRecord, Observation, Store
from lifecycle.model import keys
from lifecycle.model.actions import Action, Prompt, Start, Tell
from lifecycle.model.facts import Agent, Ended, Usage
from lifecycle.model.key import parse
from lifecycle.model.status import Reason, Status
from tests.store.conftest import Room


def told(prompt: str, number: int) -> Action:
    return Tell(key=keys.reword(f"{prompt}{number}").of_run(1), run=1, prompt=Prompt(name=prompt))


def works(room: Room, number: int, agent: str, *actions: Action) -> str:
    """A session of an agent in which these things were done."""
    assert room.store.sessions.create(replace(room.new_session(number), agent_name=agent))
    name = f"widgets-{number}"
    room.decides(name, *actions)
    for _ in actions:
        (due,) = [each for each in room.store.outbox.due(room.now) if each.session == name]
        room.store.outbox.mark_done(due.seq, "", room.now)
    return name


def ends(room: Room, name: str, status: Status, seconds: float) -> None:
    room.clock.passes(seconds)
    ended = Ended(status=status, reason=Reason.PR_MERGED, because="so it was", at=room.now)
    room.decides(name, status=status, ended=ended)


def test_a_record_counts_sessions_outcomes_repairs_cost_and_time(room: Room, store: Store) -> None:
    first = works(
        room, 1, "ada", Start(key=parse("start:first#1"), run=1, prompt=Prompt(name="start"))
    )
    ends(room, first, Status.MERGED, 60)
    second = works(room, 2, "ada", told("fix_ci", 1), told("fix_ci", 2), told("address_review", 1))
    usage = Agent(run=1, usage=Usage(output=5, cost_usd=1.5))
    store.observations.record([Observation(session=second, run=1, agent=usage)], room.now)
    ends(room, second, Status.MERGED, 120)
    ends(room, works(room, 3, "ada"), Status.KILLED, 600)
    works(room, 4, "ada")
    works(room, 5, "ben")
    ada, ben = store.agents.records()
    assert ada == AgentRecord(
        agent="ada",
        sessions=4,
        live=1,
        outcomes={"killed": 1, "merged": 2},
        first_pass=1,
        repairs=2,
        review_rounds=1,
        cost_usd=1.5,
        seconds_to_merge=90.0,
    )
    assert ada.first_pass_rate == 0.5
    assert (ben.agent, ben.sessions, ben.seconds_to_merge, ben.first_pass_rate) == (
        "ben",
        1,
        None,
        None,
    )


def test_a_message_that_began_a_run_counts_and_one_not_sent_does_not(
    room: Room, store: Store
) -> None:
    begun = Start(key=parse("start:message#2"), run=2, prompt=Prompt(name="address_review"))
    ends(room, works(room, 1, "ada", begun), Status.MERGED, 5)
    room.decides(works(room, 2, "ada"), told("fix_ci", 1))
    (ada,) = store.agents.records()
    assert (ada.first_pass, ada.review_rounds, ada.repairs) == (0, 1, 0)
