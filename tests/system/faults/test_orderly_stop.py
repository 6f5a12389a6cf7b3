"""An orderly stop under load leaves nothing in doubt."""

import pytest

from tests.support.product import Product
from tests.support.receivers import OK, Hold, Receiver, Slow
from tests.system.faults.promises import insist
from tests.system.operation.installation import eventually


@pytest.mark.slow
def test_an_orderly_stop_leaves_no_delivery_in_doubt(product: Product, receiver: Receiver) -> None:
    flow = product.flow("Stop")
    lanes = [flow.subscribe(receiver.endpoint(f"lane-{number}")) for number in range(4)]
    for of in lanes:
        of.endpoint.always(Slow(0.01))
    published = flow.publish_numbered(300)
    for of in lanes:
        of.endpoint.wait_for_count(20)
    assert product.stop() == (0, "")
    assert all(len(of.endpoint.received) < len(published) for of in lanes)
    product.start()
    for of in lanes:
        of.endpoint.always(OK)
    for of in lanes:
        of.endpoint.wait_for_last(published[-1])
        insist(flow, of, published, crashes=0)


@pytest.mark.slow
def test_a_stop_does_not_wait_for_an_endpoint_that_hangs(
    product: Product, receiver: Receiver
) -> None:
    flow = product.flow("Hang")
    of = flow.subscribe(receiver.endpoint("hanging"), timeout_seconds=120)
    hold = Hold()
    of.endpoint.next(hold)
    published = flow.publish_numbered(2)
    of.endpoint.wait_for_count(1)
    assert product.stop() == (0, "")
    product.start()
    hold.release()
    received = of.endpoint.wait_for_last(published[1])
    assert [request.id for request in received] == [published[n] for n in (0, 0, 1)]
    # The sender recorded that no answer came: nothing is in doubt.
    assert received[1].redelivery is None
    eventually(lambda: flow.statuses(of) == ["DELIVERED", "DELIVERED"], "both are DELIVERED")
