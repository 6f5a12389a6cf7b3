"""Traces of a started product: the web server and the senders make one trace together."""

from collections.abc import Iterator

import pytest

from tests.support.collector import Collector, collecting
from tests.support.product import Flow, Product
from tests.support.receivers import OK, Answer, Receiver

pytestmark = pytest.mark.slow

# Of the second that the receiver asks for, with all deviation that a policy allows.
PAUSE_MS = 800

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture(scope="module")
def traced(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = Product(
        tmp_path_factory.mktemp("traced"),
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        OTEL_BSP_SCHEDULE_DELAY="100",
        OTEL_SERVICE_NAME="hooks",
    )
    try:
        product.start()
        yield product
    finally:
        product.kill_all()


def test_a_trace_goes_from_the_publisher_by_two_processes_to_the_receiver(
    traced: Product, collector: Collector, receiver: Receiver
) -> None:
    flow: Flow = traced.flow("Traced")
    to = flow.subscribe(receiver.endpoint("hook"), policy="standard-webhooks")
    to.endpoint.next(Answer(503, headers={"Retry-After": "1"}), OK)
    flow.publish(b"{}", traceparent=f"00-{TRACE}-{SPAN}-01")
    first_got, second_got = to.endpoint.wait_for_count(2)
    spans = {
        (span.name.partition(" ")[0], span.attributes.get("inturn.attempt")): span
        for span in collector.wait_for(3)
        if span.attributes["messaging.destination.name"] == flow.event_type
    }
    publish, first, retry = spans["publish", None], spans["deliver", 1], spans["deliver", 2]
    assert (publish.trace_id, publish.parent_id) == (TRACE, SPAN)
    assert (first.trace_id, first.parent_id) == (TRACE, publish.span_id)
    assert first_got.headers["traceparent"] == f"00-{TRACE}-{first.span_id}-01"
    assert second_got.headers["traceparent"] == f"00-{retry.trace_id}-{retry.span_id}-01"
    assert retry.links == (
        (publish.trace_id, publish.span_id),
        (first.trace_id, first.span_id),
    )
    assert first.attributes["inturn.phase.queue_ms"] > 0
    between_ms = (retry.began_ns - first.began_ns) / 1_000_000
    # The pause before a retry is no part of its queue.
    assert 0 <= retry.attributes["inturn.phase.queue_ms"] < between_ms - PAUSE_MS
    assert {span.service for span in spans.values()} == {"hooks"}
