"""The command `allow` is bound to a commit when it is granted."""

from bot.intake.local_commands import build_command
from bot.store import NewCommand, Observation
from lifecycle.model.facts import Pull, Work
from tests.harness.observers import REPOSITORY, Bench


def test_an_allow_is_bound_to_the_commit_that_it_abbreviates(bench: Bench) -> None:
    bench.scenario.session()
    now = bench.scenario.clock()
    pull, work = Pull(number=34, head="b" * 40, head_since=now), Work(head="a" * 40)
    bench.store.observations.record(
        [Observation(session="widgets-12", pulls=(pull,), work=work)], now
    )
    expected = {"a" * 7: "a" * 40, "b" * 7: ""}
    for text in expected:
        given = NewCommand(
            key=f"comment:{text}",
            repository=REPOSITORY,
            number=12,
            kind="allow",
            actor="ada",
            at=now,
            text=text,
        )
        bench.store.commands.add(given)
    bench.commands.settle()
    session = bench.store.sessions.get("widgets-12")
    assert session
    assert {one.text: one.head for one in session.commands} == expected
    for text, head in expected.items():
        local = build_command(session, "allow", text, actor="cli:ann", key=f"cli:{text}", at=now)
        assert local.head == head
