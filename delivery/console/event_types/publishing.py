"""The page to publish a message of an event type, and follows it until it is delivered.

The message is real, published in the name of a publisher. The journal says who did it; the entry
follows the message in a separate transaction, because senders are notified in between. A process
killed there leaves a message without an entry.
"""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_http_methods

from delivery.calls.slots import NoSlotError
from delivery.calls.sync import exchange_message
from delivery.console.event_types.publish_form import PublishForm
from delivery.console.messages.trace import MessageTrace, read_trace, traced_message
from delivery.console.shared.base import actor_of
from delivery.console.shared.refresh import is_refresh
from delivery.console.shared.rights import may_publish
from delivery.lifecycle import journal
from delivery.models import JournalKind
from delivery.models.message import parse_public_id, public_id
from delivery.publishing.drafts import Draft, PublishRefusedError
from delivery.publishing.publish import publish
from subscriptions.models import EventType, Kind, Publisher
from subscriptions.values.names import is_reserved

PAGE = "console/event_types/publish.html"
BUSY = "Nothing was published: other SYNC messages wait for answers. Try again in a few seconds."


class PublishPages:
    """Mixin for the ModelAdmin of event types."""

    def get_urls(self) -> list[URLPattern]:
        page = self.admin_site.admin_view(  # type: ignore[attr-defined]
            require_http_methods(["GET", "POST"])(self.publish)
        )
        name = "subscriptions_eventtype_publish"
        return [
            path("<int:object_id>/publish/", page, name=name),
            *super().get_urls(),  # type: ignore[misc]
        ]

    def publish(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show the form, and the trace of the message in the address; on POST, publish."""
        if not may_publish(request.user):
            raise PermissionDenied
        event_type = get_object_or_404(EventType, pk=object_id)
        if is_reserved(event_type.name):
            raise Http404
        if is_refresh(request):
            return TemplateResponse(request, PAGE, {"published": _trace(request, event_type)})
        form = PublishForm(request.POST or None, event_type=event_type)
        if form.is_valid() and (message_id := _published(form, actor=actor_of(request))):
            return HttpResponseRedirect(f"{request.path}?message={public_id(message_id)}")
        context = {
            **self.admin_site.each_context(request),  # type: ignore[attr-defined]
            "opts": self.opts,  # type: ignore[attr-defined]
            "original": event_type,
            "title": f"Publish {event_type}",
            "form": form,
            "published": _trace(request, event_type),
            "can_publish": form.fields["publisher"].queryset.exists(),  # type: ignore[attr-defined]
        }
        return TemplateResponse(request, PAGE, context)


def publish_url(event_type_id: int) -> str:
    return reverse("admin:subscriptions_eventtype_publish", args=[event_type_id])


def _trace(request: HttpRequest, event_type: EventType) -> MessageTrace | None:
    """Return the trace of the message in the address, if it is a message of this event type."""
    message_id = parse_public_id(request.GET.get("message", ""))
    if message_id is None:
        return None
    found = traced_message(message_id)
    if found.event_type_id != event_type.pk:
        raise Http404
    return read_trace(found)


def _published(form: Any, *, actor: str) -> int | None:
    """Publish the message and return the id, or None with the reason in the form."""
    try:
        message_id = _publish(form.cleaned_data["publisher"], form.draft)
    except PublishRefusedError as refused:
        form.add_error("body" if refused.status in (400, 422) else None, refused.detail)
        return None
    except NoSlotError:
        form.add_error(None, BUSY)
        return None
    journal.record_of_message(
        JournalKind.PUBLISHED,
        f"{public_id(message_id)} of {form.draft.event_type} was published in the console.",
        actor=actor,
        message_id=message_id,
    )
    return message_id


def _publish(publisher: Publisher, draft: Draft) -> int:
    if draft.event_type.kind == Kind.SYNC:
        return exchange_message(publisher, draft).message_id
    (accepted,) = publish(publisher, [draft])
    return accepted.message_id
