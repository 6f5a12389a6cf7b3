"""The open incidents, for the overview and the metrics."""

from django.db.models import Count, F
from django.db.models.lookups import IsNull

from delivery.models import Incident, IncidentState


def open_counts() -> dict[str, int]:
    """Return the number of unacknowledged open incidents, by severity."""
    rows = Incident.objects.filter(state=IncidentState.OPEN, acknowledged_at=None).order_by()
    return dict(rows.values("severity").annotate(n=Count("id")).values_list("severity", "n"))


def newest_open(*, limit: int) -> list[Incident]:
    """Return open incidents, the unacknowledged first, then the newest."""
    rows = Incident.objects.filter(state=IncidentState.OPEN)
    is_acknowledged = IsNull(F("acknowledged_at"), False)
    return list(rows.order_by(is_acknowledged, "-id")[:limit])
