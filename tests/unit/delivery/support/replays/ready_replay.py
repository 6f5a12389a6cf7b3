"""Preparations of replay tests: a small archive, and a replay of it that is READY or RUNNING."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone

from delivery.models import Delivery, Message, Replay, ReplayItem, ReplayState
from delivery.support.replays.deliver import advance_replay, is_due
from subscriptions.models import EventType, Subscription
from tests.support import factories
from tests.unit.delivery.history.archived import AT, message, seconds, write


def stored(event_type: EventType, count: int = 1) -> list[Message]:
    """Create messages in PostgreSQL."""
    publisher = factories.publisher()
    return [factories.message(event_type=event_type, publisher=publisher) for _ in range(count)]


def archived(url: Path, event_type: EventType, ids: Sequence[int], **fields: Any) -> None:
    """Create messages in the archive alone."""
    publisher = factories.publisher()
    rows = [
        message(
            id,
            event_type=event_type.name,
            publisher=publisher.name,
            published_at=seconds(id % 1000),
            **fields,
        )
        for id in ids
    ]
    write(url, messages=rows)


def ready(subscription: Subscription, ids: Sequence[int], **fields: Any) -> Replay:
    """Create a replay that has selected these messages."""
    defaults = {
        "state": ReplayState.READY,
        "event_types": [subscription.event_type.name],
        "since": AT,
        "until": AT + timedelta(days=1),
        "asked_by": "ann",
        "count": len(ids),
        "due_at": timezone.now() - timedelta(seconds=1),
    }
    replay = Replay.objects.create(subscription=subscription, **defaults | fields)
    ReplayItem.objects.bulk_create(ReplayItem(replay=replay, message_id=id) for id in ids)
    return replay


def running(subscription: Subscription, ids: Sequence[int], **fields: Any) -> Replay:
    return ready(subscription, ids, state=ReplayState.RUNNING, **fields)


def step(replay: Replay) -> int:
    """Run one batch, as the duty does."""
    due = is_due(timezone.now())
    with transaction.atomic():
        done = advance_replay(timezone.now())
    assert due or not done
    replay.refresh_from_db()
    return done


def finish(replay: Replay) -> Replay:
    """Advance until it has ended."""
    while replay.state == ReplayState.RUNNING:
        assert step(replay) > 0
    return replay


def made(replay: Replay) -> list[Delivery]:
    return list(Delivery.objects.filter(replay=replay).order_by("id"))
