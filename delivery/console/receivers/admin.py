"""Built-in receivers in the console: their requests, and buttons to switch their answer."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Max, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery.console.receivers.status import SHOWN_REQUESTS, read_receiver
from delivery.console.shared.base import actor_of, id_of
from delivery.console.shared.recorded_admin import RecordedAdmin
from delivery.console.shared.refresh import is_refresh
from delivery.console.shared.status_page import StatusAdmin
from delivery.console.shared.times import ago
from delivery.models import BuiltInReceiver, ReceiverAnswer
from delivery.models.receiver import KEPT_REQUESTS, MOST_RECEIVERS
from delivery.receivers.signatures import subscriptions_to
from delivery.receivers.stored_requests import url_of
from delivery.support.payload import may_see_payload
from subscriptions.changes import record_change, snapshot

TOO_MANY = f"There are {MOST_RECEIVERS} receivers already; delete one that is not used any more."


class ReceiverForm(forms.ModelForm[BuiltInReceiver]):
    def clean(self) -> dict[str, Any]:
        if self.instance._state.adding and BuiltInReceiver.objects.count() >= MOST_RECEIVERS:
            raise ValidationError(TOO_MANY)
        return super().clean() or {}


@admin.register(BuiltInReceiver)
class BuiltInReceiverAdmin(StatusAdmin, RecordedAdmin):
    form = ReceiverForm
    empty_text = (
        "A built-in receiver is an endpoint of Inturn itself: it shows its requests, "
        "and answers as you choose."
    )
    list_display = ["named", "answers", "received_count", "last", "description"]
    search_fields = ["name"]
    search_help_text = "Search by name"
    fields = ["name", "description", "answer"]
    status_template = "console/receivers/page.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[BuiltInReceiver]:
        rows: QuerySet[BuiltInReceiver] = (
            super().get_queryset(request).annotate(last_at=Max("requests__at"))
        )
        return rows

    def get_urls(self) -> list[URLPattern]:
        switch = self.admin_site.admin_view(require_POST(self.switch))
        return [
            path(
                "<int:object_id>/answer/<str:answer>/",
                switch,
                name="delivery_builtinreceiver_switch",
            ),
            *super().get_urls(),
        ]

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Keep a receiver as long as subscriptions send to it: they would get 404."""
        names, counts, missing, protected = super().get_deleted_objects(objs, request)
        used = [
            f"{row} has subscriptions that send to it: delete them, or give them another endpoint"
            for row in objs
            if subscriptions_to(url_of(row))
        ]
        return names, counts, missing, [*protected, *used]

    def status_rows(self) -> QuerySet[BuiltInReceiver]:
        return BuiltInReceiver.objects.all()

    def status_values(self, row: BuiltInReceiver, request: HttpRequest) -> dict[str, Any]:
        may_see = may_see_payload(request.user)
        chosen = id_of(request.GET.get("request", ""))
        shown = read_receiver(row, chosen=chosen, may_see=may_see)
        newest = shown.opened.request.pk if shown.opened else ""
        return {
            "shown": shown,
            "chosen": chosen,
            "next_address": f"?request={chosen}" if chosen else f"?after={newest}",
            # Not replaced while somebody reads it, or selects a part of it.
            "is_opened": shown.opened is not None and _is_on_page(request, shown.opened.request.pk),
            "answers": ReceiverAnswer,
            "may_see_payload": may_see,
            "kept_requests": KEPT_REQUESTS,
            "shown_requests": SHOWN_REQUESTS,
        }

    def seen_message(self, values: Mapping[str, Any]) -> int | None:
        opened = values["shown"].opened
        return opened.request.message_id if opened and values["may_see_payload"] else None

    def switch(self, request: HttpRequest, object_id: int, answer: str) -> HttpResponse:
        """Switch the answer from now on."""
        row: BuiltInReceiver = self.permitted(request, object_id)
        if answer not in ReceiverAnswer.values:
            raise Http404
        before = snapshot(row)
        row.answer = answer
        row.save(update_fields=["answer", "updated_at"])
        record_change(
            actor=actor_of(request),
            action="changed",
            instance=row,
            before=before,
            after=snapshot(row),
        )
        return self.back(request, f"From now on it answers: {ReceiverAnswer(answer).label}.")

    @admin.display(description="name", ordering="name")
    def named(self, row: BuiltInReceiver) -> SafeString:
        return self.status_link(row, row.name)

    @admin.display(description="answer")
    def answers(self, row: BuiltInReceiver) -> str:
        return row.get_answer_display()

    @admin.display(description="requests", ordering="received")
    def received_count(self, row: BuiltInReceiver) -> str:
        return f"{row.received:,}"

    @admin.display(description="last request")
    def last(self, row: Any) -> SafeString | str:
        return ago(row.last_at, now=timezone.now()) if row.last_at else "none kept"


def _is_on_page(request: HttpRequest, request_id: int) -> bool:
    """Return whether the refreshed page shows this request already."""
    shown = (request.GET.get("request"), request.GET.get("after"))
    return is_refresh(request) and str(request_id) in shown
