"""The product behind a real PgBouncer: orphaned lanes flow, and locks stay exclusive."""

import signal
from collections.abc import Iterator

import pytest

from config.embedded.postgres import throwaway
from config.up import processes
from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import OK, Hold, Receiver
from tests.system.faults import pgbouncer
from tests.system.faults.observed import Observed
from tests.system.faults.promises import insist, outcomes
from tests.system.operation.installation import eventually, kill, stop

pytestmark = [
    pytest.mark.skipif(
        pgbouncer.PROGRAM is None, reason=f"no pgbouncer: {pgbouncer.HOW_TO_GET_IT}"
    ),
    pytest.mark.slow,
]

LANES = 5
TAKEN_OVER_SECONDS = 30.0


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with throwaway() as url, pgbouncer.before(url, tmp_path_factory.mktemp("pgbouncer")) as through:
        product = Product(tmp_path_factory.mktemp("behind"), DATABASE_URL=through)
        try:
            product.start()
            yield product
        finally:
            product.kill_all()


@pytest.fixture
def product(behind: Product) -> Product:
    """The product with both its senders running."""
    eventually(lambda: Observed(behind).is_well(senders=2), "all that was killed is back")
    return behind


@pytest.fixture
def held(flow: Flow, receiver: Receiver) -> Iterator[tuple[list[StartedSubscription], list[str]]]:
    """Yield lanes whose second message is in flight, and the published ids."""
    lanes = [flow.subscribe(receiver.endpoint(f"lane-{number}")) for number in range(LANES)]
    holds = [Hold() for _ in lanes]
    for of, hold in zip(lanes, holds, strict=True):
        of.endpoint.next(OK, hold)
    published = flow.publish_numbered(10)
    for of in lanes:
        of.endpoint.wait_for_count(2)
    yield lanes, published
    for hold in holds:
        hold.release()


def test_lanes_of_a_killed_sender_continue(
    flow: Flow, observed: Observed, held: tuple[list[StartedSubscription], list[str]]
) -> None:
    lanes, published = held
    kill(observed.sender_of(lanes[0]))
    for of in lanes:
        of.endpoint.wait_for_count(11)
        insist(flow, of, published)
        assert outcomes(flow, of, published[1]) == ["LOST", "SUCCESS"]


def test_lanes_of_a_frozen_sender_continue(
    flow: Flow, observed: Observed, held: tuple[list[StartedSubscription], list[str]]
) -> None:
    lanes, published = held
    pid = observed.sender_of(lanes[0])
    stop(pid)
    try:
        for of in lanes:
            of.endpoint.wait_for_count(11, seconds=TAKEN_OVER_SECONDS)
            flow.wait_until_settled(of)
    finally:
        processes.send_signal(signal.SIGCONT, [pid])
    eventually(lambda: pid in observed.senders(), "the frozen one is at work again")
    later = flow.publish_numbered(2)
    for of in lanes:
        of.endpoint.wait_for_last(later[-1])
        insist(flow, of, [*published, *later])
