"""The whole cluster, the web server, PostgreSQL, or all of them are killed -9 under load."""

import time

import pytest

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import OK, Receiver, Slow
from tests.system.faults.load import Load
from tests.system.faults.observed import Observed
from tests.system.faults.promises import insist
from tests.system.operation.installation import eventually, kill

LANES = 4
# A cluster needs the start-up time of Python and Django, on a machine that may be busy.
CLUSTER_STARTS_SECONDS = 60.0


@pytest.fixture
def lanes(flow: Flow, receiver: Receiver) -> list[StartedSubscription]:
    """Subscribers slow enough to have a backlog at the time of the kill."""
    lanes = [flow.subscribe(receiver.endpoint(f"lane-{number}")) for number in range(LANES)]
    for of in lanes:
        of.endpoint.always(Slow(0.005))
    return lanes


def insist_on_all(
    flow: Flow, lanes: list[StartedSubscription], published: list[str], *, crashes: int = 1
) -> None:
    for of in lanes:
        of.endpoint.always(OK)
    for of in lanes:
        of.endpoint.wait_for_last(published[-1], seconds=60)
        insist(flow, of, published, crashes=crashes)


@pytest.mark.slow
def test_a_killed_cluster_loses_no_message(
    flow: Flow,
    lanes: list[StartedSubscription],
    product: Product,
    capsys: pytest.CaptureFixture[str],
) -> None:
    published = flow.publish_numbered(400)
    lanes[0].endpoint.wait_for_count(50)
    kill(*product.whole("cluster"))
    killed_at = time.monotonic()
    pause = (
        lanes[0].endpoint.wait_for_later(killed_at + 0.05, seconds=CLUSTER_STARTS_SECONDS).at
        - killed_at
    )
    with capsys.disabled():
        print(f"\nthe lanes of a killed cluster flow again after {pause:.2f} s")
    insist_on_all(flow, lanes, published)


def test_killing_every_process_at_once_loses_no_message(
    flow: Flow, lanes: list[StartedSubscription], product: Product
) -> None:
    with Load(flow).running() as load:
        load.wait_for_more(50)
        product.kill_all()
        product.start()
        load.wait_for_more(20)
    insist_on_all(flow, lanes, load.accepted)


def test_postgresql_killed_under_load_loses_no_message(
    flow: Flow, lanes: list[StartedSubscription], product: Product, observed: Observed
) -> None:
    killed = product.postmaster()
    with Load(flow).running() as load:
        load.wait_for_more(50)
        kill(killed)
        product.wait_for_postgres_after(killed)
        load.wait_for_more(50)
    # The publisher's answer says that the database is away, and when to retry.
    for refusal in load.refused:
        assert refusal.status_code == 503
        assert refusal.headers["content-type"] == "application/problem+json"
        assert refusal.headers["retry-after"]
    insist_on_all(flow, lanes, load.accepted)
    eventually(lambda: observed.is_well(senders=2), "both senders are back")


@pytest.mark.slow
def test_a_killed_web_server_loses_no_message(
    flow: Flow, lanes: list[StartedSubscription], product: Product
) -> None:
    with Load(flow).running() as load:
        load.wait_for_more(50)
        kill(*product.whole("web"))
        load.wait_for_more(50)
    insist_on_all(flow, lanes, load.accepted, crashes=0)
