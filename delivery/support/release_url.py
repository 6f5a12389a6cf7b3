"""Releasing a URL that the circuit breaker has disabled or frozen: a person says that it works again.

The row is locked before it is looked at, so that of two people one releases it and the other is told. A sender
that counts attempts at the same URL waits for the commit and counts on from nothing: what it counted
before was at a URL that was left alone, a probe at most.
"""

from django.db import transaction
from django.utils import timezone

from delivery.database import queries
from delivery.lifecycle import journal, wake
from delivery.models import JournalKind, UrlHealth, UrlState


class NotStoppedError(Exception):
    """The URL is ENABLED (again): there is nothing to release."""


def release_url(url: str, *, actor: str) -> None:
    """Make the URL ENABLED with its counters at nothing, and wake the lanes that wait for it.

    `last_success_at` stays what it was. Raises UrlHealth.DoesNotExist for a URL of which nothing is known, and
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
        journal.record(JournalKind.ENABLED, f"{url} was {health.state} and is released.", actor=actor)
        _tell_senders(_lanes(url))


def _tell_senders(lane_ids: list[int]) -> None:
    wake.changed()
    wake.nudge(*lane_ids)
    # Nobody serves a lane in which nothing was to be sent.
    transaction.on_commit(lambda: wake.lanes(lane_ids))


def _lanes(url: str) -> list[int]:
    return [lane_id for (lane_id,) in queries.rows("lanes_of_url", {"url": url})]
