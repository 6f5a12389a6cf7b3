"""The web server, or PostgreSQL, is killed -9 during a SYNC call."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.support.product import Flow, Product
from tests.support.receivers import Answer, Hold, Receiver
from tests.support.rest import Json
from tests.system.operation.installation import eventually, kill


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("Sync", kind="SYNC")


def publish(flow: Flow) -> requests.Response:
    headers = {"Content-Type": "application/json"}
    return flow.publisher.ask(
        "POST", f"events/{flow.event_type}/messages", body=b"{}", headers=headers
    )


def delivery_of(flow: Flow, subscription: int) -> Json:
    (found,) = flow.rest.get("deliveries", subscription=subscription)["results"]
    read: Json = flow.rest.get(f"deliveries/{found['id']}")
    return read


def test_a_web_server_that_is_killed_leaves_the_truth(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    of, hold = flow.subscribe(receiver.endpoint("rules")), Hold()
    of.endpoint.always(hold)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(publish, flow)
        of.endpoint.wait_for_count(1)
        kill(*product.whole("web"))
        assert isinstance(waiting.exception(), requests.ConnectionError)
    hold.release()
    eventually(product.is_ready, "the web server is back")
    delivery = delivery_of(flow, of.id)
    assert (delivery["status"], delivery["attempt_count"], delivery["attempts"]) == (
        "IN_DOUBT",
        0,
        [],
    )
    assert delivery["reason"] == "called, and no answer is recorded"
    # The call is not repeated; the next message is called as usual.
    assert publish(flow).status_code == 200
    assert len(of.endpoint.received) == 2


def test_a_database_that_is_killed_does_not_cost_the_publisher_its_answer(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    of, hold = flow.subscribe(receiver.endpoint("rules")), Hold(Answer(202, body=b"yes"))
    of.endpoint.always(hold)
    killed = product.postmaster()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(publish, flow)
        of.endpoint.wait_for_count(1)
        kill(killed)
        hold.release()
        answer = waiting.result()
    assert (answer.status_code, answer.content) == (202, b"yes")
    product.wait_for_postgres_after(killed)
    # Whether PostgreSQL was back in time for the outcome is a race; either status is true.
    assert delivery_of(flow, of.id)["status"] in ("IN_DOUBT", "DELIVERED")
