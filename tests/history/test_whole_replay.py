"""A replay on the started product, from the archive to a real receiver: also of messages that retention has removed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.embedded.postgres import running_url
from config.env import CHECKOUT
from tests.operation.installation import MARK
from tests.product import Flow, Product, Subscribed
from tests.receivers import Receiver

COUNT = 6
# On a machine that is busy with other things Spark takes minutes.
SECONDS = 600


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


def history(product: Product, *arguments: str) -> str:
    """Run the pipeline from the command line, on the product's database; what it says."""
    url = running_url(product.home)
    assert url is not None
    environment = os.environ | {
        "INTURN_HOME": str(product.home),
        "DATABASE_URL": url,
        MARK: product.mark,
        "PORT": str(product.port),
    }
    run = subprocess.run(
        [sys.executable, str(CHECKOUT / "manage.py"), "history", *arguments],
        env=environment,
        capture_output=True,
        check=False,
        text=True,
        timeout=SECONDS,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode in (0, 3), run.stderr
    return run.stdout


def archive(product: Product) -> None:
    """Archive all that is settled by now, be it by an export of the schedule's."""
    with product.connect() as connection:
        row = connection.execute("SELECT clock_timestamp()").fetchone()
        assert row is not None
        # Each takes as long as a JVM does; the test's own limit ends it.
        while not connection.execute("SELECT 1 FROM delivery_archived WHERE until > %s", row).fetchone():
            history(product, "export")


def remove(product: Product, ids: list[int]) -> None:
    """Remove messages as retention does, when they are old enough."""
    with product.connect() as connection, connection.transaction():
        rows = connection.execute(
            "DELETE FROM delivery_delivery WHERE message_id = ANY (%s) RETURNING id", [ids]
        ).fetchall()
        connection.execute(
            "DELETE FROM delivery_attempt WHERE delivery_id = ANY (%s)", [[id for (id,) in rows]]
        )
        connection.execute("DELETE FROM delivery_message WHERE id = ANY (%s)", [ids])


def numbers(published: list[str]) -> list[int]:
    return [int(id.removeprefix("msg_")) for id in published]


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS)
def test_a_new_subscription_gets_what_was_published_before_it(
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
    # Live messages come after it, unmarked; and nothing comes twice.
    newest = flow.publish(b'{"number": 100}')
    last = late.endpoint.wait_for_last(newest)
    assert [request.id for request in last] == [*published[1:], newest]
    assert "inturn-replay" not in last[-1].headers
    assert [one["replay"] for one in flow.deliveries(late)] == [int(_newest(flow))] * (COUNT - 1) + [None]
    _is_reported(product, late, to=tmp_path)


def _newest(flow: Flow) -> str:
    return str(flow.rest.get("replays")["results"][0]["id"])


def _is_reported(product: Product, of: Subscribed, *, to: Path) -> None:
    archive(product)
    arguments = ("--since=2020-01-01", "--until=2100-01-01", f"--subscriber={of.subscriber}", f"--to={to}")
    history(product, "report", *arguments)
    (file,) = to.glob("*.csv")
    assert file.read_text().count("DELIVERED") == COUNT
