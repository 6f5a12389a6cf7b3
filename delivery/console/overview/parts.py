"""The parts of the overview, each refreshed at a separate pace, and read only when shown."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest

from delivery.console.first_steps.card import read_first_steps
from delivery.console.overview import charts
from delivery.console.overview.homes import read_home
from delivery.console.overview.page import read_overview
from delivery.console.shared.refresh import refreshed_part
from delivery.database.queries import reading_one_moment

# The self-refreshing elements: every two seconds and every ten; see the templates.
FIGURES, CHART = "overview-now", "traffic-figures"


def overview_parts(request: HttpRequest, *, now: datetime) -> dict[str, Any]:
    """Return the values of the page, or of the refreshed part, as of one moment."""
    with reading_one_moment():
        return _parts(request, now=now)


def _parts(request: HttpRequest, *, now: datetime) -> dict[str, Any]:
    part = refreshed_part(request)
    values: dict[str, Any] = {}
    if part != CHART:
        values["first_steps"] = read_first_steps(request)
        values["overview"] = read_overview(now=now, user=request.user)
    if part != FIGURES:
        span = charts.chosen_span(request.GET.get("span"))
        values["chart"] = charts.read_chart(span, now=now)
    if not part:
        values["home"] = read_home(request.user, now=now)
    return values
