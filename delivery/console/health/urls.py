"""The subscriptions whose endpoint has a given URL, and the URL's health."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db.models import CharField, Count, F, Func, QuerySet

from delivery.models import UrlHealth, UrlState
from delivery.standing.reading import standing_of_subscriptions
from delivery.standing.vocabulary import Standing
from subscriptions.models import Subscription

SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlPage:
    """The page of a URL; `more` is True if it has more subscriptions than are shown."""

    health: UrlHealth
    subscriptions: list[tuple[Subscription, Standing]]
    more: bool

    @property
    def is_stopped(self) -> bool:
        return self.health.state != UrlState.ENABLED

    @property
    def failures_in_row(self) -> str:
        return f"{self.health.failures_in_row:,}"


def read_url_page(health: UrlHealth) -> UrlPage:
    rows = (
        _with_url()
        .filter(url=health.url)
        .select_related("subscriber", "policy", "event_type")
        .defer("headers", "auth")
        .order_by("subscriber__name", "name")[: SHOWN + 1]
    )
    found = list(rows)
    standings = standing_of_subscriptions([subscription.pk for subscription in found])
    shown = [(subscription, standings[subscription.pk]) for subscription in found[:SHOWN]]
    return UrlPage(health=health, subscriptions=shown, more=len(found) > SHOWN)


def subscriptions_by_url(urls: Collection[str]) -> dict[str, int]:
    """Return the number of subscriptions for each of these URLs."""
    counts = _with_url().filter(url__in=urls).order_by().values("url").annotate(n=Count("id"))
    return dict(counts.values_list("url", "n"))


def failure_share(health: UrlHealth) -> str:
    """Return the share of failures as text, such as `71 % of 101`; `–` without attempts."""
    if not health.attempts:
        return "–"
    return f"{health.failures / health.attempts:.0%} of {health.attempts:,}".replace("%", " %")


def _with_url() -> QuerySet[Any]:
    """Add the URL of each endpoint by the database's own function, which has an index."""
    url = Func(F("endpoint"), function="subscriptions_url", output_field=CharField())
    return Subscription.objects.annotate(url=url)
