"""The journal names the person, the kind and the number of each import from an old broker."""

from pathlib import Path
from typing import Any

import pytest

from delivery.management.terminal_user import terminal_user
from delivery.models import JournalEntry
from subscriptions.models import DedupMode
from tests.support import factories
from tests.support.sequences import kept_sequences  # noqa: F401 - a fixture
from tests.unit.delivery.management.importing.test_backlog import run, written

pytestmark = pytest.mark.usefixtures("kept_sequences")


@pytest.fixture(autouse=True)
def _shop(db: None) -> None:
    factories.publisher("shop")
    factories.subscription(
        "orders",
        subscriber=factories.subscriber("crm"),
        event_type=factories.event_type("Orders.Created"),
        dedup_mode=DedupMode.KEY,
    )


def lines(**fields: Any) -> list[dict[str, Any]]:
    return [{"key": f"old-{number}"} | fields for number in range(2)]


def entries() -> list[str]:
    found = JournalEntry.objects.filter(kind="IMPORTED", actor=terminal_user()).order_by("id")
    return [entry.text for entry in found]


def test_of_a_backlog(tmp_path: Path) -> None:
    path = written(tmp_path, lines(event="Orders.Created", body={}))
    run("backlog", str(path), "--publisher", "shop")
    assert entries() == []
    assert run("backlog", str(path), "--publisher", "shop", "--apply")[0] == 0
    what = f"import of the backlog {path}, 2 messages with 2 deliveries."
    assert entries() == [f"Begins: {what}", f"Done: {what}"]


def test_of_delivered_messages(tmp_path: Path) -> None:
    path = written(tmp_path, lines(subscriptions=["crm/orders"]))
    run("delivered", str(path))
    assert entries() == []
    assert run("delivered", str(path), "--apply")[0] == 0
    what = f"import of {path}, delivered by the old broker, 2 keys."
    assert entries() == [f"Begins: {what}", f"Done: {what}"]


def test_of_reserved_places() -> None:
    assert run("reserve", "2")[0] == 0
    assert [text.partition(":")[0] for text in entries()] == ["Reserved places for 2 messages"]
