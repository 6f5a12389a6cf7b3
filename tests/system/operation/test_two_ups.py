"""Two `up`s that start at one moment.

In one empty folder one serves, and the other refuses; in two folders with one empty database, as on
two machines, both serve.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.product import Product
from tests.support.receivers import Receiver
from tests.system.operation.installation import eventually
from tests.system.operation.test_up_restarts import refusal

pytestmark = pytest.mark.slow


Make = Callable[..., Product]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made = []

    def make(home: str, **environment: str) -> Product:
        product = Product(tmp_path / home, **environment)
        made.append(product)
        return product

    yield make
    for product in made:
        product.kill_all()


def test_in_one_folder_one_serves_and_the_other_refuses_and_leaves_nothing(
    make: Make, receiver: Receiver
) -> None:
    product = make("home")
    both = [product.launch() for _ in range(2)]
    eventually(lambda: any(up.poll() is not None for up in both), "one of them ends")
    (refused,) = (up for up in both if up.poll() is not None)
    (product.up,) = (up for up in both if up is not refused)
    assert refusal(refused) == (
        f"inturn: another `up` is running on {product.home}: stop it, or set INTURN_HOME\n"
    )
    assert product.first_line() == f"ready http://127.0.0.1:{product.port}\n"

    flow = product.flow("Two")
    to = flow.subscribe(receiver.endpoint("hook"))
    flow.publish(b"{}")
    to.endpoint.wait_for_count(1)
    eventually(lambda: flow.statuses(to) == ["DELIVERED"], "the delivery is settled")

    assert product.stop() == (0, "")
    assert product.processes() == set()
    assert len(list(product.home.glob("postgresql-*"))) == 1


def test_on_one_empty_database_both_serve(
    empty_database: str, make: Make, receiver: Receiver
) -> None:
    secret = "of-all-machines" * 4
    keys = {"INTURN_SECRET_KEY": secret, "INTURN_ENCRYPTION_KEYS": secret}
    machines = [make(home, DATABASE_URL=empty_database, **keys) for home in ("one", "other")]
    for machine in machines:
        machine.up = machine.launch()
    for machine in machines:
        assert machine.first_line() == f"ready http://127.0.0.1:{machine.port}\n"

    flows = [machine.flow("Two") for machine in machines]
    for number, flow in enumerate(flows):
        to = flow.subscribe(receiver.endpoint(f"hook-{number}"))
        flow.publish(b"{}")
        to.endpoint.wait_for_count(1)

    assert [machine.stop() for machine in machines] == [(0, ""), (0, "")]
    assert [machine.processes() for machine in machines] == [set(), set()]
