"""SYNC messages in the started product: the publisher waits, and gets the endpoint's answer."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from aiohttp import web
from standardwebhooks.webhooks import Webhook

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import OK, Answer, Hold, Receiver
from tests.support.rest import Json
from tests.system.operation.installation import eventually

BODY = b'{"b": 1,  "number": [7], "a": "\\u00fc"}\n'
VERDICT = bytes(range(256))


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("Sync", kind="SYNC")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def publish(flow: Flow, **headers: str) -> requests.Response:
    given = {"Content-Type": "application/json"} | headers
    return flow.publisher.ask(
        "POST", f"events/{flow.event_type}/messages", body=BODY, headers=given
    )


def history(flow: Flow, answer: requests.Response) -> Json:
    """Return the one delivery of the answered message."""
    (delivery,) = flow.rest.get(f"messages/{answer.headers['inturn-message']}")["deliveries"]
    found: Json = delivery
    return found


def journal(flow: Flow, answer: requests.Response) -> list[tuple[Any, ...]]:
    message_id = int(answer.headers["inturn-message"].removeprefix("msg_"))
    with flow.product.connect() as connection:
        rows = "SELECT kind, text FROM delivery_journalentry WHERE message_id = %s"
        return connection.execute(rows, [message_id]).fetchall()


@pytest.mark.parametrize(
    ("status", "settled"),
    [(200, "DELIVERED"), (201, "DELIVERED"), (400, "REJECTED"), (404, "REJECTED"), (500, "FAILED")],
)
def test_the_answer_is_the_endpoints_byte_by_byte(
    flow: Flow, receiver: Receiver, status: int, settled: str
) -> None:
    of = flow.subscribe(receiver.endpoint("rules"))
    of.endpoint.always(
        Answer(status, headers={"Content-Type": "x/y; z=1", "Set-Cookie": "a=b"}, body=VERDICT)
    )
    answer = publish(flow)
    assert (answer.status_code, answer.content) == (status, VERDICT)
    assert answer.headers["Content-Type"] == "x/y; z=1"
    assert "Set-Cookie" not in answer.headers
    delivery = history(flow, answer)
    assert (delivery["status"], delivery["attempt_count"]) == (settled, 1)
    (attempt,) = delivery["attempts"]
    assert attempt["status_code"] == status
    assert attempt["excerpt"] == VERDICT.decode(errors="replace")


def test_the_endpoint_gets_a_normal_request_that_it_can_verify(
    flow: Flow, receiver: Receiver
) -> None:
    auth = {"type": "bearer", "token": "t0ken"}
    endpoint = receiver.endpoint("rules")
    of = flow.subscribe(
        endpoint, endpoint=f"PUT:{endpoint.url}?key=1", auth=auth, headers={"X-Team": "blue"}
    )
    answer = publish(flow)
    (request,) = endpoint.received
    assert (request.method, request.path, request.body) == ("PUT", "/rules?key=1", BODY)
    assert request.id == answer.headers["inturn-message"]
    Webhook(of.secret).verify(request.body, dict(request.headers))
    assert request.headers["Authorization"] == "Bearer t0ken"
    assert request.headers["X-Team"] == "blue"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["inturn-event"] == flow.event_type
    assert (request.attempt, request.redelivery) == (1, None)
    assert request.delivery == history(flow, answer)["id"]


def test_a_redirect_is_handed_on_and_not_followed(flow: Flow, receiver: Receiver) -> None:
    of, elsewhere = flow.subscribe(receiver.endpoint("rules")), receiver.endpoint("elsewhere")
    of.endpoint.always(Answer(307, headers={"Location": elsewhere.url}, body=b"over there"))
    answer = publish(flow)
    assert (answer.status_code, answer.content) == (307, b"over there")
    assert "Location" not in answer.headers
    assert elsewhere.received == []
    assert history(flow, answer)["status"] == "3xxNOTSUPPORTED"


def test_without_a_qualifying_subscription_the_answer_is_200_and_empty(
    flow: Flow, receiver: Receiver
) -> None:
    flow.subscribe(receiver.endpoint("rules"), header_filter_string="elsewhere")
    answer = publish(flow, FILTER_STRING="here")
    assert (answer.status_code, answer.content) == (200, b"")
    assert "Content-Type" not in answer.headers
    assert [kind for kind, _ in journal(flow, answer)] == ["UNMATCHED"]
    assert publish(flow, FILTER_STRING="elsewhere").status_code == 200
    assert len(receiver.endpoint("rules").received) == 1


def test_of_several_subscriptions_the_first_is_called_and_the_journal_lists_all(
    flow: Flow, receiver: Receiver
) -> None:
    second = flow.subscribe(receiver.endpoint("second"), position=2)
    first = flow.subscribe(
        receiver.endpoint("first"), filter="$$->'Body'->'number' is not null", position=1
    )
    answer = publish(flow)
    assert (len(first.endpoint.received), len(second.endpoint.received)) == (1, 0)
    ((kind, text),) = journal(flow, answer)
    assert kind == "AMBIGUOUS"
    assert text.endswith(
        f"the first is called: {first.subscriber}/first, {second.subscriber}/second."
    )


def test_a_late_endpoint_gives_a_problem_or_lets_pass(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("rules"), timeout_seconds=1)
    of.endpoint.always(Hold())
    answer = publish(flow)
    assert (answer.status_code, answer.headers["Content-Type"]) == (504, "application/problem+json")
    problem = answer.json()
    assert problem["type"] == "urn:inturn:problem:no-answer-in-time"
    assert problem["message"] == answer.headers["inturn-message"]
    assert 0.9 <= answer.elapsed.total_seconds() < 15
    delivery = history(flow, answer)
    assert (delivery["status"], delivery["attempts"][0]["outcome"]) == ("FAILED", "TIMEOUT")
    flow.rest.patch(f"subscriptions/{of.id}", {"lets_pass_on_timeout": True})
    answer = publish(flow)
    assert (answer.status_code, answer.content) == (200, b"")
    assert history(flow, answer)["status"] == "FAILED"


def test_an_endpoint_that_is_down_gives_a_problem_or_lets_pass(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("rules"))
    receiver.refuse_connections()
    answer = publish(flow)
    assert (answer.status_code, answer.json()["type"]) == (502, "urn:inturn:problem:no-answer")
    assert history(flow, answer)["attempts"][0]["outcome"] == "UNREACHABLE"
    flow.rest.patch(f"subscriptions/{of.id}", {"lets_pass_on_timeout": True})
    answer = publish(flow)
    assert (answer.status_code, answer.content) == (200, b"")


def test_an_address_that_is_not_allowed_is_refused_when_it_is_called(
    flow: Flow, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("rules"))
    # As if the name had resolved to another address when it was saved.
    with flow.product.connect() as connection:
        private = (
            "UPDATE subscriptions_subscription SET endpoint = 'http://10.0.0.1/rules' WHERE id = %s"
        )
        connection.execute(private, [of.id])
    answer = publish(flow)
    assert answer.status_code == 502
    assert "10.0.0.1" not in answer.text
    (attempt,) = history(flow, answer)["attempts"]
    assert attempt["outcome"] == "REFUSED_ADDRESS"
    assert "10.0.0.1" in attempt["error"]


class SyncPeers:
    """Records the client port of each request: a reused connection has the same port."""

    status = 200

    def __init__(self) -> None:
        self.ports: list[int] = []

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        self.ports.append(request.transport.get_extra_info("peername")[1])
        return web.Response(body=b"yes")


def test_connections_to_the_endpoint_are_used_again(flow: Flow, receiver: Receiver) -> None:
    of, peers = flow.subscribe(receiver.endpoint("rules")), SyncPeers()
    of.endpoint.always(peers)
    for _ in range(20):
        assert publish(flow).content == b"yes"
    assert len(set(peers.ports)) == 1


def test_an_endpoint_that_hangs_does_not_stop_the_web_server(
    flow: Flow, receiver: Receiver
) -> None:
    of, hold = flow.subscribe(receiver.endpoint("rules")), Hold()
    of.endpoint.always(hold)
    with ThreadPoolExecutor(12) as pool:
        waiting = [pool.submit(publish_alone, flow) for _ in range(12)]
        # Six of the web server's eight threads may wait.
        of.endpoint.wait_for_count(6)
        eventually(
            lambda: sum(call.done() for call in waiting) == 6, "the others are asked to come again"
        )
        assert flow.product.is_ready()
        hold.release()
        answers = [call.result() for call in waiting]
    assert sorted(answer.status_code for answer in answers) == [200] * 6 + [503] * 6
    assert {answer.headers.get("Retry-After") for answer in answers} == {None, "1"}


def test_a_publisher_that_hangs_up_does_not_end_the_call(flow: Flow, receiver: Receiver) -> None:
    of, hold = flow.subscribe(receiver.endpoint("rules")), Hold()
    of.endpoint.always(hold)
    with pytest.raises(requests.Timeout):
        publish_alone(flow, seconds=1)
    of.endpoint.wait_for_count(1)
    assert flow.statuses(of) == ["IN_DOUBT"]
    hold.release()
    eventually(lambda: flow.statuses(of) == ["DELIVERED"], "the answer is recorded")


def publish_alone(flow: Flow, *, seconds: float = 30) -> requests.Response:
    """Publish with a session of its own, in a thread of its own."""
    rest = flow.publisher
    return requests.post(
        f"{rest.base_url}/api/v1/events/{flow.event_type}/messages",
        data=BODY,
        headers={"Authorization": f"Bearer {rest.key}", "Content-Type": "application/json"},
        timeout=seconds,
    )


def test_a_settled_sync_failure_is_published(flow: Flow, receiver: Receiver) -> None:
    of = flow.subscribe(receiver.endpoint("rules"))
    reported = subscribe_to_failures(flow, receiver)
    of.endpoint.next(Answer(422), Answer(404), OK)
    answered = history(flow, publish(flow))
    delivery = history(flow, publish(flow))
    publish(flow)
    received = reported.endpoint.wait_for(
        lambda received: any(str(delivery["id"]).encode() in request.body for request in received)
    )
    # A rule's no is an answer; failures are reported in their order.
    assert answered["status"] == "REJECTED"
    assert not any(str(answered["id"]).encode() in request.body for request in received)


def subscribe_to_failures(flow: Flow, receiver: Receiver) -> StartedSubscription:
    filtered = f"$$->'Body'->>'event' = '{flow.event_type}'"
    return flow.subscribe(
        receiver.endpoint("reported"), event_type="Inturn.Delivery.Failed", filter=filtered
    )
