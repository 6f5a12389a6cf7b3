"""`import delivered`: messages that an old broker has delivered are not sent again."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from delivery.models import DedupKey, Delivery, JournalEntry, Message, Status
from subscriptions.models import DedupMode, EventType, Subscription
from tests.support import factories
from tests.unit.delivery.management.importing.test_backlog import publish_one, run, written

PATH = "$$->'Body'->>'n'"


@pytest.fixture(autouse=True)
def _publisher(db: None) -> None:
    factories.publisher("shop")


@pytest.fixture
def event_type(db: None) -> EventType:
    return factories.event_type("Orders.Created")


@pytest.fixture
def subscription(event_type: EventType) -> Subscription:
    return factories.subscription(
        "orders",
        subscriber=factories.subscriber("crm"),
        event_type=event_type,
        dedup_mode=DedupMode.KEY,
    )


def line(key: str, **fields: Any) -> dict[str, Any]:
    return {"key": key, "subscriptions": ["crm/orders"]} | fields


def imported(folder: Path, *lines: dict[str, Any], more: tuple[str, ...] = ()) -> tuple[int, str]:
    return run("delivered", str(written(folder, lines)), "--apply", *more)


def last() -> Delivery:
    return Delivery.objects.latest("id")


def test_without_apply_it_reports_and_changes_nothing(
    subscription: Subscription, tmp_path: Path
) -> None:
    code, out = run("delivered", str(written(tmp_path, [line("a"), line("b")])))
    assert code == 2
    assert "Taken over (2)\n  crm/orders: 2 keys\n" in out
    assert not DedupKey.objects.exists()


def test_a_message_published_again_is_a_duplicate(
    subscription: Subscription, event_type: EventType, tmp_path: Path
) -> None:
    assert imported(tmp_path, line("a"))[0] == 0
    publish_one(event_type, 1, idempotency_key="a")
    assert last().status == Status.DUPLICATE
    assert last().reason == "duplicate of a delivery by the old broker"
    publish_one(event_type, 2, idempotency_key="b")
    assert last().status == Status.PENDING


def test_a_second_import_changes_nothing(subscription: Subscription, tmp_path: Path) -> None:
    imported(tmp_path, line("a"))
    before = list(DedupKey.objects.values())
    for more in ([], ["--apply"]):
        code, out = run("delivered", str(written(tmp_path, [line("a")])), *more)
        assert (code, list(DedupKey.objects.values())) == (0, before)
        assert "Taken over (0)" in out
        assert "keys left out, because they were imported before: 1" in out


def test_a_waiting_delivery_of_inturn_becomes_a_duplicate(
    subscription: Subscription, event_type: EventType, tmp_path: Path
) -> None:
    publish_one(event_type, 1, idempotency_key="a")
    _, out = imported(tmp_path, line("a"))
    assert "waiting deliveries of Inturn that became DUPLICATE, and will not be sent: 1" in out
    assert (last().status, last().reason) == (Status.DUPLICATE, "the old broker delivered it")
    assert JournalEntry.objects.filter(kind="DUPLICATE").exists()
    publish_one(event_type, 1, idempotency_key="a")
    assert last().status == Status.DUPLICATE


def test_a_delivery_of_both_brokers_stays_delivered(
    subscription: Subscription, event_type: EventType, tmp_path: Path
) -> None:
    publish_one(event_type, 1, idempotency_key="a")
    Delivery.objects.update(status=Status.DELIVERED, settled_at=Message.objects.get().published_at)
    _, out = imported(tmp_path, line("a"))
    assert "keys left out, because Inturn has delivered the message as well: 1" in out
    assert last().status == Status.DELIVERED


def test_a_failure_of_inturn_is_not_repeated_after_the_old_brokers_delivery(
    subscription: Subscription, event_type: EventType, tmp_path: Path
) -> None:
    publish_one(event_type, 1, idempotency_key="a")
    Delivery.objects.update(status=Status.FAILED, settled_at=Message.objects.get().published_at)
    imported(tmp_path, line("a"))
    publish_one(event_type, 1, idempotency_key="a")
    assert last().status == Status.DUPLICATE


def test_keys_older_than_the_window_are_left_out(
    subscription: Subscription, tmp_path: Path
) -> None:
    old = timezone.now() - timedelta(seconds=subscription.dedup_window_seconds + 1)
    code, out = imported(tmp_path, line("a", delivered_at=old.isoformat()))
    assert (code, DedupKey.objects.count()) == (0, 0)
    assert (
        "keys left out, because they are older than the subscription's dedup_window_seconds: 1"
        in out
    )


def test_the_window_begins_with_the_old_delivery(
    subscription: Subscription, tmp_path: Path
) -> None:
    at = timezone.now() - timedelta(hours=1)
    imported(tmp_path, line("a", delivered_at=at.isoformat()))
    assert DedupKey.objects.get().seen_at == at


@pytest.mark.parametrize("fields", [{"key": "7"}, {"body": {"n": 7}}, {"body": {"n": "7"}}])
def test_a_path_takes_the_text_or_the_body(
    subscription: Subscription, event_type: EventType, tmp_path: Path, fields: dict[str, Any]
) -> None:
    Subscription.objects.update(dedup_mode=DedupMode.PATH, dedup_path=PATH)
    assert imported(tmp_path, fields | {"subscriptions": ["crm/orders"]})[0] == 0
    publish_one(event_type, 7)
    assert last().status == Status.DUPLICATE


@pytest.mark.parametrize(
    ("mode", "path", "fields", "reason"),
    [
        (
            DedupMode.NONE,
            "",
            {},
            "crm/orders does not look for duplicates: set its dedup_mode to KEY or PATH",
        ),
        (DedupMode.PATH, "$$->'Body'->'n'", {}, "write headers and body of the message, too."),
        (DedupMode.PATH, PATH, {"body": {}}, "it has no value at $$->'Body'->>'n'"),
        (DedupMode.KEY, "", {"subscriptions": None}, "list the subscriptions that have got it."),
    ],
)
def test_a_faulty_line_refuses_the_file(
    subscription: Subscription,
    tmp_path: Path,
    mode: str,
    path: str,
    fields: dict[str, Any],
    reason: str,
) -> None:
    Subscription.objects.update(dedup_mode=mode, dedup_path=path)
    code, out = imported(tmp_path, line("a", **fields))
    assert code == 1
    assert reason in out
    assert not DedupKey.objects.exists()
