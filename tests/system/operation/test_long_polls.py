"""Clients that wait at a mailbox: each message goes to one, and others are not delayed."""

import re
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest

from config.up import processes
from delivery.mailbox.notifications import APPLICATION_NAME
from tests.support.product import Product
from tests.system.operation.installation import eventually
from tests.system.operation.mailboxes import (
    LONG,
    SOON,
    ServedMailbox,
    WaitingClient,
    waiting_clients,
)

pytestmark = pytest.mark.slow

WEB_THREADS = 8

Join = Callable[..., WaitingClient]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = Product(tmp_path_factory.mktemp("polls"))
    try:
        product.start()
        yield product
    finally:
        product.kill_all()


@pytest.fixture
def product(started: Product) -> Product:
    eventually(lambda: waiting_clients(started) == 0, "nobody waits any more")
    return started


@pytest.fixture
def box(product: Product) -> ServedMailbox:
    return ServedMailbox(product.flow("Poll"), "reader")


@pytest.fixture
def join() -> Iterator[Join]:
    """Add a client that waits behind the others."""
    with ExitStack() as stack:

        def join(box: ServedMailbox, wait: int = LONG, **query: Any) -> WaitingClient:
            before = waiting_clients(box.product)
            client = stack.enter_context(WaitingClient(box, wait=wait, **query))
            eventually(lambda: waiting_clients(box.product) == before + 1, "it waits")
            return client

        yield join


def test_a_published_message_reaches_one_waiting_client_at_once(
    box: ServedMailbox, join: Join
) -> None:
    first, second = join(box), join(box)
    began = time.monotonic()
    assert [box.publish()] == first.ids()
    assert time.monotonic() - began < SOON
    eventually(lambda: waiting_clients(box.product) == 1, "the other waits on")
    assert [box.publish()] == second.ids()


def test_a_long_message_reaches_a_waiting_client_once(box: ServedMailbox, join: Join) -> None:
    """Its answer is longer than a piece of `config.web.answers`."""
    client, other = join(box), join(box)
    text = "x" * 400_000
    published = box.flow.publish(orjson.dumps({"text": text}), FILTER_STRING=box.name)
    (message,) = client.messages()
    assert (message["id"], message["receive_count"]) == (published, 1)
    assert text in str(message)
    assert [box.publish()] == other.ids()


def test_waiting_clients_are_served_first_come_first_served(box: ServedMailbox, join: Join) -> None:
    clients = [join(box) for _ in range(4)]
    published = [box.publish() for _ in range(4)]
    assert [client.ids() for client in clients] == [[id] for id in published]


def test_the_next_client_gets_the_messages_that_one_left(box: ServedMailbox, join: Join) -> None:
    greedy, modest, unlucky = join(box, max=3), join(box), join(box, wait=2)
    published = box.publish_batch(4)
    assert greedy.ids() + modest.ids() == published
    assert unlucky.ids() == []


def test_a_wait_without_message_ends_with_204(box: ServedMailbox, join: Join) -> None:
    client = join(box, wait=1)
    response, body = client.answer()
    assert (response.status, body) == (204, b"")
    assert 0.9 <= time.monotonic() - client.asked_at < 1.0 + SOON
    # And again, on the same connection.
    client.again()
    assert client.answer()[0].status == 204


def test_an_expired_visibility_wakes_a_client(box: ServedMailbox, join: Join) -> None:
    published = box.publish()
    box.next(visibility=2)
    (back,) = join(box).messages()
    assert (back["id"], back["receive_count"]) == (published, 2)


def test_an_ended_delay_wakes_a_client(box: ServedMailbox, join: Join) -> None:
    published = box.publish()
    (message,) = box.next()
    with box.ask("release", receipt=message["receipt"], delay=2) as released:
        assert released.answer()[0].status == 200
    assert join(box).ids() == [published]


def test_a_released_message_wakes_a_client(box: ServedMailbox, join: Join) -> None:
    published = box.publish()
    (message,) = box.next()
    client = join(box)
    with box.ask("release", receipt=message["receipt"]) as released:
        assert released.answer()[0].status == 200
    assert client.ids() == [published]


def test_nothing_is_fetched_for_a_disconnected_client(box: ServedMailbox, join: Join) -> None:
    gone = join(box)
    gone.connection.close()
    eventually(lambda: waiting_clients(box.product) == 0, "it is noticed")
    box.publish()
    assert [message["receive_count"] for message in box.next()] == [1]


def test_a_disconnected_client_does_not_delay_the_next(box: ServedMailbox, join: Join) -> None:
    gone, still_here = join(box), join(box)
    gone.connection.close()
    assert [box.publish()] == still_here.ids()


def test_mailboxes_do_not_wake_each_other(box: ServedMailbox, product: Product, join: Join) -> None:
    other = ServedMailbox(product.flow("Other"), "other")
    here, there = join(box), join(other)
    published = other.publish()
    assert there.ids() == [published]
    assert [box.publish()] == here.ids()


def test_a_key_revoked_during_the_wait_fetches_nothing(box: ServedMailbox, join: Join) -> None:
    client, other = join(box), join(box)
    rest = box.flow.rest
    (key,) = rest.get(f"subscribers/{box.subscriber}/keys")["results"]
    assert rest.ask("DELETE", f"subscribers/{box.subscriber}/keys/{key['id']}").status_code == 204
    box.publish()
    assert [client.answer()[0].status, other.answer()[0].status] == [401, 401]


def listening(product: Product) -> list[int]:
    with product.connect() as connection:
        return [
            pid
            for (pid,) in connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE application_name = %s", [APPLICATION_NAME]
            )
        ]


def test_a_lost_connection_loses_no_message(box: ServedMailbox, join: Join) -> None:
    clients = [join(box) for _ in range(2)]
    (pid,) = listening(box.product)
    with box.product.connect() as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", [pid])
        published = box.publish()
    assert clients[0].ids() == [published]
    eventually(lambda: listening(box.product) not in ([], [pid]), "it listens again")
    assert [box.publish()] == clients[1].ids()


def test_a_waiting_client_survives_a_database_restart(box: ServedMailbox, join: Join) -> None:
    client = join(box)
    postmaster = box.product.postmaster()
    assert postmaster is not None
    processes.send_signal(signal.SIGKILL, [postmaster])
    box.product.wait_for_postgres_after(postmaster)
    assert [box.publish()] == client.ids()


def test_a_waiting_client_gets_an_answer_when_the_web_server_stops(
    box: ServedMailbox, join: Join
) -> None:
    clients = [join(box) for _ in range(3)]
    web = box.product.top("web")
    assert web is not None
    began = time.monotonic()
    processes.send_signal(signal.SIGTERM, [web])
    assert [client.answer()[0].status for client in clients] == [204] * 3
    assert time.monotonic() - began < SOON
    eventually(lambda: box.product.top("web") not in (None, web), "the web server is started again")


def connections(product: Product) -> int:
    with product.connect() as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL"
        ).fetchone()
    assert row is not None
    count: int = row[0]
    return count


def memory_kilobytes(product: Product) -> int:
    """Return the memory of the largest web process, which has most of the clients."""
    statuses = [Path(f"/proc/{pid}/status").read_text() for pid in product.whole("web")]
    return max(
        int(found[1]) for status in statuses if (found := re.search(r"VmRSS:\s+([0-9]+)", status))
    )


def test_one_process_holds_600_waiting_clients(product: Product) -> None:
    flow = product.flow("Many")
    boxes = [ServedMailbox(flow, f"reader{number}") for number in range(60)]
    before, memory = connections(product), memory_kilobytes(product)
    with ExitStack() as stack:
        clients = [
            stack.enter_context(box.ask("next", wait=LONG)) for box in boxes for _ in range(10)
        ]
        eventually(lambda: waiting_clients(product) == 600, "all wait")
        assert len(listening(product)) == 1
        # One for each thread, one that listens, one that notifies; the number of senders'
        # connections varies.
        assert connections(product) <= before + 2 * WEB_THREADS
        print(f"600 wait with {(memory_kilobytes(product) - memory) / 600:.0f} KiB each")
        began = time.monotonic()
        assert product.is_ready()
        published = [box.publish() for box in boxes]
        eventually(lambda: len(answered(clients)) == 60, "one for each message")
        print(f"60 were served within {time.monotonic() - began:.1f} s, publishing included")
        assert {id for client in answered(clients) for id in client.ids()} == set(published)
        assert waiting_clients(product) == 540


def answered(clients: list[WaitingClient]) -> list[WaitingClient]:
    return [client for client in clients if select.select([client.connection], [], [], 0)[0]]
