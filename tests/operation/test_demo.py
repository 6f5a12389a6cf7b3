"""`up --demo`: within seconds there is something to see, and it ends and starts again like all of `up`."""

import signal
import socket
from collections.abc import Iterator

import pytest

from delivery.demo.cast import WISHES
from delivery.demo.trickle import BRISK_SECONDS, LATER_PAUSE_SECONDS, PAUSE_SECONDS, pause_seconds
from tests.operation.installation import DEADLINE_SECONDS, eventually, kill
from tests.product import Product
from tests.rest import Json


class Demo(Product):
    """An installation with the demo; of the loopback it was told nothing."""

    arguments = ("--demo",)

    def start(self) -> None:
        """The demo provisions while the web server is ready already."""
        super().start()
        eventually(lambda: len(self.subscriptions()) == len(WISHES), "everything is provisioned")

    def subscriptions(self) -> dict[str, Json]:
        return {f"{row['subscriber']}/{row['name']}": row for row in self.rest.all("subscriptions")}

    def delivered(self, subscription: str) -> int:
        """How many of a subscription are DELIVERED; it counts to 500."""
        id = self.subscriptions()[subscription]["id"]
        query = {"subscription": id, "status": "DELIVERED", "limit": 500}
        return len(self.rest.get("deliveries", **query)["results"])

    def wait_until_more(self, subscription: str) -> None:
        before = self.delivered(subscription)
        eventually(lambda: self.delivered(subscription) > before, f"more of {subscription} is DELIVERED")

    def billing(self) -> Json:
        return self.rest.get("lanes/demo-billing")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    demo = Demo(tmp_path_factory.mktemp("demo"), INTURN_ALLOWED_NETWORKS="10.9.0.0/16")
    try:
        yield demo
    finally:
        demo.kill_all()


@pytest.fixture
def running_demo(demo: Demo) -> Demo:
    if not demo.is_running():
        demo.start()
    return demo


def test_messages_are_delivered_and_one_subscriber_is_blocked(running_demo: Demo) -> None:
    for subscription in ("demo-reporting/all-created", "demo-reporting/two-projects", "demo-crm/cases"):
        running_demo.wait_until_more(subscription)
    eventually(lambda: running_demo.billing()["state"] == "BLOCKED", "demo-billing is BLOCKED")
    assert running_demo.billing()["waiting"] > 0


def test_to_make_the_endpoint_that_is_down_inactive_unblocks_the_other(running_demo: Demo) -> None:
    eventually(lambda: running_demo.billing()["state"] == "BLOCKED", "demo-billing is BLOCKED")
    invoices = f"subscriptions/{running_demo.subscriptions()['demo-billing/invoices']['id']}"
    running_demo.rest.patch(invoices, {"status": "INACTIVE"})
    running_demo.wait_until_more("demo-billing/contracts")
    running_demo.rest.patch(invoices, {"status": "ACTIVE", "backlog": "deliver"})
    eventually(lambda: running_demo.billing()["state"] == "BLOCKED", "demo-billing is BLOCKED again")


def test_the_trickle_outlives_its_database(running_demo: Demo) -> None:
    trickle, postgres = running_demo.top("demo"), running_demo.postmaster()
    kill(postgres)
    eventually(lambda: running_demo.postmaster() not in (None, postgres), "another server")
    eventually(running_demo.is_ready, "the web server has found it")
    running_demo.wait_until_more("demo-reporting/all-created")
    assert running_demo.top("demo") == trickle


def test_it_ends_whole_having_said_what_it_allowed_and_starts_again_as_it_was(running_demo: Demo) -> None:
    before = running_demo.subscriptions()
    assert running_demo.up is not None
    running_demo.up.send_signal(signal.SIGINT)
    _, told = running_demo.up.communicate(timeout=DEADLINE_SECONDS)
    assert running_demo.up.returncode == 0
    assert len([line for line in told.splitlines() if "127.0.0.0/8" in line]) == 1
    assert "killing it" not in told
    assert running_demo.processes() == set()
    running_demo.start()
    running_demo.wait_until_more("demo-reporting/all-created")
    assert running_demo.subscriptions() == before


def test_its_endpoints_move_when_their_port_was_taken_meanwhile(running_demo: Demo) -> None:
    before = running_demo.subscriptions()
    running_demo.stop()
    with socket.socket() as other:
        other.bind(("127.0.0.1", answering_port(running_demo)))
        other.listen()
        running_demo.start()
        running_demo.wait_until_more("demo-reporting/all-created")
    after = running_demo.subscriptions()
    moved = {name for name in before if before[name]["endpoint"] != after[name]["endpoint"]}
    assert moved == set(before) - {"demo-billing/invoices"}


def answering_port(demo: Demo) -> int:
    return int((demo.home / "demo-port").read_text().split()[0])


def test_it_is_brisk_at_first_and_slow_when_it_is_forgotten() -> None:
    assert pause_seconds(0.0) == PAUSE_SECONDS
    assert pause_seconds(BRISK_SECONDS) == LATER_PAUSE_SECONDS
