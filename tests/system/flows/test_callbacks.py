"""Callbacks in the started product: an endpoint answers later, to the publisher's URL."""

import secrets
from pathlib import Path

import pytest
import requests

from delivery.models.callback import MAX_HOPS
from tests.support.product import Flow, Product
from tests.support.receivers import OK, Answer, Receiver, ReceiverEndpoint
from tests.support.receivers.received import Received
from tests.support.rest import Json, RestRefusedError
from tests.system.operation.installation import eventually

BODY = b'{"rows": [1, 2],  "done": true}'


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("Callback", kind="QUEUE")


def endpoint(receiver: Receiver, name: str) -> ReceiverEndpoint:
    return receiver.endpoint(f"{name}-{secrets.token_hex(4)}")


def asked(flow: Flow, receiver: Receiver, publisher: ReceiverEndpoint) -> tuple[str, Received]:
    """Publish a message that requests an answer; return its id and a worker's request."""
    worker = flow.subscribe(endpoint(receiver, "worker")).endpoint
    id = flow.publish(b'{"report": 7}', CallbackURL=publisher.url)
    (request,) = worker.wait_for_count(1)
    return id, request


def post(url: str, body: bytes = BODY, **headers: str) -> requests.Response:
    """Post as an endpoint does that knows only the URL."""
    return requests.post(
        url, data=body, headers={"Content-Type": "application/json"} | headers, timeout=30
    )


def answered(url: str, body: bytes = BODY, **headers: str) -> str:
    """Answer a callback; return the id of the answer."""
    response = post(url, body, **headers)
    assert response.status_code == 202, response.text
    answer: Json = response.json()
    assert answer["deliveries"] == 1
    id: str = answer["id"]
    return id


def callback_of(flow: Flow, id: str) -> Json:
    (callback,) = flow.rest.get(f"messages/{id}")["callbacks"]
    found: Json = callback
    return found


def test_the_endpoints_answer_reaches_the_publishers_callback_url(
    flow: Flow, receiver: Receiver
) -> None:
    publisher = endpoint(receiver, "answers")
    id, request = asked(flow, receiver, publisher)
    url = request.headers["CallbackURL"]
    assert url.startswith(f"{flow.rest.base_url}/callbacks/")
    assert callback_of(flow, id)["state"] == "WAITING"
    answer = answered(url)
    (got,) = publisher.wait_for_count(1)
    assert (got.method, got.body, got.headers["Content-Type"]) == ("POST", BODY, "application/json")
    assert (got.id, got.headers["inturn-event"], got.attempt) == (answer, "Inturn.Callback", 1)
    assert "CallbackURL" not in got.headers
    assert "webhook-signature" not in got.headers
    shown = callback_of(flow, id)
    assert (shown["state"], shown["answer"], shown["url"]) == ("ANSWERED", answer, publisher.url)
    reported = flow.rest.get(f"messages/{answer}")
    assert reported["answer_to"] == id
    eventually(
        lambda: flow.rest.get(f"messages/{answer}")["deliveries"][0]["status"] == "DELIVERED",
        "the answer is DELIVERED",
    )


def test_a_message_without_callback_url_has_no_callback(flow: Flow, receiver: Receiver) -> None:
    worker = flow.subscribe(endpoint(receiver, "worker")).endpoint
    id = flow.publish()
    (request,) = worker.wait_for_count(1)
    assert "CallbackURL" not in request.headers
    assert flow.rest.get(f"messages/{id}")["callbacks"] == []


def test_every_endpoint_of_a_group_gets_the_same_callback(flow: Flow, receiver: Receiver) -> None:
    publisher = endpoint(receiver, "answers")
    workers = [flow.subscribe(endpoint(receiver, "worker")).endpoint for _ in range(2)]
    for worker in workers:
        worker.next(Answer(404))
    flow.publish(CallbackURL=publisher.url)
    urls = {worker.wait_for_count(1)[0].headers["CallbackURL"] for worker in workers}
    assert len(urls) == 1


def test_each_group_has_a_callback_of_its_own(flow: Flow, receiver: Receiver) -> None:
    publisher = endpoint(receiver, "answers")
    address = flow.subscribe(endpoint(receiver, "one")).endpoint
    two = flow.subscribe(endpoint(receiver, "two"), filter="$$->'Body'->'n' is null").endpoint
    flow.publish(CallbackURL=publisher.url)
    for worker, body in ((address, b"1"), (two, b"2")):
        answered(worker.wait_for_count(1)[0].headers["CallbackURL"], body)
    assert sorted(request.body for request in publisher.wait_for_count(2)) == [b"1", b"2"]


def test_a_callback_is_answered_once_and_a_repeated_answer_gets_the_same_response(
    flow: Flow, receiver: Receiver
) -> None:
    publisher = endpoint(receiver, "answers")
    _, request = asked(flow, receiver, publisher)
    url = request.headers["CallbackURL"]
    assert answered(url) == answered(url)
    refused = post(url, b"another")
    assert refused.status_code == 409
    assert refused.json()["type"] == "urn:inturn:problem:answered-already"
    publisher.wait_for_count(1)
    _settle_another(flow, receiver)
    assert len(publisher.received) == 1


def _settle_another(flow: Flow, receiver: Receiver) -> None:
    """Have a later answer delivered: earlier ones have arrived by then."""
    publisher = endpoint(receiver, "later")
    other = flow.product.flow("Later", kind="QUEUE")
    _, request = asked(other, receiver, publisher)
    answered(request.headers["CallbackURL"])
    publisher.wait_for_count(1)


def test_a_forged_one_is_not_found(flow: Flow, receiver: Receiver) -> None:
    _, request = asked(flow, receiver, endpoint(receiver, "answers"))
    url = request.headers["CallbackURL"]
    flipped = "B" if url[-1] == "A" else "A"
    for forged in (url[:-1] + flipped, f"{flow.rest.base_url}/callbacks/1.{'A' * 24}"):
        assert post(forged).status_code == 404


def test_an_expired_callback_is_gone(flow: Flow, receiver: Receiver) -> None:
    publisher = endpoint(receiver, "answers")
    id, request = asked(flow, receiver, publisher)
    with flow.product.connect() as connection:
        connection.execute(
            "UPDATE delivery_callback SET expires_at = now() - interval '1 second' "
            "WHERE message_id = %s",
            (int(id.removeprefix("msg_")),),
        )
    assert post(request.headers["CallbackURL"]).status_code == 410
    assert callback_of(flow, id)["state"] == "EXPIRED"


def test_a_publisher_that_is_down_gets_its_answer_later(flow: Flow, receiver: Receiver) -> None:
    publisher = endpoint(receiver, "answers")
    publisher.next(Answer(500), Answer(500))
    _, request = asked(flow, receiver, publisher)
    answer = answered(request.headers["CallbackURL"])
    received = publisher.wait_for_count(3)
    assert [(received_request.id, received_request.body) for received_request in received] == [
        (answer, BODY)
    ] * 3


def test_a_publisher_that_is_down_does_not_delay_answers_to_another(
    flow: Flow, receiver: Receiver
) -> None:
    with Receiver() as other:
        down = endpoint(other, "answers")
        _, request = asked(flow, receiver, down)
        other.refuse_connections()
        answered(request.headers["CallbackURL"])
        _settle_another(flow, receiver)
        other.accept_connections()
        assert down.wait_for_count(1)[0].body == BODY


def test_a_private_address_is_refused_when_publishing(flow: Flow, receiver: Receiver) -> None:
    flow.subscribe(endpoint(receiver, "worker"))
    with pytest.raises(RestRefusedError) as refused:
        flow.publish(CallbackURL="http://169.254.169.254/latest/meta-data")
    problem = refused.value.response.json()
    assert (problem["status"], problem["type"]) == (400, "urn:inturn:problem:callback-refused")
    assert "cloud metadata" in problem["detail"]


class TestCallbackChains:
    def test_publisher_and_worker_answer_each_other_in_turn(
        self, flow: Flow, receiver: Receiver
    ) -> None:
        publisher, worker = endpoint(receiver, "publisher"), endpoint(receiver, "worker")
        _, request = asked(flow, receiver, publisher)
        answered(request.headers["CallbackURL"], b"how many?", CallbackURL=worker.url)
        (question,) = publisher.wait_for_count(1)
        assert question.body == b"how many?"
        answered(question.headers["CallbackURL"], b"five")
        (reply,) = worker.wait_for_count(1)
        assert (reply.body, "CallbackURL" in reply.headers) == (b"five", False)

    def test_a_chain_ends_after_ten_hops(self, flow: Flow, receiver: Receiver) -> None:
        publisher = endpoint(receiver, "publisher")
        _, request = asked(flow, receiver, publisher)
        url = request.headers["CallbackURL"]
        for hop in range(1, MAX_HOPS):
            answered(url, b"%d" % hop, CallbackURL=publisher.url)
            url = publisher.wait_for_count(hop)[-1].headers["CallbackURL"]
        refused = post(url, b"the eleventh", CallbackURL=publisher.url)
        assert refused.status_code == 400
        assert "chain ends here" in refused.json()["detail"]
        answered(url, b"the end")
        assert publisher.wait_for_count(MAX_HOPS)[-1].body == b"the end"

    def test_a_callback_of_ours_may_be_where_a_message_is_answered_to(
        self, flow: Flow, receiver: Receiver
    ) -> None:
        """A worker passes its work on, and the second worker answers the first publisher."""
        publisher = endpoint(receiver, "publisher")
        _, request = asked(flow, receiver, publisher)
        inner = flow.product.flow("Inner", kind="QUEUE")
        worker = inner.subscribe(endpoint(receiver, "worker")).endpoint
        id = inner.publish(CallbackURL=request.headers["CallbackURL"])
        answered(worker.wait_for_count(1)[0].headers["CallbackURL"], b"done by another")
        assert publisher.wait_for_count(1)[0].body == b"done by another"
        assert callback_of(inner, id)["hop"] == 2


@pytest.mark.slow
def test_callbacks_survive_a_restart_of_every_process(tmp_path: Path, receiver: Receiver) -> None:
    product = Product(tmp_path)
    try:
        product.start()
        flow = product.flow("Lasting", kind="QUEUE")
        publisher, busy = endpoint(receiver, "answers"), endpoint(receiver, "busy")
        id, request = asked(flow, receiver, publisher)
        _, already = asked(product.flow("Answered", kind="QUEUE"), receiver, busy)
        busy.always(Answer(500))
        undelivered = answered(already.headers["CallbackURL"])
        busy.wait_for_count(1)
        product.kill_all()
        product.start()
        # The first callback is answered now, the answer to the second is delivered now.
        answer = answered(request.headers["CallbackURL"])
        (got,) = publisher.wait_for_count(1)
        assert (got.id, got.body) == (answer, BODY)
        busy.always(OK)
        last = busy.wait_for(lambda received: received[-1].was_accepted)[-1]
        assert (last.id, last.body) == (undelivered, BODY)
        assert answered(already.headers["CallbackURL"]) == undelivered
        assert callback_of(flow, id)["state"] == "ANSWERED"
        assert product.stop()[0] == 0
    finally:
        product.kill_all()
