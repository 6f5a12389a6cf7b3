"""Where nothing is killed nothing is in doubt: stints that end, and an orderly stop, both under load."""

import itertools
from collections.abc import Iterator

import pytest

from tests.faults.load import Load
from tests.faults.promises import insist
from tests.operation.installation import eventually
from tests.product import Product
from tests.receivers import OK, Hold, Received, Receiver, Slow

STINT_SECONDS = 2
# Two senders, whose stints end at different moments: by then each has begun three of them.
SEAMS_SECONDS = 8
# What a lane may wait at the seam of two stints, on a machine that may be busy.
LONGEST_PAUSE_SECONDS = 15.0


@pytest.fixture(scope="module")
def brief(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product whose stints are much shorter than usual."""
    product = Product(tmp_path_factory.mktemp("brief"), SENDER_STINT_SECONDS=str(STINT_SECONDS))
    try:
        product.start()
        yield product
    finally:
        product.kill_all()


def longest_pause(received: list[Received]) -> float:
    return max(later.at - earlier.at for earlier, later in itertools.pairwise(received))


def test_lanes_flow_on_when_stints_end_though_an_endpoint_hangs(
    brief: Product, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = brief.flow("Seam")
    lanes = [flow.subscribe(receiver.endpoint(f"lane-{number}")) for number in range(4)]
    hanging = flow.subscribe(receiver.endpoint("hanging"))
    hanging.endpoint.always(Hold())
    with Load(flow).running() as load:
        began = lanes[0].endpoint.wait_for_count(1)[0].at
        lanes[0].endpoint.wait_for_later(began + SEAMS_SECONDS)
    pauses = [longest_pause(of.endpoint.wait_for_last(load.accepted[-1])) for of in lanes]
    with capsys.disabled():
        print(f"\nwhere stints end lanes pause for at most {max(pauses):.2f} s")
    assert max(pauses) < LONGEST_PAUSE_SECONDS
    for of in lanes:
        insist(flow, of, load.accepted, crashes=0)
    assert len(hanging.endpoint.received) == 1


def test_an_orderly_stop_leaves_nothing_in_doubt(brief: Product, receiver: Receiver) -> None:
    flow = brief.flow("Stop")
    lanes = [flow.subscribe(receiver.endpoint(f"lane-{number}")) for number in range(4)]
    for of in lanes:
        of.endpoint.always(Slow(0.01))
    published = flow.publish_numbered(300)
    for of in lanes:
        of.endpoint.wait_for_count(20)
    assert brief.stop() == (0, "")
    assert all(len(of.endpoint.received) < len(published) for of in lanes)
    brief.start()
    for of in lanes:
        of.endpoint.always(OK)
    for of in lanes:
        of.endpoint.wait_for_last(published[-1])
        insist(flow, of, published, crashes=0)


def test_a_stop_does_not_wait_for_an_endpoint_that_hangs(brief: Product, receiver: Receiver) -> None:
    flow = brief.flow("Hang")
    of = flow.subscribe(receiver.endpoint("hanging"), timeout_seconds=120)
    hold = Hold()
    of.endpoint.next(hold)
    published = flow.publish_numbered(2)
    of.endpoint.wait_for_count(1)
    assert brief.stop() == (0, "")
    brief.start()
    hold.release()
    received = of.endpoint.wait_for_last(published[1])
    assert [request.id for request in received] == [published[n] for n in (0, 0, 1)]
    # It is known that no answer came: nothing is in doubt.
    assert received[1].redelivery is None
    eventually(lambda: flow.statuses(of) == ["DELIVERED", "DELIVERED"], "both are DELIVERED")
