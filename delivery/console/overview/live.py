"""The parts of the overview that refresh themselves."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from delivery.console.first_steps.card import read_first_steps
from delivery.console.overview import charts
from delivery.console.overview import page as overview
from delivery.console.shared.rights import may_see_overview


@never_cache
@require_GET
def overview_part(request: HttpRequest) -> HttpResponse:
    """Return the overview's live part.

    A user who was signed out meanwhile gets the page reloaded.
    """
    if not (request.user.is_active and may_see_overview(request.user)):
        return HttpResponse(headers={"HX-Refresh": "true"})
    shown = overview.read_overview(now=timezone.now(), user=request.user)
    context = {"overview": shown, "first_steps": read_first_steps(request)}
    return render(request, "console/overview/part.html", context)


@never_cache
@require_GET
def overview_traffic(request: HttpRequest) -> HttpResponse:
    """Return the overview's chart, with its figures."""
    if not (request.user.is_active and may_see_overview(request.user)):
        return HttpResponse(headers={"HX-Refresh": "true"})
    chart = charts.read_chart(charts.chosen_span(request.GET.get("span")), now=timezone.now())
    return render(request, "console/overview/traffic_part.html", {"chart": chart})
