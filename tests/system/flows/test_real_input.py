"""Hundreds of payloads, published by HTTP to eight subscribers with real receivers."""

from collections import Counter
from collections.abc import Iterator

import pytest
import standardwebhooks

from tests.support.product import Product
from tests.support.receivers import Receiver
from tests.system.flows.real_run import PLANS, RealRun, RealSubscriber
from tests.system.flows.webhooks import SOURCES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=SOURCES)
def real_run(request: pytest.FixtureRequest, product: Product) -> Iterator[RealRun]:
    with Receiver() as receiver, Receiver() as refusing:
        real_run = RealRun(product, receiver, refusing, source=request.param)
        real_run.run()
        yield real_run


@pytest.fixture(params=range(len(PLANS)), ids=[plan.name for plan in PLANS])
def of(request: pytest.FixtureRequest, real_run: RealRun) -> RealSubscriber:
    place: int = request.param
    return real_run.subscribers[place]


def test_all_payloads_are_accepted_with_their_deliveries(real_run: RealRun) -> None:
    assert len(real_run.messages) == len(real_run.webhooks) > 300
    owed = Counter(id for of in real_run.subscribers for id in real_run.expected(of))
    assert {answer["id"]: answer["deliveries"] for answer in real_run.answers} == owed


def test_no_message_is_lost(real_run: RealRun, of: RealSubscriber) -> None:
    assert {request.id for request in of.received} == set(real_run.expected(of))


def test_a_message_with_a_final_answer_is_not_sent_again(of: RealSubscriber) -> None:
    final = Counter(request.id for request in of.received if request.status in (200, 301, 404))
    assert set(final.values()) == {1}


def test_first_attempts_are_in_publication_order(real_run: RealRun, of: RealSubscriber) -> None:
    assert list(dict.fromkeys(request.id for request in of.received)) == real_run.expected(of)


def test_under_strict_no_message_overtakes_another(real_run: RealRun, of: RealSubscriber) -> None:
    if of.plan.is_strict:
        places = {id: place for place, id in enumerate(real_run.messages)}
        sent = [places[request.id] for request in of.received]
        assert sent == sorted(sent)


def test_every_request_is_signed(of: RealSubscriber) -> None:
    for request in of.received:
        secret = of.secrets[request.headers["inturn-event"]]
        standardwebhooks.Webhook(secret).verify(request.body, dict(request.headers))


def test_the_received_bytes_are_the_published_ones(real_run: RealRun, of: RealSubscriber) -> None:
    for request in of.received:
        assert request.body == real_run.messages[request.id].raw


def test_statuses_agree_with_the_receivers_answers(real_run: RealRun, of: RealSubscriber) -> None:
    settled = {200: "DELIVERED", 404: "REJECTED", 301: "3xxNOTSUPPORTED"}
    answered = {
        request.id: settled[request.status] for request in of.received if request.status in settled
    }
    deliveries = real_run.deliveries(of)
    assert {id: delivery["status"] for id, delivery in deliveries.items()} == answered


def test_attempts_agree_with_the_requests(real_run: RealRun, of: RealSubscriber) -> None:
    requests = Counter(request.id for request in of.received)
    attempts = Counter(
        {id: found["attempt_count"] for id, found in real_run.deliveries(of).items()}
    )
    if of.plan.refuses:
        # Refused connections were attempts, too; no receiver saw them.
        assert attempts > requests
    else:
        assert attempts == requests


def test_each_attempt_bears_the_next_number(of: RealSubscriber) -> None:
    if not of.plan.refuses:
        assert [request.attempt for request in of.received] == [
            request.tries for request in of.received
        ]


def test_redirects_led_nowhere(real_run: RealRun) -> None:
    assert all(
        request.path != "/elsewhere" for of in real_run.subscribers for request in of.received
    )
