"""All processes are killed -9 while a subscriber is HELD.

Its deliveries stay, and are sent in order after the release.
"""

import pytest

from tests.support.product import Flow, Product
from tests.support.receivers import OK, Hold, Receiver

pytestmark = pytest.mark.slow


def test_what_was_published_before_while_and_after_is_received_in_order_once(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    published = flow.publish_numbered(100)
    of.endpoint.wait_for_count(100)
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 100
    flow.rest.patch(f"subscribers/{of.subscriber}", {"status": "HELD"})
    published += flow.publish_numbered(100)
    product.kill_all()
    product.start()
    published += flow.publish_numbered(100)
    assert flow.statuses(of).count("PENDING") == 200
    assert len(of.endpoint.received) == 100
    flow.rest.patch(f"subscribers/{of.subscriber}", {"status": "ACTIVE"})
    of.endpoint.wait_for_count(300, seconds=120)
    assert flow.wait_until_settled(of) == ["DELIVERED"] * 300
    assert [request.id for request in of.endpoint.received] == published


def test_one_that_was_under_way_when_all_was_killed_is_sent_again_after_the_release(
    flow: Flow, product: Product, receiver: Receiver
) -> None:
    of = flow.subscribe(receiver.endpoint("a"))
    hanging = Hold()
    of.endpoint.always(hanging)
    published = flow.publish_numbered(3)
    of.endpoint.wait_for_count(1)
    flow.rest.patch(f"subscribers/{of.subscriber}", {"status": "HELD"})
    product.kill_all()
    product.start()
    of.endpoint.always(OK)
    assert [request.id for request in of.endpoint.received] == published[:1]
    flow.rest.patch(f"subscribers/{of.subscriber}", {"status": "ACTIVE"})
    received = of.endpoint.wait_for_count(4, seconds=120)
    assert [request.id for request in received] == [published[0], *published]
    assert received[1].redelivery == "in-doubt"
