"""The conditions after any crash: README's promises 1 to 4, seen from a receiver."""

from collections.abc import Sequence

from tests.support.product import Flow, StartedSubscription
from tests.support.receivers import Received

# Promised: a killed worker's lanes flow again within 2 s. A loaded machine gets some grace.
FLOWS_AGAIN_SECONDS = 10.0


def resent(received: Sequence[Received]) -> list[Received]:
    """Return the requests for messages that the endpoint had already got."""
    return [request for request in received if request.tries > 1]


def insist(
    flow: Flow,
    of: StartedSubscription,
    published: Sequence[str],
    *,
    crashes: int = 1,
    at_once: bool = False,
) -> None:
    """Check that all messages arrived, first attempts in order.

    Messages that were published `at_once` have no order. At most one per crash was sent again,
    marked and with its history.
    """
    assert set(flow.wait_until_settled(of)) == {"DELIVERED"}
    received = of.endpoint.received
    arrived = list(dict.fromkeys(request.id for request in received))
    if at_once:
        arrived, published = sorted(arrived), sorted(published)
    assert arrived == list(published), (arrived, published)
    again = resent(received)
    assert len(again) <= crashes
    for request in again:
        assert request.redelivery == "in-doubt"
        assert request.attempt > 1
        assert outcomes(flow, of, request.id)[request.attempt - 2] == "LOST"


def outcomes(flow: Flow, of: StartedSubscription, message: str) -> list[str]:
    """Return the outcomes in a delivery's history."""
    attempts = flow.delivery(of, message)["attempts"]
    assert [attempt["number"] for attempt in attempts] == list(range(1, len(attempts) + 1))
    return [attempt["outcome"] for attempt in attempts]
