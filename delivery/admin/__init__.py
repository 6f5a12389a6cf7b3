"""The console's pages for what was published and what became of it."""

from delivery.admin import (
    delivery,
    journal,
    lane,
    message,
    resubmission,
    retention,
    subscriber,
    subscription,
    url_health,
)

__all__ = [
    "delivery",
    "journal",
    "lane",
    "message",
    "resubmission",
    "retention",
    "subscriber",
    "subscription",
    "url_health",
]
