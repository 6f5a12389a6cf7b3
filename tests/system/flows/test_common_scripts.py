"""Common scripts on the started product: a change reaches senders, and stored outputs stay."""

from collections.abc import Iterator

import pytest

from tests.support.product import Flow, Product
from tests.support.receivers import Answer, Receiver
from tests.system.faults.test_killed_replay import ready
from tests.system.operation.installation import eventually

CALLING = "$include$shared\n$outmessage = shared($inmessage.number);"


def text(word: str) -> str:
    return f"function shared(number) {{ return '{word} ' + number; }}"


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("CommonScripts")


@pytest.fixture
def shared(product: Product) -> Iterator[str]:
    """The address of the common script `shared`; deleted afterwards."""
    product.rest.post("common-scripts", {"name": "shared", "text": text("first")})
    yield "common-scripts/shared"
    for subscription in product.rest.all("subscriptions"):
        if "$include$shared" in subscription["script"]:
            product.rest.patch(f"subscriptions/{subscription['id']}", {"script": ""})
    assert product.rest.ask("DELETE", "common-scripts/shared").ok


def test_a_change_of_a_common_script_reaches_the_senders(
    flow: Flow, receiver: Receiver, shared: str
) -> None:
    of = flow.subscribe(receiver.endpoint("shared"), script=CALLING)
    flow.publish(b'{"number": 1}')
    assert of.endpoint.wait_for_count(1)[0].body == b"first 1"
    flow.rest.patch(shared, {"text": text("second")})

    def is_changed() -> bool:
        count = len(of.endpoint.received)
        flow.publish(b'{"number": 2}')
        return of.endpoint.wait_for_count(count + 1)[-1].body == b"second 2"

    eventually(is_changed, "senders execute the changed common script")


def test_what_was_attempted_is_sent_as_stored_though_a_common_script_has_changed(
    flow: Flow, receiver: Receiver, shared: str
) -> None:
    of = flow.subscribe(receiver.endpoint("stored"), script=CALLING, policy="strict")
    of.endpoint.next(Answer(500), Answer(404))
    message = flow.publish(b'{"number": 1}')
    of.endpoint.wait_for_count(1)
    flow.rest.patch(shared, {"text": text("second")})
    of.endpoint.wait_for_count(2)
    eventually(lambda: flow.delivery(of, message)["status"] == "REJECTED", "it is rejected")
    flow.rest.post(f"deliveries/{flow.delivery(of, message)['id']}/resubmit", {})
    assert [request.body for request in of.endpoint.wait_for_count(3)] == [b"first 1"] * 3


@pytest.mark.slow
def test_a_replay_executes_the_script_of_today_once_and_resubmissions_of_it_send_that(
    flow: Flow, product: Product, receiver: Receiver, shared: str
) -> None:
    script = "$include$shared\n$outmessage = shared(Math.random());"
    of = flow.subscribe(receiver.endpoint("replayed"), script=script)
    message = flow.publish()
    (original,) = of.endpoint.wait_for_count(1)
    flow.rest.patch(shared, {"text": text("second")})
    flow.rest.patch(f"subscriptions/{of.id}", {"script": script + "\n"})
    of.endpoint.next(Answer(404))
    address = ready(product, of, [message], rate=None)
    flow.rest.post(f"{address}/start")
    replayed = of.endpoint.wait_for_count(2)[1]
    assert original.body.startswith(b"first ")
    assert replayed.body.startswith(b"second ")
    eventually(lambda: "REJECTED" in flow.statuses(of), "the replayed delivery is rejected")
    (rejected,) = [delivery for delivery in flow.deliveries(of) if delivery["status"] == "REJECTED"]
    flow.rest.patch(shared, {"text": text("third")})
    flow.rest.post(f"deliveries/{rejected['id']}/resubmit", {})
    assert of.endpoint.wait_for_count(3)[2].body == replayed.body
