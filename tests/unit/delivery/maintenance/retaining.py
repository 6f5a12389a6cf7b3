"""Preparations of retention tests: old rows, whole passes, and the row counts of all tables."""

from collections import Counter
from datetime import datetime, timedelta

from django.apps import apps
from django.db import connection, transaction
from django.utils import timezone

from delivery.maintenance import retention
from delivery.models import Delivery, Message, RetentionRun, RetentionState, Status
from tests.support import factories

# Longer than any status is kept, unless it is kept for ever.
LONG_AGO = timedelta(days=400)


def past(days: float) -> datetime:
    return timezone.now() - timedelta(days=days)


def old(status: Status = Status.DELIVERED, *, days: float = 400, **fields: object) -> Delivery:
    """Create a delivery settled so many days ago, of a message published shortly before."""
    subscription = fields.pop("subscription", None) or factories.subscription()
    if "message" not in fields:
        fields["message"] = factories.message(
            event_type=subscription.event_type,  # type: ignore[attr-defined]
            published_at=past(days),
        )
    return factories.delivery(status, subscription=subscription, **fields)


def run_whole(now: datetime | None = None) -> RetentionRun:
    """Run a pass from beginning to end, each part in a transaction as the duty does."""
    RetentionRun.objects.filter(state=RetentionState.DONE).update(started_at=past(1))
    now = now or timezone.now()
    while True:
        with transaction.atomic():
            retention.advance_pass(now)
            # Now, and not at the end of the test.
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
        run = RetentionRun.objects.latest("id")
        if run.state == RetentionState.DONE:
            return run


def are_there(*messages: Message) -> list[bool]:
    return [Message.objects.filter(pk=message.pk).exists() for message in messages]


def is_there(row: Delivery) -> bool:
    return are_there(row.message)[0]


def rows_in_all_tables() -> Counter[str]:
    """Return the number of rows of each of Inturn's tables."""
    models = [
        model
        for name in ("delivery", "subscriptions")
        for model in apps.get_app_config(name).get_models()
    ]
    return Counter({model._meta.db_table: model._default_manager.count() for model in models})
