"""Messages of an old broker, imported twice at once, or published at the same moment."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from delivery.management.importing.backlog import Backlog
from delivery.management.importing.backlog_lines import BacklogLines
from delivery.management.importing.delivered_keys import Delivered
from delivery.models import Delivery, Message, Status
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish
from subscriptions.models import DedupMode, EventType, Publisher
from tests.races.transactions import meet
from tests.support import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def event_type(transactional_db: None) -> EventType:
    factories.publisher("shop")
    event_type = factories.event_type("Orders")
    subscriber = factories.subscriber("crm")
    factories.subscription(
        "orders", subscriber=subscriber, event_type=event_type, dedup_mode=DedupMode.KEY
    )
    return event_type


def written(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "old.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def import_backlog(folder: Path) -> int:
    path = written(folder, *({"key": key, "event": "Orders", "body": 1} for key in ("b", "a")))
    return Backlog(BacklogLines(path, "old", "shop")).apply(None, progress=lambda _: None).messages


def import_delivered(folder: Path) -> int:
    path = written(folder, {"key": "a", "subscriptions": ["crm/orders"]})
    return Delivered(path, timezone.now()).apply(progress=lambda _: None).deliveries


def publish_one(event_type: EventType) -> None:
    publish(
        Publisher.objects.get(),
        [Draft(event_type=event_type, headers={"idempotency-key": "a"}, body=b"1")],
    )


def test_two_imports_of_one_file_store_each_message_once(
    event_type: EventType, tmp_path: Path
) -> None:
    stored: list[int] = []
    error = meet(
        lambda: stored.append(import_backlog(tmp_path)),
        lambda: stored.append(import_backlog(tmp_path)),
    )
    assert error is None
    assert stored == [2, 0]
    assert Message.objects.count() == 2


def test_a_message_published_during_the_import_of_its_delivery_is_a_duplicate(
    event_type: EventType, tmp_path: Path
) -> None:
    assert meet(lambda: import_delivered(tmp_path), lambda: publish_one(event_type)) is None
    assert Delivery.objects.get().status == Status.DUPLICATE


def test_a_message_being_published_is_found_by_the_import_of_its_delivery(
    event_type: EventType, tmp_path: Path
) -> None:
    assert meet(lambda: publish_one(event_type), lambda: import_delivered(tmp_path)) is None
    assert Delivery.objects.get().status == Status.DUPLICATE
