"""The card *First steps* on the overview: from a fresh installation to the first delivery.

It is shown until a delivery was DELIVERED, or until it is dismissed, which a cookie remembers: it
concerns a single person at a single browser, and no other user should miss the card for it.
"""

from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from delivery.console.event_types.publishing import publish_url
from delivery.console.shared.base import actor_of
from delivery.console.shared.rights import may_create_example, may_publish, may_see_overview
from delivery.database.queries import named_row
from delivery.receivers.example import create_example
from subscriptions.values.names import RESERVED_PREFIX

DISMISSED_COOKIE = f"{settings.COOKIE_PREFIX}first-steps"
_YEAR_SECONDS = 365 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSteps:
    """The existing objects; `publish_url` leads to the publishing page, if any."""

    has_event_type: bool
    has_publisher: bool
    has_subscription: bool
    may_create: bool
    publish_url: str

    @property
    def is_set_up(self) -> bool:
        return self.has_event_type and self.has_publisher and self.has_subscription


def read_first_steps(request: HttpRequest) -> FirstSteps | None:
    """Return the card's values, or None if it is not to be shown to this user."""
    if DISMISSED_COOKIE in request.COOKIES or not may_publish(request.user):
        return None
    found = named_row("first_steps", {"reserved": RESERVED_PREFIX})
    if found["is_delivered"]:
        return None
    subscribed_id = found["subscribed_id"]
    return FirstSteps(
        has_event_type=found["has_event_type"],
        has_publisher=found["has_publisher"],
        has_subscription=subscribed_id is not None,
        may_create=may_create_example(request.user),
        publish_url="" if subscribed_id is None else publish_url(subscribed_id),
    )


@require_POST
def create_first_steps(request: HttpRequest) -> HttpResponse:
    """Create the example, and lead to the page for the first message."""
    if not (may_create_example(request.user) and may_publish(request.user)):
        raise PermissionDenied
    example = create_example(actor=actor_of(request))
    text = (
        f"Ready: the event type {example.event_type}, the publisher {example.publisher} and the "
        f"subscription {example.subscription}, which sends to a built-in receiver."
    )
    messages.success(request, text)
    return HttpResponseRedirect(publish_url(example.event_type.pk))


@require_POST
def dismiss_first_steps(request: HttpRequest) -> HttpResponse:
    """Hide the card in this browser."""
    if not may_see_overview(request.user):
        raise PermissionDenied
    answer = HttpResponseRedirect(reverse("admin:index"))
    answer.set_cookie(
        DISMISSED_COOKIE,
        "dismissed",
        max_age=_YEAR_SECONDS,
        secure=request.is_secure(),
        httponly=True,
        samesite="Lax",
    )
    return answer
