"""Traces with OpenTelemetry: deliveries, then refreshes, commands, decisions and effects.

Unless `tracing.endpoint` is set, tracing is off and the library is not loaded. A step passes its
trace on to the next step under the name of that step's subject: a subject at GitHub, a command, a
session or an action. The names are kept in memory, so work that a restart interrupts gets a new
trace.
"""

import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from config.tables import TracingSettings

if TYPE_CHECKING:  # An extra that need not be installed.
    from opentelemetry.trace import SpanContext

#: How long a trace can be continued. A later step has another cause, such as a timer.
_STEP_SECONDS = 60.0
#: The same for actions, which wait for longer and whose names no other cause has.
ACTION_SECONDS = 3600.0
_MOST_NAMES = 10_000
#: How long the last spans may take to be sent when the bot stops.
_STOP_SECONDS = 2.0


class TracingUnavailable(Exception):
    """Traces are configured but cannot be sent; the message says what to do."""


class _Traces:
    """Sends spans to one receiver. Keeps traces by name, so that a later step can continue them."""

    def __init__(self, endpoint: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        named = {"service.name": "mergewright", "service.version": version("mergewright")}
        self._provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
        exporter = OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("mergewright")
        #: By name: the step to continue, and until when, in seconds of the monotonic clock.
        self._steps: OrderedDict[str, tuple[SpanContext, float]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def span(self, name: str, about: str, attributes: Mapping[str, str | int]) -> Iterator[None]:
        from opentelemetry.trace import NonRecordingSpan, StatusCode, set_span_in_context

        before = self._step(about)
        with self._tracer.start_as_current_span(
            name,
            set_span_in_context(NonRecordingSpan(before)) if before else None,
            attributes=_named(attributes),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield
            except Exception as error:
                # Its text may contain secrets.
                span.set_status(StatusCode.ERROR, type(error).__name__)
                raise

    def hand_on(self, names: Iterable[str], seconds: float) -> None:
        from opentelemetry.trace import get_current_span

        step = get_current_span().get_span_context()
        if not step.is_valid:
            return
        with self._lock:
            for name in names:
                self._steps[name] = step, time.monotonic() + seconds
                self._steps.move_to_end(name)
            while len(self._steps) > _MOST_NAMES:
                self._steps.popitem(last=False)

    def _step(self, name: str) -> "SpanContext | None":
        with self._lock:
            step, until = self._steps.get(name, (None, 0.0))
        return step if time.monotonic() < until else None

    def stop(self) -> None:
        last = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        last.start()
        last.join(_STOP_SECONDS)


class _Active:
    traces: _Traces | None = None  #: If None, nothing is traced.


_active = _Active()


def set_up_tracing(settings: TracingSettings) -> None:
    """Send traces as configured from now on, or stop if the endpoint is empty.

    Raises `TracingUnavailable`. The library reads its other settings, such as headers and the
    sampler, from the environment:
    https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
    """
    stop_tracing()
    if not settings.endpoint:
        return
    try:
        _active.traces = _Traces(settings.endpoint)
    except ImportError as error:
        raise TracingUnavailable(
            f"tracing.endpoint needs a part that is not installed ({error}):"
            f" {sys.executable} -m pip install 'mergewright[tracing]'"
        ) from None


def stop_tracing() -> None:
    """Send the last spans, for at most two seconds, and stop tracing."""
    traces, _active.traces = _active.traces, None
    if traces is not None:
        traces.stop()


@contextmanager
def span(name: str, about: str = "", **attributes: str | int) -> Iterator[None]:
    """Trace a step. It continues the trace passed on under the name `about`, or the current one.

    Begins a new trace if there is neither.
    """
    traces = _active.traces
    if traces is None:
        yield
        return
    with traces.span(name, about, attributes):
        yield


def note(**attributes: str | int) -> None:
    """Add attributes to the current step's span. Empty values are omitted."""
    if _active.traces is not None:
        from opentelemetry.trace import get_current_span

        get_current_span().set_attributes(_named(attributes))


def hand_on(names: Iterable[str], seconds: float | None = None) -> None:
    """Pass the current trace on under each of `names`, such as the ID of a session.

    For `seconds`, by default 60, a call of `span` with one of these names as `about` continues the
    trace. Call `hand_on` before you store the work that such a span is to trace, because another
    thread may start that work at once.
    """
    traces = _active.traces
    if traces is not None:
        traces.hand_on(names, _STEP_SECONDS if seconds is None else seconds)


def _named(attributes: Mapping[str, str | int]) -> dict[str, str | int]:
    return {f"mergewright.{name}": value for name, value in attributes.items() if value}
