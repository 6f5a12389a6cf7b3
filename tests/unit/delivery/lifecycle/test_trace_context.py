"""W3C trace context: continued contexts, forwarded headers, and derived ids."""

import pytest

from delivery.lifecycle.trace_context import (
    SpanIds,
    TraceContext,
    TracedAttempt,
    handed_on,
    received_context,
)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


def test_a_publishers_trace_is_read() -> None:
    found = received_context({"traceparent": PARENT, "tracestate": "a=1"})
    assert found == TraceContext(int(TRACE, 16), int(SPAN, 16), is_sampled=True, state="a=1")
    assert found.headers() == {"traceparent": PARENT, "tracestate": "a=1"}


def test_a_trace_that_is_not_sampled_stays_so() -> None:
    found = received_context({"traceparent": PARENT[:-2] + "00"})
    assert found is not None
    assert found.headers() == {"traceparent": PARENT[:-2] + "00"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        PARENT.upper(),
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"{PARENT}-more",
    ],
)
def test_an_invalid_trace_is_dropped(text: str) -> None:
    assert received_context({"traceparent": text}) is None
    assert handed_on({"traceparent": text, "tracestate": "a=1"}) == {}


def test_a_later_version_may_have_more_fields() -> None:
    assert received_context({"traceparent": f"01-{TRACE}-{SPAN}-01-more"}) is not None


def test_a_publishers_trace_is_handed_on_unchanged() -> None:
    later = f"01-{TRACE}-{SPAN}-01-more"
    assert handed_on({"traceparent": later, "x-a": "1"}) == {"traceparent": later}


def test_each_span_has_ids_of_its_own_that_every_process_derives() -> None:
    def attempt(delivery_id: int, number: int) -> TracedAttempt:
        return TracedAttempt(
            message_id=1, delivery_id=delivery_id, number=number, event="A", headers={}
        )

    ids, same, others = SpanIds("key"), SpanIds("key"), SpanIds("another")
    attempts = [attempt(delivery, number) for delivery in range(3) for number in range(1, 3)]
    spans = [ids.span_of_attempt(number) for number in attempts]
    assert len({*spans, ids.span_of_message(1), ids.span_of_message(2)}) == 8
    assert spans == [same.span_of_attempt(number) for number in attempts]
    assert set(spans).isdisjoint(others.span_of_attempt(number) for number in attempts)
    traces = [ids.trace_of_attempt(number) for number in attempts]
    assert len({*traces, ids.trace_of_message(1), ids.trace_of_message(2)}) == 8
    assert max(spans) < 2**64
    assert max(traces) < 2**128
