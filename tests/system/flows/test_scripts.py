"""Scripts in the started product: requests at receivers, and SYNC answers to publishers."""

import json

import pytest
import requests
from standardwebhooks.webhooks import Webhook

from delivery.senders.entries import MOST_OUTPUTS
from tests.support.product import Flow, Product
from tests.support.receivers import Answer, Receiver
from tests.system.operation.installation import eventually

# The vendor's samples: a map of fields, and an artifact's id appended to the endpoint's path.
MAPPED = """
var fields = $inmessage.updated;
$outmessage = { key: fields.id, summary: fields.title };
"""
ADDRESSED = "$param = $inmessage.updated.id;"
ARTIFACT = b'{"updated": {"id": "artf 1/2", "title": "Gr\\u00f6\\u00dfe"}}'
HANGS = "while (true) {}"


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("Scripts")


def test_a_script_maps_fields_and_what_it_made_is_signed(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("mapped"), script=MAPPED)
    flow.publish(ARTIFACT)
    (request,) = of.endpoint.wait_for_count(1)
    assert request.body.decode() == '{"key":"artf 1/2","summary":"Größe"}'
    Webhook(of.secret).verify(request.body, dict(request.headers))


def test_param_is_appended_to_the_path_and_the_message_is_sent_as_it_is(
    flow: Flow, receiver: Receiver
) -> None:
    base = receiver.endpoint("artifacts").url
    found = receiver.endpoint("artifacts/artf 1/2")
    flow.subscribe(
        receiver.endpoint("artifacts"), script=ADDRESSED, endpoint=f"PATCH:{base}?quiet=1"
    )
    flow.publish(ARTIFACT)
    (request,) = found.wait_for_count(1)
    assert (request.method, request.path, request.body) == (
        "PATCH",
        "/artifacts/artf%201%2F2?quiet=1",
        ARTIFACT,
    )


def test_headers_of_the_message_are_read_and_headers_of_the_request_made(
    product: Product, receiver: Receiver
) -> None:
    flow = product.flow("ScriptText", content_type="text/plain")
    script = (
        "$outheader = {'X-Project': $inheader['FILTER_STRING']}; $outmessage = $inmessage.length;"
    )
    of = flow.subscribe(
        receiver.endpoint("headers"), script=script, headers={"x-project": "none", "x-own": "1"}
    )
    flow.publish(b"no JSON", FILTER_STRING="proj1008", content_type="text/plain")
    (request,) = of.endpoint.wait_for_count(1)
    assert (request.headers["X-Project"], request.headers["x-own"]) == ("proj1008", "1")
    assert (request.headers["Content-Type"], request.body) == ("application/json", b"7")


def test_each_attempt_and_resubmission_sends_the_same_bytes_though_the_script_has_changed(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(
        receiver.endpoint("same"), script="$outmessage = {made: Math.random()};", policy="strict"
    )
    of.endpoint.next(Answer(500), Answer(404))
    message = flow.publish()
    of.endpoint.wait_for_count(1)
    flow.rest.patch(f"subscriptions/{of.id}", {"script": "$outmessage = 'other';"})
    first, second = of.endpoint.wait_for_count(2)
    flow.rest.patch(f"subscriptions/{of.id}", {"script": ""})
    eventually(lambda: flow.delivery(of, message)["status"] == "REJECTED", "it is rejected")
    flow.rest.post(f"deliveries/{flow.delivery(of, message)['id']}/resubmit", {})
    third = of.endpoint.wait_for_count(3)[2]
    assert first.body == second.body == third.body
    assert first.body.startswith(b'{"made":')
    for request in (first, second, third):
        Webhook(of.secret).verify(request.body, dict(request.headers))
    flow.publish(b'{"later": true}')
    assert of.endpoint.wait_for_count(4)[3].body == b'{"later": true}'


def test_a_script_that_fails_settles_its_delivery_and_the_lane_goes_on(
    flow: Flow, receiver: Receiver
) -> None:
    script = "if ($inmessage.number === 1) {\n\n    $inmessage.none.at = 1;\n}"
    of = flow.subscribe(receiver.endpoint("fails"), script=script)
    ids = flow.publish_numbered(3)
    assert [request.id for request in of.endpoint.wait_for_count(2)] == [ids[0], ids[2]]
    assert flow.wait_until_settled(of) == ["DELIVERED", "FAILED", "DELIVERED"]
    failed = flow.delivery(of, ids[1])
    assert failed["reason"].startswith("script: line 3: TypeError: ")
    assert [attempt["outcome"] for attempt in failed["attempts"]] == ["SCRIPT"]
    flow.rest.patch(f"subscriptions/{of.id}", {"script": "$outmessage = 'mended';"})
    flow.rest.post(f"deliveries/{failed['id']}/resubmit", {})
    assert of.endpoint.wait_for_count(3)[2].body == b"mended"


def test_a_failed_script_is_reported_to_subscribers_of_failures(
    flow: Flow, receiver: Receiver
) -> None:
    reported = flow.subscribe(
        receiver.endpoint("reported"),
        event_type="Inturn.Delivery.Failed",
        filter=f"$$->'Body'->>'event' = '{flow.event_type}'",
    )
    flow.subscribe(receiver.endpoint("fails"), script="throw 'no';")
    flow.publish()
    (request,) = reported.endpoint.wait_for_count(1)
    body = json.loads(request.body)
    assert (body["status"], body["attempt"]["outcome"], body["attempt"]["error"]) == (
        "FAILED",
        "SCRIPT",
        "it threw a value",
    )


def test_a_script_that_hangs_delays_its_own_lane_only(flow: Flow, receiver: Receiver) -> None:
    hanging = flow.subscribe(receiver.endpoint("hangs"), script=HANGS)
    scripted = flow.subscribe(receiver.endpoint("scripted"), script="$outmessage = 1;")
    plain = flow.subscribe(receiver.endpoint("plain"))
    flow.publish_numbered(6)
    scripted.endpoint.wait_for_count(6)
    plain.endpoint.wait_for_count(6)
    assert "PENDING" in flow.statuses(hanging)
    assert set(flow.wait_until_settled(hanging)) == {"FAILED"}
    assert hanging.endpoint.received == []
    reason = flow.deliveries(hanging)[0]["reason"]
    assert reason == "script: line 1: stopped after 500 ms of processor time"


def test_a_backlog_longer_than_a_batch_of_scripts_is_sent_in_order_once(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(
        receiver.endpoint("backlog"),
        script="$outmessage = {number: $inmessage.number + 1000};",
        status="HELD",
    )
    flow.publish_numbered(3 * MOST_OUTPUTS)
    flow.rest.patch(f"subscriptions/{of.id}", {"status": "ACTIVE"})
    assert set(flow.wait_until_settled(of)) == {"DELIVERED"}
    numbers = [json.loads(request.body)["number"] for request in of.endpoint.received]
    assert numbers == list(range(1000, 1000 + 3 * MOST_OUTPUTS))


def test_a_concurrent_subscriber_has_its_scripts_executed(flow: Flow, receiver: Receiver) -> None:
    owner = flow.subscriber("concurrent", processing="CONCURRENT", max_in_flight=5)
    of = flow.subscribe(
        receiver.endpoint("concurrent"),
        subscriber=owner,
        script="$outmessage = {number: $inmessage.number + 100};",
    )
    of.endpoint.next(Answer(503))
    flow.publish_numbered(30)
    assert set(flow.wait_until_settled(of)) == {"DELIVERED"}
    numbers = {json.loads(request.body)["number"] for request in of.endpoint.accepted}
    assert numbers == set(range(100, 130))


@pytest.fixture
def sync_flow(product: Product) -> Flow:
    return product.flow("ScriptSync", kind="SYNC")


def answering(flow: Flow, script: str, **fields: object) -> None:
    values = {"name": "rule", "subscriber": flow.subscriber("rule"), "event_type": flow.event_type}
    flow.rest.post("subscriptions", {**values, "endpoint": "webr://", "script": script, **fields})


def ask(flow: Flow) -> requests.Response:
    headers = {"Content-Type": "application/json"}
    return flow.publisher.ask(
        "POST", f"events/{flow.event_type}/messages", body=ARTIFACT, headers=headers
    )


def test_a_response_script_answers_the_publisher(sync_flow: Flow) -> None:
    answering(sync_flow, "$statuscode = 400; $outmessage = {refused: $inmessage.updated.title};")
    answer = ask(sync_flow)
    assert (answer.status_code, answer.json()) == (400, {"refused": "Größe"})
    assert answer.headers["Content-Type"] == "application/json"
    (delivery,) = sync_flow.rest.get(f"messages/{answer.headers['inturn-message']}")["deliveries"]
    assert (delivery["status"], len(delivery["attempts"])) == ("REJECTED", 1)


def test_a_response_script_without_output_answers_200(sync_flow: Flow) -> None:
    answering(sync_flow, "var nothing;")
    answer = ask(sync_flow)
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("script", ["$inmessage.none.at = 1;", HANGS, "'x'.repeat(1e9)"])
def test_a_response_script_that_fails_is_answered_502_and_stored(
    sync_flow: Flow, script: str
) -> None:
    answering(sync_flow, script)
    answer = ask(sync_flow)
    assert (answer.status_code, answer.json()["type"]) == (502, "urn:inturn:problem:script-failed")
    (delivery,) = sync_flow.rest.get(f"messages/{answer.headers['inturn-message']}")["deliveries"]
    assert delivery["status"] == "FAILED"
    assert delivery["reason"].startswith("script: line 1: ")


def test_a_response_script_that_fails_lets_pass_what_it_may(sync_flow: Flow) -> None:
    answering(sync_flow, "throw 1;", lets_pass_on_timeout=True)
    answer = ask(sync_flow)
    assert (answer.status_code, answer.content) == (200, b"")
