"""Releasing a URL stopped by the circuit breaker, when a person reports it as working.

The row is locked before it is checked, so if two people release it, the second gets an error. A
sender that counts attempts at the same URL waits for the commit, and then counts from zero: the
counted attempts were made while the URL was stopped, and are a single probe at most.
"""

from django.db import transaction
from django.utils import timezone

from delivery.database import queries
from delivery.lifecycle import journal, notifier
from delivery.models import JournalKind, UrlHealth, UrlState
from subscriptions.values.shown_addresses import masked_address, secret_address_key


class NotStoppedError(Exception):
    """The URL is ENABLED already; there is nothing to release."""


def release_url(url: str, *, actor: str) -> None:
    """Make the URL ENABLED with counters at zero, and nudge the waiting lanes.

    `last_success_at` is unchanged. Raises UrlHealth.DoesNotExist for an unknown URL, and
    NotStoppedError.
    """
    with transaction.atomic():
        health = UrlHealth.objects.select_for_update(no_key=True).get(pk=url)
        if health.state == UrlState.ENABLED:
            raise NotStoppedError
        UrlHealth.objects.filter(pk=url).update(
            state=UrlState.ENABLED,
            since=timezone.now(),
            attempts=0,
            failures=0,
            failures_in_row=0,
            next_probe_at=None,
        )
        journal.record_entry(
            JournalKind.ENABLED,
            f"{masked_address(url)} was {health.state} and is released.",
            actor=actor,
        )
        _notify_senders(_lanes(url))


def _notify_senders(lane_ids: list[int]) -> None:
    notifier.notify_of_change()
    notifier.nudge_lanes(*lane_ids)
    # No sender serves a lane without anything to send.
    transaction.on_commit(lambda: notifier.notify_of_work(lane_ids))


def _lanes(url: str) -> list[int]:
    return [lane_id for (lane_id,) in queries.rows("lanes_of_url", {"url": url})]


def url_of(text: str) -> str:
    """Return the URL with this key, or a text that is a URL itself; empty: none has this key.

    People to whom URLs are shown masked name them by their keys.
    """
    if "://" in text:
        return text
    urls = UrlHealth.objects.values_list("url", flat=True).iterator()
    return next((url for url in urls if secret_address_key(url) == text), "")
