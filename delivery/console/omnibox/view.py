"""The end point of the search field: the results for the typed text, as JSON.

It finds only objects open to the user, and reads nothing of payloads.
"""

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from delivery.console.omnibox.actions import actions_in
from delivery.console.omnibox.hits import HitSection
from delivery.console.omnibox.lists import lists_of
from delivery.console.omnibox.objects import ids_in, names_in
from delivery.console.omnibox.pages import pages_in
from delivery.console.omnibox.query import QueryError, is_query, parse_query
from delivery.console.shared.base import person

LONGEST = 1_000


@never_cache
@require_GET
def omnibox_results(request: HttpRequest) -> JsonResponse:
    """Answer `groups` of results, best first, and the `mistake` in a query, if any."""
    text = request.GET.get("q", "").strip().replace("\0", "")[:LONGEST]
    try:
        groups = _groups(text, request)
    except QueryError as error:
        return JsonResponse({"groups": [], "mistake": error.detail})
    return JsonResponse({"groups": [group.as_json() for group in groups], "mistake": ""})


def _groups(text: str, request: HttpRequest) -> list[HitSection]:
    user: Any = person(request)
    if not text:
        return []
    if is_query(text):
        hits = lists_of(parse_query(text), user)
        return [HitSection("Lists with these filters", hits)]
    return [
        *ids_in(text, user),
        *actions_in(text, user),
        *names_in(text, user),
        *pages_in(text, request),
    ]
