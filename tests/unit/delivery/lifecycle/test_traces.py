"""Spans of OpenTelemetry, received by a collector; and nothing of it unless it is wanted."""

import asyncio
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from config import env
from config.env import CHECKOUT
from delivery.calls.client_thread import client_thread
from delivery.calls.http import call_for_answer
from delivery.calls.sync import exchange_message
from delivery.lifecycle.traces import Traces, traces
from delivery.models.message import public_id
from delivery.outcome import Outcome
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish_own
from delivery.senders.clock import seconds_since_boot
from delivery.senders.http.client import HttpClient
from delivery.senders.http.request import make_request
from delivery.senders.parcel import Endpoint, Parcel
from delivery.senders.read_connection import ReadConnection
from subscriptions.models import Kind
from tests.support import factories
from tests.support.collector import CollectedSpan, Collector, collecting
from tests.support.receivers import OK, Answer, Receiver
from tests.support.tls import certificate_of_localhost
from tests.unit.delivery.senders.http import test_client
from tests.unit.delivery.senders.http.test_client import LOOPBACK, endpoint

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
PARCEL = replace(test_client.PARCEL, attempts=0)
MESSAGE_ID = PARCEL.message_id


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector to which this process exports its traces."""
    with collecting() as collector:
        wanted = replace(settings.ENVIRONMENT, traces_url=collector.url)
        monkeypatch.setattr(settings, "ENVIRONMENT", wanted)
        traces.cache_clear()
        yield collector
        found().close()
        traces.cache_clear()


def found() -> Traces:
    tracing = traces()
    assert tracing is not None
    return tracing


def sent(parcel: Parcel, to: Endpoint) -> Outcome:
    async def sending() -> Outcome:
        async with HttpClient(allowed_networks=LOOPBACK) as client:
            return await client.send(parcel, to)

    return asyncio.run(sending())


def published(headers: Mapping[str, str]) -> None:
    found().record_publish(MESSAGE_ID, PARCEL.event, headers, times=(10, 20))


def continued(headers: Mapping[str, str]) -> tuple[str, str]:
    """Return trace and span that a request's receiver continues."""
    _, trace, span, flags = {name.lower(): text for name, text in headers.items()}[
        "traceparent"
    ].split("-")
    assert flags == "01"
    return trace, span


def place(span: CollectedSpan) -> tuple[str, str]:
    return span.trace_id, span.span_id


@pytest.mark.parametrize("headers", [{"traceparent": PARENT}, {}])
def test_publishing_and_the_first_attempt_are_one_trace(
    collector: Collector, receiver: Receiver, headers: dict[str, str]
) -> None:
    hook = receiver.endpoint("hook")
    published(headers)
    sent(replace(PARCEL, headers=headers or None), endpoint(hook.url))
    found().flush()
    publish, deliver = collector.wait_for(2)
    assert publish.name == f"publish {PARCEL.event}"
    assert publish.parent_id == (SPAN if headers else "")
    if headers:
        assert publish.trace_id == TRACE
    assert deliver.name == f"deliver {PARCEL.event}"
    assert (deliver.trace_id, deliver.parent_id) == place(publish)
    assert continued(hook.received[0].headers) == place(deliver)
    assert deliver.attributes["messaging.message.id"] == public_id(MESSAGE_ID)
    assert deliver.attributes["http.response.status_code"] == 200
    assert deliver.attributes["inturn.phase.connect_ms"] > 0
    assert deliver.attributes["inturn.phase.first_byte_ms"] > 0
    assert {publish.service, deliver.service} == {"inturn"}


def test_a_retry_is_a_trace_of_its_own_with_links(collector: Collector, receiver: Receiver) -> None:
    hook = receiver.endpoint("hook")
    hook.next(Answer(503), OK)
    published({})
    for attempts in (0, 1):
        sent(replace(PARCEL, attempts=attempts), endpoint(hook.url))
    found().flush()
    publish, first, second = collector.wait_for(3)
    assert (first.is_error, second.is_error) == (True, False)
    assert second.parent_id == ""
    assert second.trace_id != first.trace_id
    assert second.links == (place(publish), place(first))
    assert [continued(got.headers) for got in hook.received] == [place(first), place(second)]


def test_a_publishers_decision_not_to_sample_is_kept(
    collector: Collector, receiver: Receiver
) -> None:
    hook = receiver.endpoint("hook")
    unsampled = {"traceparent": PARENT[:-2] + "00"}
    published(unsampled)
    sent(replace(PARCEL, headers=unsampled), endpoint(hook.url))
    published({})
    found().flush()
    (publish,) = collector.wait_for(1)
    assert publish.parent_id == ""
    assert hook.received[0].headers["traceparent"].endswith("-00")


@pytest.mark.django_db
def test_each_stored_message_is_traced(collector: Collector) -> None:
    event_type = factories.event_type("Traced")
    (accepted,) = publish_own(
        [Draft(event_type=event_type, headers={"traceparent": PARENT}, body=b"{}")]
    )
    found().flush()
    (publish,) = collector.wait_for(1)
    assert publish.attributes["messaging.message.id"] == public_id(accepted.message_id)
    assert (publish.trace_id, publish.parent_id) == (TRACE, SPAN)


@pytest.mark.django_db
def test_a_sync_call_is_one_trace_with_its_message(
    collector: Collector, receiver: Receiver
) -> None:
    hook = receiver.endpoint("hook")
    event_type = factories.event_type("Asked", kind=Kind.SYNC)
    factories.subscription(event_type=event_type, endpoint=hook.url)
    draft = Draft(event_type=event_type, headers={"traceparent": PARENT}, body=b"{}")
    exchange_message(factories.publisher(), draft)
    found().flush()
    publish, deliver = collector.wait_for(2)
    assert (publish.trace_id, publish.parent_id) == (TRACE, SPAN)
    assert (deliver.trace_id, deliver.parent_id) == place(publish)
    assert continued(hook.received[0].headers) == place(deliver)


@pytest.fixture
def secure_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of localhost whose certificate is trusted, and which answers 204."""

    class NoContent(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    certificate, context = certificate_of_localhost(tmp_path)
    trusting = ssl.create_default_context(cafile=str(certificate))
    # Made when aiohttp is imported; there is no other way to its trust.
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trusting)
    with ThreadingHTTPServer(("127.0.0.1", 0), NoContent) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"https://localhost:{server.server_port}/hook"
        server.shutdown()
        thread.join()


def test_an_attempt_on_a_new_connection_has_all_phases(
    collector: Collector, secure_url: str
) -> None:
    assert sent(PARCEL, endpoint(secure_url)).status_code == 204
    found().flush()
    (deliver,) = collector.wait_for(1)
    phases = {
        name.removeprefix("inturn.phase.").removesuffix("_ms"): took
        for name, took in deliver.attributes.items()
        if name.startswith("inturn.phase.")
    }
    assert set(phases) == {"resolve", "connect", "tls", "first_byte"}
    assert min(phases.values()) > 0


def test_an_attempt_has_the_time_since_it_was_due(collector: Collector, receiver: Receiver) -> None:
    due_at = seconds_since_boot() - 60
    sent(replace(PARCEL, due_at=due_at), endpoint(receiver.endpoint("hook").url))
    most = 1000 * (seconds_since_boot() - due_at)
    found().flush()
    (deliver,) = collector.wait_for(1)
    assert 60_000 <= deliver.attributes["inturn.phase.queue_ms"] <= most


def test_a_sender_that_traces_reads_since_when_deliveries_are_due(collector: Collector) -> None:
    assert ReadConnection(name="inturn reader test").is_traced


def test_a_sender_that_does_not_trace_reads_nothing_for_it() -> None:
    assert not ReadConnection(name="inturn reader test").is_traced


def called(parcel: Parcel, to: Endpoint) -> Outcome:
    request = make_request(parcel, to, now=datetime.now(UTC))
    return call_for_answer(request, client=client_thread(allowed_networks=LOOPBACK)).outcome


@pytest.mark.parametrize("way", [sent, called])
def test_without_a_collector_the_publishers_trace_is_handed_on(
    receiver: Receiver, way: Any
) -> None:
    hook = receiver.endpoint("hook")
    headers = {"traceparent": PARENT, "tracestate": "a=1", "x-a": "1"}
    way(replace(PARCEL, headers=headers), endpoint(hook.url))
    way(replace(PARCEL, headers=headers), endpoint(hook.url, headers={"Traceparent": "own"}))
    first, second = hook.received
    assert first.headers["traceparent"] == PARENT
    assert first.headers["tracestate"] == "a=1"
    assert "x-a" not in {name.lower() for name in first.headers}
    assert second.headers["traceparent"] == "own"


def test_nothing_of_opentelemetry_is_imported_unless_it_is_wanted() -> None:
    program = (
        "import sys, django; django.setup();"
        "import config.web.rsgi, delivery.senders.sender;"
        "from delivery.lifecycle.traces import traces; assert traces() is None;"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], cwd=CHECKOUT, check=False).returncode == 0
    )


def test_traces_without_their_packages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    url = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    assert env.read_environment(url).traces_url == url["OTEL_EXPORTER_OTLP_ENDPOINT"]
    monkeypatch.setattr("config.env.TRACING_PACKAGES", ("opentelemetry.nothing.of.this",))
    with pytest.raises(ImproperlyConfigured, match="the extra `otel`"):
        env.read_environment(url)
    with pytest.raises(ImproperlyConfigured, match="like http"):
        env.read_environment({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector"})
