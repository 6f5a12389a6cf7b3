"""A collector of OpenTelemetry's traces, which receives spans over HTTP as a real collector."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

DEADLINE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class CollectedSpan:
    """A span; ids are hexadecimal. `links` are pairs of trace and span.

    It began `began_ns` nanoseconds after the beginning of 1970.
    """

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    began_ns: int
    links: tuple[tuple[str, str], ...]
    attributes: dict[str, Any]
    is_error: bool
    service: str


class Collector:
    """The spans in order of arrival."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[CollectedSpan] = []
        self.arrived = threading.Condition()

    def wait_for(self, count: int) -> list[CollectedSpan]:
        """Wait until so many spans have arrived, and return all."""
        with self.arrived:
            found = self.arrived.wait_for(lambda: len(self.spans) >= count, DEADLINE_SECONDS)
            assert found, f"{len(self.spans)} of {count} spans arrived"
            return list(self.spans)

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self.arrived:
            self.spans += _spans(request)
            self.arrived.notify_all()


@contextmanager
def collecting() -> Iterator[Collector]:
    """Run a collector on a free port of the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            is_packed = self.headers.get("Content-Encoding") == "gzip"
            assert self.path == "/v1/traces"
            collector.take(gzip.decompress(body) if is_packed else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def _spans(request: Any) -> Iterator[CollectedSpan]:
    for of_resource in request.resource_spans:
        resource = _values(of_resource.resource.attributes)
        for scope in of_resource.scope_spans:
            for span in scope.spans:
                yield CollectedSpan(
                    name=span.name,
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    began_ns=span.start_time_unix_nano,
                    links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
                    attributes=_values(span.attributes),
                    is_error=span.status.code == 2,
                    service=resource["service.name"],
                )


def _values(attributes: Any) -> dict[str, Any]:
    return {
        attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value"))
        for attribute in attributes
    }
