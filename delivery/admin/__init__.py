"""The console's pages for what was published and what became of it."""

from delivery.admin import (
    delivery,
    event_type,
    journal,
    lane,
    message,
    payload_view,
    resubmission,
    retention,
    subscriber,
    subscription,
    url_health,
)

__all__ = [
    "delivery",
    "event_type",
    "journal",
    "lane",
    "message",
    "payload_view",
    "resubmission",
    "retention",
    "subscriber",
    "subscription",
    "url_health",
]
