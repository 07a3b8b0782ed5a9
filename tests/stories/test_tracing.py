"""A webhook is traced to what it leads to."""

from collections.abc import Iterator

import pytest

from bot.system import tracing
from bot.system.tracing import set_up_tracing, stop_tracing
from config.tables import TracingSettings
from tests.world.trace_receiver import Span, TraceReceiver, trace_receiver
from tests.world.waiting import PATIENCE, eventually
from tests.world.world import ALICE, World


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[TraceReceiver]:
    """A receiver to which all bots of this process send their spans every 50 ms."""
    for name in ("_STOP_SECONDS", "_STEP_SECONDS"):
        monkeypatch.setattr(tracing, name, 10 * PATIENCE)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    with trace_receiver() as receiver:
        set_up_tracing(TracingSettings(endpoint=receiver.url))
        yield receiver
        stop_tracing()


def causes(receiver: TraceReceiver, **attributes: str) -> list[Span]:
    """Wait for an effect with these attributes; returns the steps to it, with their names."""
    wanted = {f"mergewright.{name}": value for name, value in attributes.items()}

    def found() -> list[Span]:
        paths = map(receiver.path_to, receiver.named("effect"))
        complete = (path for path in paths if path[0].parent == b"")
        return next((p for p in complete if wanted.items() <= p[-1].attributes.items()), [])

    return eventually(found, f"an effect with {attributes}")


def test_webhooks_are_traced_to_their_effects(receiver: TraceReceiver, world: World) -> None:
    issue = world.agent_opens_a_pull_request()
    issue.pull.ci_fails("unit", log="the widget must be xyzzy")
    issue.agent.receives("xyzzy")
    repair = causes(receiver, kind="fix_ci", session=issue.id)
    # A read after the push may be the first to see the failed check, instead of the webhook's.
    assert [step.name for step in repair][-3:] == ["refresh", "decide", "effect"]
    assert repair[-2].attributes["mergewright.status"] == "ci_failed"
    reads = [receiver.path_to(read) for read in receiver.named("refresh")]
    assert ["delivery", "refresh"] in [[step.name for step in path] for path in reads]


def test_commands_are_traced_from_their_webhook(receiver: TraceReceiver, world: World) -> None:
    issue = world.agent_starts()
    issue.issue.comment("/mergewright tell Be brief", by=ALICE)
    issue.agent.receives("Be brief")
    causes(receiver, kind="forward", session=issue.id)
    (command,) = receiver.named("command")
    delivery, _ = receiver.path_to(command)
    assert delivery.attributes["mergewright.event"] == "issue_comment"
