"""An HTTP receiver of traces in OTLP, the protocol of OpenTelemetry."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

from msgspec import Struct
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Span(Struct, frozen=True):
    """A span as it was received."""

    name: str
    trace: bytes
    id: bytes
    parent: bytes  #: The id of its parent; empty: it is the first span of its trace.
    status: str  #: The message of its error status; empty: no error.
    attributes: dict[str, str]


class TraceReceiver:
    """Keeps every span that it receives."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.raw = b""
        self.asked = Event()  #: Set when a request has arrived.
        self.answers = Event()  #: While it is not set, requests wait for their responses.
        self.answers.set()
        self.url = ""

    def path_to(self, span: Span) -> list[Span]:
        """Return the path to a span in its trace: the first span, ..., its parent, the span."""
        by_id = {one.id: one for one in self.spans}
        path = [span]
        while parent := by_id.get(path[0].parent):
            path.insert(0, parent)
        return path

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def receive(self, body: bytes) -> None:
        self.asked.set()
        self.answers.wait()
        self.raw += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    attributes = {
                        one.key: one.value.string_value or str(one.value.int_value)
                        for one in span.attributes
                    }
                    ids = (span.trace_id, span.span_id, span.parent_span_id)
                    self.spans.append(Span(span.name, *ids, span.status.message, attributes))


@contextmanager
def trace_receiver() -> Iterator[TraceReceiver]:
    """Run a receiver on a free port of 127.0.0.1."""
    receiver = TraceReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.receive(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200 if self.path == "/v1/traces" else 404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    serving = Thread(target=server.serve_forever)
    serving.start()
    try:
        yield receiver
    finally:
        receiver.answers.set()
        server.shutdown()
        serving.join()
        server.server_close()
