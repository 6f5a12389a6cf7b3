"""The version before goes on working while this one migrates its database and starts beside it.

Its processes know nothing of the new columns, tables and triggers: their rows must be right, and
the rows of this version must not disturb them.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from config.embedded.postgres import throwaway
from tests.support.product import Flow, Product
from tests.support.receivers import OK, Answer, Receiver
from tests.system.faults.load import Load
from tests.system.faults.observed import Observed
from tests.system.faults.promises import insist
from tests.system.flows.test_mailbox import pull
from tests.system.operation import previous
from tests.system.operation.installation import eventually

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(previous.missing()), reason=previous.missing()),
]


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """The code of the version before."""
    previous.unpack_previous(tmp_path)
    return tmp_path


@pytest.fixture
def server() -> Iterator[str]:
    """The URL of an empty database that outlives each version."""
    with throwaway() as url:
        yield url


@pytest.fixture
def old(code: Path, server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The version before, started on its own schema."""
    product = Product(tmp_path_factory.mktemp("old"), DATABASE_URL=server)
    product.program = (sys.executable, str(code / "manage.py"))
    try:
        product.start()
        yield product
    finally:
        product.kill_all()


@pytest.fixture
def new(old: Product, server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """This version on a second machine with the same database; a test starts it."""
    product = Product(
        tmp_path_factory.mktemp("new"),
        DATABASE_URL=server,
        INTURN_SECRET_KEY=(old.home / "secret-key").read_text(),
        INTURN_ENCRYPTION_KEYS=(old.home / "encryption-keys").read_text(),
    )
    try:
        yield product
    finally:
        product.kill_all()


def test_messages_flow_while_this_version_replaces_the_one_before(
    code: Path, old: Product, new: Product, receiver: Receiver
) -> None:
    flow = old.flow("Upgrade")
    to = flow.subscribe(receiver.endpoint("steady"))
    load = Load(flow)
    with load.running():
        load.wait_for_more(30)
        new.start()
        assert unknown_migrations(old, code), "its database was migrated"
        load.wait_for_more(30)
        work_with(old, receiver, "old")
        work_with(new, receiver, "new")
        assert errors(old) == []
    assert load.refused == []
    # Its keys are its own: the messages of the first are not published again.
    new.rest.post("publishers", {"name": f"{flow.event_type}.new"})
    later = Flow(new, flow.event_type, new.publisher_of(f"{flow.event_type}.new"))
    also = Load(later)
    with also.running():
        also.wait_for_more(10)
        # The senders of the version before serve the lane until now.
        assert old.stop()[0] == 0
        eventually(lambda: len(Observed(new).senders()) == 2, "the new senders go on alone")
        also.wait_for_more(30)
    insist(later, to, [*load.accepted, *also.accepted])
    assert errors(new) == []


def work_with(product: Product, receiver: Receiver, name: str) -> None:
    """Use the product's API as people and applications do each day."""
    flow = product.flow(f"Daily.{name}")
    to = flow.subscribe(receiver.endpoint(name))
    mailbox = pull(flow, f"{name}-reader")
    to.endpoint.next(Answer(400))
    first, *others = flow.publish_numbered(3)
    assert flow.wait_until_settled(to) == ["REJECTED", "DELIVERED", "DELIVERED"]
    rejected = flow.delivery(to, first)
    to.endpoint.always(OK)
    flow.rest.post(f"deliveries/{rejected['id']}/resubmit")
    to.endpoint.wait_for_count(4)
    assert set(flow.wait_until_settled(to)) == {"DELIVERED"}
    got = mailbox.next(max=10)
    assert [message["id"] for message in got] == [first, *others]
    assert all(result["ok"] for result in mailbox.say("ack", *got))
    flow.rest.patch(f"subscriptions/{to.id}", {"filter": "$$->'Body'->>'number' = '1'"})
    assert flow.rest.get(f"messages/{first}/explain")
    assert flow.rest.get("lanes")["results"]


def unknown_migrations(product: Product, code: Path) -> list[str]:
    """Return the migrations of the product's database that the code does not have."""
    with product.connect() as connection:
        rows = connection.execute(
            "SELECT app, name FROM django_migrations WHERE app IN ('delivery', 'subscriptions')"
        ).fetchall()
    return [
        f"{app}.{name}"
        for app, name in rows
        if not (code / app / "migrations" / f"{name}.py").exists()
    ]


def errors(product: Product) -> list[str]:
    """Return the events in the product's logs that nobody should ever see."""
    lines = [
        orjson.loads(line)
        for log in (product.home / "logs").glob("*.log")
        for line in log.read_text().splitlines()
        if line.startswith("{")
    ]
    return [
        f"{line['event']} {line.get('traceback', '')}"
        for line in lines
        if line["level"] in {"ERROR", "CRITICAL"}
    ]
