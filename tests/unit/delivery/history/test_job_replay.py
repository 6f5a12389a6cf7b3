"""A replay from the archive to a real receiver, including removed messages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.product import Flow, Product, StartedSubscription
from tests.support.receivers import Receiver
from tests.unit.delivery.history.product_history import SECONDS, archive, history

COUNT = 6


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = Product(tmp_path_factory.mktemp("replay"))
    try:
        product.start()
        yield product
    finally:
        product.kill_all()


@pytest.fixture
def flow(product: Product) -> Flow:
    return product.flow("Replay")


def remove(product: Product, ids: list[int]) -> None:
    """Remove messages as retention does when they are old enough."""
    with product.connect() as connection, connection.transaction():
        rows = connection.execute(
            "DELETE FROM delivery_delivery WHERE message_id = ANY (%s) RETURNING id", [ids]
        ).fetchall()
        connection.execute(
            "DELETE FROM delivery_loggedattempt WHERE delivery_id = ANY (%s)",
            [[id for (id,) in rows]],
        )
        connection.execute("DELETE FROM delivery_message WHERE id = ANY (%s)", [ids])


def numbers(published: list[str]) -> list[int]:
    return [int(id.removeprefix("msg_")) for id in published]


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS)
def test_a_new_subscription_gets_earlier_messages(
    flow: Flow, receiver: Receiver, product: Product, tmp_path: Path
) -> None:
    first = flow.subscribe(receiver.endpoint("first"))
    published = flow.publish_numbered(COUNT)
    flow.wait_until_settled(first)
    archive(product)
    remove(product, numbers(published)[: COUNT // 2])
    late = flow.subscribe(receiver.endpoint("late"), filter="$$->'Body'->'number' > 0")
    said = history(product, "replay", f"--subscription={late.id}", "--since=2020-01-01", "--yes")
    assert f"{COUNT - 1} messages" in said
    assert flow.event_type in said
    requests = late.endpoint.wait_for_count(COUNT - 1)
    assert [request.id for request in requests] == published[1:]
    assert {request.headers["inturn-replay"] for request in requests} == {_newest(flow)}
    # Live messages come after it, unmarked; and none comes twice.
    newest = flow.publish(b'{"number": 100}')
    last = late.endpoint.wait_for_last(newest)
    assert [request.id for request in last] == [*published[1:], newest]
    assert "inturn-replay" not in last[-1].headers
    assert [delivery["replay"] for delivery in flow.deliveries(late)] == [int(_newest(flow))] * (
        COUNT - 1
    ) + [None]
    _is_reported(product, late, to=tmp_path)


def _newest(flow: Flow) -> str:
    return str(flow.rest.get("replays")["results"][0]["id"])


def _is_reported(product: Product, of: StartedSubscription, *, to: Path) -> None:
    archive(product)
    arguments = (
        "--since=2020-01-01",
        "--until=2100-01-01",
        f"--subscriber={of.subscriber}",
        f"--to={to}",
    )
    history(product, "report", *arguments)
    (file,) = to.glob("*.csv")
    assert file.read_text().count("DELIVERED") == COUNT
