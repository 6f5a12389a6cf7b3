"""Telling of failures: one message of the event type `Inturn.Delivery.Failed` for each settled failure.

Who settles a failure leaves a notice in the same transaction (`delivery.models.failure_notice`); here the notice goes in the
transaction that stores the message. So each failure is told once, whoever dies in between. What a person reopens or
decides is told first, while its row still says how it failed.

The failure of a delivery that tells of a failure is not told: it would never end.
"""

from collections.abc import Collection, Mapping
from typing import Any

import orjson

from delivery.database import queries
from delivery.models.message import public_id
from delivery.publishing.drafts import Draft
from delivery.publishing.publish import publish_own
from delivery.states import FAILURES
from subscriptions.matching.lookups import event_type_by_name
from subscriptions.models import EventType

EVENT_TYPE = "Inturn.Delivery.Failed"
JSON = "application/json"


def tell(*, limit: int) -> int:
    """Tell the oldest failures, and return how many notices are gone. Call it in a transaction."""
    return _tell(limit=limit, deliveries=None)


def tell_of(delivery_ids: Collection[int]) -> None:
    """Tell the failures of these deliveries that are not told yet. Call it in the transaction that changes them.

    They are locked from here on: a sender that settles one of them now would leave its notice to a row that has
    forgotten how it failed.
    """
    queries.execute("lock_groups", {"delivery": list(delivery_ids)})
    _tell(limit=None, deliveries=list(delivery_ids))


def _tell(*, limit: int | None, deliveries: list[int] | None) -> int:
    """Tell what is a failure: what a person settled while its last attempt was under way is none."""
    notices = queries.named_rows("take_failures", {"limit": limit, "delivery": deliveries})
    told = [notice for notice in notices if notice["status"] in FAILURES and notice["event"] != EVENT_TYPE]
    if told:
        event_type = event_type_by_name(EVENT_TYPE)
        assert event_type is not None, "it comes with the installation and cannot be deleted"
        publish_own([_draft(event_type, notice) for notice in told])
    return len(notices)


def _draft(event_type: EventType, notice: Mapping[str, Any]) -> Draft:
    return Draft(
        event_type=event_type,
        # Subscribers wait for what concerns themselves: their name finds it, without a filter.
        headers={"content-type": JSON, "filter-string": notice["subscriber"]},
        body=orjson.dumps(_told(notice), option=orjson.OPT_UTC_Z),
        content_type=JSON,
    )


def _told(notice: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of a failure: as the event type's sample shows it."""
    tried = ("number", "started_at", "duration_ms", "outcome", "status_code", "error")
    return {
        "delivery": notice["delivery"],
        "message": public_id(notice["message_id"]),
        **{name: notice[name] for name in ("event", "subscriber", "subscription", "status", "attempts")},
        # What expired may never have been tried.
        "attempt": {name: notice[name] for name in tried} if notice["number"] is not None else None,
    }
