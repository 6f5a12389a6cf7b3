"""The number of subscriptions of each row of a list, counted for the rows of the page alone."""

from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from subscriptions.models import Subscription, SubscriptionStatus


def subscription_count(owner: str, **conditions: Any) -> Coalesce:
    """Return an annotation: the number of subscriptions whose field `owner` is the row.

    Aggregating a join would count the subscriptions of all rows: for the page, and twice more for
    the number of pages.
    """
    rows = Subscription.objects.filter(**{owner: OuterRef("pk")}, **conditions)
    counted = rows.order_by().values(owner).annotate(count=Count("pk"))
    return Coalesce(Subquery(counted.values("count")), 0)


def active_subscriptions(row: Any, parameter: str) -> SafeString:
    """Return a cell with `n_active` of `n` subscriptions: the link leads to those it counts."""
    query = urlencode({parameter: row.name, "status": SubscriptionStatus.ACTIVE})
    more = f", {row.n - row.n_active} not ACTIVE" if row.n > row.n_active else ""
    return format_html(
        '<a class="inturn-link" href="{}?{}">{} ACTIVE</a>{}',
        reverse("admin:subscriptions_subscription_changelist"),
        query,
        row.n_active,
        more,
    )
