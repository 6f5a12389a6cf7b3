"""`up --demo`: within seconds there is something to see; it stops and restarts like any `up`."""

import signal
import socket
from collections.abc import Iterator

import pytest

from delivery.management.demo.cast import SUBSCRIPTIONS
from delivery.management.demo.trickle import (
    BRISK_SECONDS,
    LATER_PAUSE_SECONDS,
    PAUSE_SECONDS,
    trickle_pause,
)
from tests.support.product import Product
from tests.support.rest import Json
from tests.system.operation.installation import DEADLINE_SECONDS, eventually, kill

MAILBOX = ("demo-warehouse/goods-in", "demo-warehouse/relocations")


class Demo(Product):
    """An installation with the demo, without a setting that allows the loopback."""

    arguments = ("--demo",)

    def start(self) -> None:
        """Start, and wait for the demo: it provisions after the web server is ready."""
        super().start()
        eventually(
            lambda: len(self.subscriptions()) == len(SUBSCRIPTIONS), "everything is provisioned"
        )

    def subscriptions(self) -> dict[str, Json]:
        """Return the demo's subscriptions, without the built-in ones that callbacks need."""
        rows = self.rest.all("subscriptions")
        # Some of the demo's endpoints are down now and then.
        names = {f"{row['subscriber']}/{row['name']}": row | {"endpoint_state": ""} for row in rows}
        return {name: row for name, row in names.items() if name.startswith("demo-")}

    def delivered(self, subscription: str) -> int:
        """Return how many deliveries of a subscription are DELIVERED; it counts to 500."""
        return len(self.deliveries(subscription, status="DELIVERED"))

    def deliveries(self, subscription: str, **query: str) -> list[Json]:
        id = self.subscriptions()[subscription]["id"]
        found: list[Json] = self.rest.get("deliveries", subscription=id, limit=500, **query)[
            "results"
        ]
        return found

    def wait_until_more(self, subscription: str) -> None:
        before = self.delivered(subscription)
        eventually(
            lambda: self.delivered(subscription) > before, f"more of {subscription} is DELIVERED"
        )

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


@pytest.mark.slow
def test_messages_are_delivered_and_one_subscriber_is_blocked(running_demo: Demo) -> None:
    for subscription in (
        "demo-reporting/all-created",
        "demo-reporting/two-projects",
        "demo-crm/cases",
    ):
        running_demo.wait_until_more(subscription)
    eventually(lambda: running_demo.billing()["state"] == "BLOCKED", "demo-billing is BLOCKED")
    assert running_demo.billing()["waiting"] > 0


@pytest.mark.slow
def test_to_make_the_endpoint_that_is_down_inactive_unblocks_the_other(running_demo: Demo) -> None:
    eventually(lambda: running_demo.billing()["state"] == "BLOCKED", "demo-billing is BLOCKED")
    invoices = f"subscriptions/{running_demo.subscriptions()['demo-billing/invoices']['id']}"
    running_demo.rest.patch(invoices, {"status": "INACTIVE"})
    running_demo.wait_until_more("demo-billing/contracts")
    running_demo.rest.patch(invoices, {"status": "ACTIVE", "backlog": "deliver"})
    eventually(
        lambda: running_demo.billing()["state"] == "BLOCKED", "demo-billing is BLOCKED again"
    )


@pytest.mark.slow
def test_workers_share_the_jobs_and_do_the_share_of_the_one_that_is_down(
    running_demo: Demo,
) -> None:
    for worker in ("demo-builds/worker-1", "demo-builds/worker-2"):
        running_demo.wait_until_more(worker)
    assert running_demo.deliveries("demo-builds/worker-3", status="REDUNDANT")
    assert running_demo.delivered("demo-builds/worker-3") == 0


@pytest.mark.slow
def test_refused_messages_are_retried_while_the_rest_flows(running_demo: Demo) -> None:
    def retried() -> list[Json]:
        taken = running_demo.deliveries("demo-search/index", status="DELIVERED")
        return [delivery for delivery in taken if delivery["attempt_count"] > 1]

    eventually(lambda: bool(retried()), "a message that demo-search could not take is DELIVERED")
    assert {delivery["lane"] for delivery in retried()} == {"retry:0"}
    assert running_demo.rest.get("lanes/demo-search")["state"] in ("IDLE", "SENDING")


@pytest.mark.slow
def test_a_build_reports_its_result_by_callback(running_demo: Demo) -> None:
    def reported() -> list[Json]:
        answers = {"subscriber": "Inturn.Callbacks", "status": "DELIVERED"}
        found: list[Json] = running_demo.rest.get("deliveries", **answers)["results"]
        return found

    eventually(lambda: bool(reported()), "an answer is DELIVERED to the publisher's URL")
    answer = running_demo.rest.get(f"messages/{reported()[0]['message']}")
    assert answer["body"]["result"] in ("passed", "failed")


@pytest.mark.slow
def test_a_slow_reader_acknowledges_its_mailbox(running_demo: Demo) -> None:
    for subscription in MAILBOX:
        running_demo.wait_until_more(subscription)
    delivery = running_demo.deliveries(MAILBOX[0], status="DELIVERED")[0]
    fetches = running_demo.rest.get(f"deliveries/{delivery['id']}")["attempts"]
    assert fetches[-1]["outcome"] == "ACKNOWLEDGED"


@pytest.mark.slow
def test_a_message_is_delivered_to_one_subscriber_now_and_then(running_demo: Demo) -> None:
    def delivered() -> list[Json]:
        found: list[Json] = running_demo.rest.get("messages", destination="demo-reporting")[
            "results"
        ]
        return found

    eventually(lambda: bool(delivered()), "a message is delivered to demo-reporting")
    shown = running_demo.rest.get(f"messages/{delivered()[0]['id']}")
    assert {delivery["subscriber"] for delivery in shown["deliveries"]} == {"demo-reporting"}


@pytest.mark.slow
def test_the_trickle_outlives_its_database(running_demo: Demo) -> None:
    trickle, postgres = running_demo.top("demo"), running_demo.postmaster()
    kill(postgres)
    running_demo.wait_for_postgres_after(postgres)
    running_demo.wait_until_more("demo-reporting/all-created")
    assert running_demo.top("demo") == trickle


@pytest.mark.slow
def test_the_demo_stops_cleanly_and_starts_again(running_demo: Demo) -> None:
    before = running_demo.subscriptions()
    assert running_demo.up is not None
    running_demo.up.send_signal(signal.SIGINT)
    _, reported = running_demo.up.communicate(timeout=DEADLINE_SECONDS)
    assert running_demo.up.returncode == 0
    assert len([line for line in reported.splitlines() if "127.0.0.0/8" in line]) == 1
    assert "killing it" not in reported
    assert running_demo.processes() == set()
    running_demo.start()
    running_demo.wait_until_more("demo-reporting/all-created")
    assert running_demo.subscriptions() == before


@pytest.mark.slow
def test_endpoints_of_the_demo_move_when_their_port_is_taken(running_demo: Demo) -> None:
    before = running_demo.subscriptions()
    running_demo.stop()
    with socket.socket() as other:
        other.bind(("127.0.0.1", answering_port(running_demo)))
        other.listen()
        running_demo.start()
        running_demo.wait_until_more("demo-reporting/all-created")
    after = running_demo.subscriptions()
    moved = {name for name in before if before[name]["endpoint"] != after[name]["endpoint"]}
    without_it = {"demo-billing/invoices", "demo-builds/worker-3", *MAILBOX}
    assert moved == set(before) - without_it


def answering_port(demo: Demo) -> int:
    return int((demo.home / "demo-port").read_text().split()[0])


def test_the_demo_starts_fast_and_slows_down() -> None:
    assert trickle_pause(0.0) == PAUSE_SECONDS
    assert trickle_pause(BRISK_SECONDS) == LATER_PAUSE_SECONDS
