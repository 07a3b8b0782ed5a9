"""Spans, as a real receiver gets them."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from bot.system import tracing
from bot.system.tracing import TracingUnavailable, hand_on, note, set_up_tracing, span, stop_tracing
from config.tables import TracingSettings
from tests.world.trace_receiver import TraceReceiver, trace_receiver
from tests.world.waiting import PATIENCE, eventually


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[TraceReceiver]:
    """A receiver that gets the spans."""
    monkeypatch.setattr(tracing, "_STOP_SECONDS", PATIENCE)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", str(PATIENCE))
    with trace_receiver() as receiver:
        set_up_tracing(TracingSettings(endpoint=f"{receiver.url}/"))
        yield receiver
        stop_tracing()


def test_a_step_continues_the_one_that_was_handed_on(receiver: TraceReceiver) -> None:
    with span("delivery", event="issues", number=0):
        hand_on(["acme/widgets issue:12", "acme/widgets issue:13"])
    with span("refresh", "acme/widgets issue:13"):
        note(number=13)
    with span("refresh", "acme/widgets issue:14"):
        pass
    stop_tracing()
    (delivery,) = receiver.named("delivery")
    assert delivery.attributes == {"mergewright.event": "issues"}
    continued, other = receiver.named("refresh")
    assert receiver.path_to(continued) == [delivery, continued]
    assert continued.trace == delivery.trace
    assert continued.attributes == {"mergewright.number": "13"}
    assert other.parent == b""
    assert other.trace != delivery.trace
    assert b"mergewright" in receiver.raw


def test_what_begins_too_late_has_another_cause(receiver: TraceReceiver) -> None:
    with span("refresh"):
        hand_on(["widgets-12"], seconds=0.0)
    with span("decide", "widgets-12"):
        pass
    stop_tracing()
    (late,) = receiver.named("decide")
    assert late.parent == b""


def test_only_the_type_of_an_error_is_sent(receiver: TraceReceiver) -> None:
    with pytest.raises(ValueError, match="secret"), span("effect"):
        raise ValueError("the secret")
    stop_tracing()
    (failed,) = receiver.named("effect")
    assert failed.status == "ValueError"
    assert b"secret" not in receiver.raw


def test_only_so_many_steps_are_remembered(
    receiver: TraceReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "_MOST_NAMES", 2)
    with span("delivery"):
        hand_on(["first", "second", "third"])
    for name in ("first", "third"):
        with span(name, name):
            pass
    stop_tracing()
    assert [bool(one.parent) for one in receiver.spans if one.name != "delivery"] == [False, True]


def test_a_receiver_that_hangs_does_not_keep_the_bot_from_stopping(
    receiver: TraceReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "_STOP_SECONDS", 0.01)
    receiver.answers.clear()
    with span("effect"):
        pass
    stop_tracing()
    assert "last spans" in [thread.name for thread in threading.enumerate()]
    eventually(receiver.asked.is_set, "the request")
    assert receiver.spans == []


def test_the_missing_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(TracingUnavailable, match=r"-m pip install 'mergewright\[tracing\]'"):
        set_up_tracing(TracingSettings(endpoint="http://127.0.0.1:1"))


def test_nothing_is_loaded_where_nothing_is_traced() -> None:
    script = """
import sys
from bot.system.tracing import hand_on, note, set_up_tracing, span, stop_tracing
from config.tables import TracingSettings
def names():
    print("asked for names")
    yield "widgets-12"
set_up_tracing(TracingSettings())
with span("delivery"):
    note(number=1)
    hand_on(names())
stop_tracing()
sys.exit(any(name.startswith("opentelemetry") for name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
