"""The number of subscriptions of each row of a list, counted for the rows of the page alone."""

from typing import Any

from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce

from subscriptions.models import Subscription


def subscription_count(owner: str, **conditions: Any) -> Coalesce:
    """Return an annotation: the number of subscriptions whose field `owner` is the row.

    Aggregating a join would count the subscriptions of all rows: for the page, and twice more for
    the number of pages.
    """
    rows = Subscription.objects.filter(**{owner: OuterRef("pk")}, **conditions)
    counted = rows.order_by().values(owner).annotate(count=Count("pk"))
    return Coalesce(Subquery(counted.values("count")), 0)
