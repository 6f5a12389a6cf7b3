"""The web server is killed -9 while posts or a batch are being stored, or just after that.

The windows: before the commit, where nothing may be stored by halves; and between the commit and
the answer, where everything is stored and the publisher has no answer. In both cases it repeats the
requests with the same keys, and each message is published once.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import Receiver
from tests.support.rest import ProductClient
from tests.system.faults.gate import gate
from tests.system.faults.promises import insist
from tests.system.flows.test_replies import post as reply
from tests.system.operation.installation import eventually, kill, stop

Publish = Callable[[Flow], list[str]]

MESSAGES = 5


def publish_batch(flow: Flow) -> list[str]:
    items = [
        {"event": flow.event_type, "body": number, "idempotency_key": f"key {number}"}
        for number in range(MESSAGES)
    ]
    return [result["id"] for result in _of_its_own(flow).publish_batch(items)]


def publish_singly(flow: Flow) -> list[str]:
    """Publish all messages at the same moment, each by its own request."""
    with ThreadPoolExecutor(MESSAGES) as pool:
        return sorted(
            pool.map(lambda number: _publish_one(flow, number), range(MESSAGES)), key=_number
        )


def _publish_one(flow: Flow, number: int) -> str:
    sent = {"Idempotency_Key": f"key {number}"}
    id: str = _of_its_own(flow).publish(flow.event_type, b"%d" % number, **sent)["id"]
    return id


def _of_its_own(flow: Flow) -> ProductClient:
    """Return a publisher for one thread."""
    return ProductClient(flow.publisher.base_url, flow.publisher.key)


def _number(public_id: str) -> int:
    return int(public_id.removeprefix("msg_"))


def insist_on_one_of_each(flow: Flow, of: StartedSubscription, publish: Publish) -> None:
    eventually(flow.product.is_ready, "the web server is back")
    published = publish(flow)
    assert publish(flow) == published
    assert len(list(flow.rest.all("messages", event_type=flow.event_type))) == MESSAGES
    insist(flow, of, published, crashes=0, at_once=publish is publish_singly)


@pytest.mark.parametrize(
    "publish", [publish_batch, pytest.param(publish_singly, marks=pytest.mark.slow)]
)
def test_a_kill_before_the_commit_stores_nothing(
    flow: Flow, product: Product, receiver: Receiver, publish: Publish
) -> None:
    of = flow.subscribe(receiver.endpoint("lane"))
    with gate(flow) as closed, ThreadPoolExecutor(1) as pool:
        unanswered = pool.submit(publish, flow)
        closed.wait_for_one()
        kill(*product.whole("web"))
        assert isinstance(unanswered.exception(), requests.ConnectionError)
        closed.open()
        if publish is publish_batch:
            assert closed.stored() in (0, MESSAGES)
    insist_on_one_of_each(flow, of, publish)


@pytest.mark.parametrize(
    "publish", [publish_batch, pytest.param(publish_singly, marks=pytest.mark.slow)]
)
def test_after_a_kill_between_commit_and_answer_a_retry_gets_the_stored_answer(
    flow: Flow, product: Product, receiver: Receiver, publish: Publish
) -> None:
    of = flow.subscribe(receiver.endpoint("lane"))
    with gate(flow) as closed, ThreadPoolExecutor(1) as pool:
        unanswered = pool.submit(publish, flow)
        closed.wait_for_one()
        web = product.whole("web")
        stop(*web)
        try:
            closed.open()
            least = MESSAGES if publish is publish_batch else 1
            eventually(lambda: closed.stored() >= least, "it is committed")
        finally:
            kill(*web)
        assert isinstance(unanswered.exception(), requests.ConnectionError)
    insist_on_one_of_each(flow, of, publish)


def test_a_reply_whose_202_was_lost_by_a_kill_is_repeated_and_published_once(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    asked, made = flow.subscribe(receiver.endpoint("asked")), product.flow("Made")
    of = made.subscribe(receiver.endpoint("wanting"))
    flow.publish(ReplyTo=made.event_type)
    (request,) = asked.endpoint.wait_for_count(1)
    with gate(made) as closed, ThreadPoolExecutor(1) as pool:
        unanswered = pool.submit(reply, request)
        closed.wait_for_one()
        web = product.whole("web")
        stop(*web)
        try:
            closed.open()
            eventually(lambda: closed.stored() == 1, "it is committed")
        finally:
            kill(*web)
        assert isinstance(unanswered.exception(), requests.ConnectionError)
    eventually(product.is_ready, "the web server is back")
    answer = reply(request)
    assert answer.status_code == 202
    assert len(list(made.rest.all("messages", event_type=made.event_type))) == 1
    insist(made, of, [answer.json()["id"]], crashes=0)
