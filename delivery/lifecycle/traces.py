"""The spans of OpenTelemetry: publishing a message, and each attempt to deliver it.

    publisher's span ─▶ publish {event} ─▶ deliver {event} ─▶ receiver's span
                              ▲─ link ─── deliver {event}, a retry: a trace of its own

A retry may come days later, so it is a separate trace, with links to the message and to the attempt
before. Spans are recorded when they are over. Nothing of OpenTelemetry is imported unless
`OTEL_EXPORTER_OTLP_ENDPOINT` is set; the SDK reads the other variables itself.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, cast

from django.conf import settings

from delivery.lifecycle.trace_context import SpanIds, TraceContext, TracedAttempt, received_context
from delivery.outcome import Outcome
from delivery.states import OutcomeClass

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace.id_generator import IdGenerator
    from opentelemetry.trace import Link, SpanContext

Attributes = Mapping[str, str | int | float]


class Traces:
    """Records and exports the spans of this process, in a separate thread."""

    def __init__(self, *, url: str, key: str, version: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        self._derived = SpanIds(key)
        self._next = _NextIds()
        resource = Resource.create({SERVICE_VERSION: version})
        if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: "inturn"}))
        self._provider = TracerProvider(
            resource=resource, id_generator=cast("IdGenerator", self._next)
        )
        exporter = OTLPSpanExporter(endpoint=f"{url.rstrip('/')}/v1/traces")
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("inturn", version)

    def record_publish(
        self, message_id: int, event: str, headers: Mapping[str, str], *, times: tuple[int, int]
    ) -> None:
        """Record the storing of a message; `times` are begin and end, nanoseconds since 1970."""
        self._record(
            _FinishedSpan(
                name=f"publish {event}",
                place=self._of_message(message_id, headers),
                parent=received_context(headers),
                times=times,
                attributes=_message_attributes(message_id, event, operation="publish"),
            )
        )

    def attempt_headers(self, attempt: TracedAttempt) -> dict[str, str]:
        """Return the headers by which the receiver's spans continue the attempt's trace."""
        return self._of_attempt(attempt).headers()

    def record_attempt(
        self, attempt: TracedAttempt, outcome: Outcome, *, phases: Mapping[str, float]
    ) -> None:
        """Record an attempt with the outcome; `phases` are seconds, by the name of the phase."""
        began_ns = _nanoseconds(outcome.started_at)
        attributes: dict[str, str | int | float] = {
            **_message_attributes(attempt.message_id, attempt.event, operation="deliver"),
            "inturn.delivery.id": attempt.delivery_id,
            "inturn.attempt": attempt.number,
            "inturn.outcome": outcome.outcome.value,
            **{f"inturn.phase.{name}_ms": round(1000 * phases[name], 3) for name in phases},
        }
        if outcome.status_code is not None:
            attributes["http.response.status_code"] = outcome.status_code
        self._record(
            _FinishedSpan(
                name=f"deliver {attempt.event}",
                is_call=True,
                place=self._of_attempt(attempt),
                parent=self._parent(attempt),
                links=self._links(attempt),
                times=(began_ns, began_ns + outcome.duration_ms * 1_000_000),
                attributes=attributes,
                fault="" if outcome.outcome is OutcomeClass.SUCCESS else outcome.reason,
            )
        )

    def flush(self) -> None:
        """Export the recorded spans, as long as the collector answers in time."""
        self._provider.force_flush(2_000)

    def close(self) -> None:
        """Export the rest, and end the exporting thread."""
        self._provider.shutdown()

    def _of_message(self, message_id: int, headers: Mapping[str, str]) -> TraceContext:
        """Return the place of the span of publishing."""
        received = received_context(headers)
        span_id = self._derived.span_of_message(message_id)
        if received is not None:
            return TraceContext(received.trace_id, span_id, received.is_sampled, received.state)
        trace_id = self._derived.trace_of_message(message_id)
        return TraceContext(trace_id, span_id, self._is_sampled(trace_id))

    def _of_attempt(self, attempt: TracedAttempt) -> TraceContext:
        span_id = self._derived.span_of_attempt(attempt)
        parent = self._parent(attempt)
        if parent is not None:
            return TraceContext(parent.trace_id, span_id, parent.is_sampled, parent.state)
        trace_id = self._derived.trace_of_attempt(attempt)
        return TraceContext(trace_id, span_id, self._is_sampled(trace_id))

    def _parent(self, attempt: TracedAttempt) -> TraceContext | None:
        if attempt.number > 1:
            return None
        return self._of_message(attempt.message_id, attempt.headers)

    def _links(self, attempt: TracedAttempt) -> Sequence[TraceContext]:
        if attempt.number == 1:
            return ()
        before = replace(attempt, number=attempt.number - 1)
        return self._of_message(attempt.message_id, attempt.headers), self._of_attempt(before)

    def _is_sampled(self, trace_id: int) -> bool:
        """Return the decision of the sampler about a trace begun here."""
        result = self._provider.sampler.should_sample(None, trace_id, "")
        return bool(result.decision.is_sampled())  # type: ignore[no-untyped-call]

    def _record(self, span: "_FinishedSpan") -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode

        self._next.given = span.place
        started = self._tracer.start_span(
            span.name,
            context=_context(span.parent),
            kind=SpanKind.CLIENT if span.is_call else SpanKind.PRODUCER,
            attributes=span.attributes,
            links=[_link(link) for link in span.links],
            start_time=span.times[0],
        )
        if span.fault:
            started.set_status(Status(StatusCode.ERROR, span.fault))
        started.end(span.times[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _FinishedSpan:
    name: str
    place: TraceContext
    parent: TraceContext | None
    times: tuple[int, int]
    attributes: Attributes
    links: Sequence[TraceContext] = ()
    is_call: bool = False
    fault: str = ""


@cache
def traces() -> Traces | None:
    """Return the traces of this process; None unless they are exported."""
    url: str = settings.ENVIRONMENT.traces_url
    if not url:
        return None
    return Traces(url=url, key=settings.SECRET_KEY, version=settings.VERSION)


def flush_traces() -> None:
    """Export the spans recorded by this process, before it ends."""
    tracing = traces()
    if tracing is not None:
        tracing.flush()


# The exporting thread is not in a forked process.
os.register_at_fork(after_in_child=traces.cache_clear)


class _NextIds(threading.local):
    """The ids of this thread's next span; OpenTelemetry's generator of ids."""

    given = TraceContext(1, 1, is_sampled=False)

    def generate_span_id(self) -> int:
        return self.given.span_id

    def generate_trace_id(self) -> int:
        return self.given.trace_id

    def is_trace_id_random(self) -> bool:
        return True


def _message_attributes(message_id: int, event: str, *, operation: str) -> dict[str, str | int]:
    return {
        "messaging.system": "inturn",
        "messaging.operation.name": operation,
        "messaging.destination.name": event,
        "messaging.message.id": f"msg_{message_id}",
    }


def _context(parent: TraceContext | None) -> "Context":
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    if parent is None:
        return Context()
    return set_span_in_context(NonRecordingSpan(_span_context(parent)), Context())


def _link(place: TraceContext) -> "Link":
    from opentelemetry.trace import Link

    return Link(_span_context(place))


def _span_context(place: TraceContext) -> "SpanContext":
    from opentelemetry.trace import SpanContext, TraceFlags, TraceState

    return SpanContext(
        trace_id=place.trace_id,
        span_id=place.span_id,
        is_remote=True,
        trace_flags=TraceFlags(place.is_sampled),
        trace_state=TraceState.from_header([place.state]) if place.state else None,
    )


def _nanoseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000) * 1_000
