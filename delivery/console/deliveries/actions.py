"""Support's actions on deliveries: resubmit, edit and send, cancel, resolve IN_DOUBT."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods, require_POST

from delivery.console.deliveries.edit_form import EditForm
from delivery.console.shared.base import ConsoleAdmin, actor_of
from delivery.models import Delivery
from delivery.models.message import public_id
from delivery.publishing.callback_urls import CallbackRefusedError
from delivery.publishing.drafts import PublishRefusedError
from delivery.states import Status
from delivery.support import resolve, resubmit
from delivery.support.payload import log_view, may_see_payload
from subscriptions.models import Mode

Verb = Callable[..., None]


class Resubmitting(ConsoleAdmin):
    """Mixin for the admin of deliveries: buttons on the page, and actions for the selected rows."""

    actions = ["resubmit_chosen", "cancel_chosen", "mark_chosen_delivered"]

    def get_urls(self) -> list[URLPattern]:
        def posted(view: Any) -> Any:
            return self.admin_site.admin_view(require_POST(view))

        edit = self.admin_site.admin_view(require_http_methods(["GET", "POST"])(self.edit))
        name = "delivery_delivery"
        return [
            path("<int:object_id>/resubmit/", posted(self.resubmit_one), name=f"{name}_resubmit"),
            path("<int:object_id>/cancel/", posted(self.cancel_one), name=f"{name}_cancel"),
            path(
                "<int:object_id>/mark-delivered/",
                posted(self.mark_one),
                name=f"{name}_mark_delivered",
            ),
            path("<int:object_id>/edit/", edit, name=f"{name}_edit"),
            *super().get_urls(),
        ]

    def has_resubmit_permission(self, request: HttpRequest) -> bool:
        return self.may_change_rows(request)

    def may_edit(self, request: HttpRequest) -> bool:
        """Return whether the user may edit messages; to edit a message means to read it."""
        may_read = request.user.has_perm("delivery.view_message") and may_see_payload(request.user)
        return self.may_change_rows(request) and may_read

    def resubmit_one(self, request: HttpRequest, object_id: int) -> HttpResponse:
        row: Delivery = self.permitted(request, object_id)
        is_pulled = row.subscription.mode == Mode.PULL
        effect = "can be fetched again, at its original position in the mailbox"
        done = (
            f"Delivery {object_id} "
            f"{effect if is_pulled else 'is queued again in its original position'}."
        )
        return self._act(request, object_id, resubmit.resubmit_delivery, done=done)

    def cancel_one(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return self._act(
            request,
            object_id,
            resolve.cancel_delivery,
            done=f"Delivery {object_id} is CANCELLED and will not be sent.",
        )

    def mark_one(self, request: HttpRequest, object_id: int) -> HttpResponse:
        done = f"Delivery {object_id} is marked as DELIVERED."
        return self._act(request, object_id, resolve.mark_delivered, done=done)

    def _act(self, request: HttpRequest, object_id: int, verb: Verb, *, done: str) -> HttpResponse:
        self.permitted(request, object_id)
        try:
            verb(object_id, actor=actor_of(request))
        except (resubmit.NotResubmittedError, resolve.NotResolvedError) as error:
            return self.back(request, f"Nothing was done. {error}", level=messages.WARNING)
        return self.back(request, done)

    @admin.action(description="Resubmit deliveries", permissions=["resubmit"])
    def resubmit_chosen(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        ids = list(queryset.order_by("id").values_list("pk", flat=True))
        count = resubmit.resubmit_some(ids, actor=actor_of(request))
        left = f"{len(ids) - count} cannot be resubmitted and are unchanged."
        self._report(
            request, f"{count} resubmitted.", left if count < len(ids) else "", is_good=bool(count)
        )

    @admin.action(description="Cancel deliveries", permissions=["resubmit"])
    def cancel_chosen(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        left = "were neither open nor IN_DOUBT and are unchanged."
        self._each(request, queryset, resolve.cancel_delivery, status=Status.CANCELLED, left=left)

    @admin.action(description="Mark IN_DOUBT deliveries as delivered", permissions=["resubmit"])
    def mark_chosen_delivered(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        left = "were not IN_DOUBT and are unchanged."
        self._each(request, queryset, resolve.mark_delivered, status=Status.DELIVERED, left=left)

    def _each(
        self,
        request: HttpRequest,
        queryset: QuerySet[Delivery],
        verb: Verb,
        *,
        status: Status,
        left: str,
    ) -> None:
        """Act on each selected delivery in a separate transaction; a page has few rows."""
        done, skipped = 0, 0
        for id in queryset.values_list("pk", flat=True):
            try:
                verb(id, actor=actor_of(request))
                done += 1
            except resolve.NotResolvedError:
                skipped += 1
        self._report(
            request, f"{done} {status}.", f"{skipped} {left}" if skipped else "", is_good=bool(done)
        )

    def _report(self, request: HttpRequest, done: str, left: str, *, is_good: bool) -> None:
        level = messages.SUCCESS if is_good else messages.WARNING
        self.message_user(request, f"{done} {left}".strip(), level)

    def edit(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show the body for editing; on POST, publish it to the delivery's subscription alone."""
        if not self.may_edit(request):
            raise PermissionDenied
        rows = Delivery.objects.select_related("message__event_type", "subscription__subscriber")
        row = get_object_or_404(rows, pk=object_id)
        log_view(request.user, row.message_id)
        form = EditForm(request.POST or None, message=row.message)
        if request.method == "POST" and form.is_valid():
            try:
                copy = resubmit.resubmit_edited(row, form.edit(), actor=actor_of(request))
            except (PublishRefusedError, CallbackRefusedError) as refused:
                form.add_error("body", refused.detail)
            except resubmit.NotResubmittedError as error:
                form.add_error(None, str(error))
            else:
                return self._sent(request, row, copy)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "title": f"Edit and resubmit: {row.message.public_id}",
            "delivery": row,
            "form": form,
        }
        return TemplateResponse(request, "console/deliveries/edit.html", context)

    def _sent(self, request: HttpRequest, row: Delivery, copy: resubmit.Copy) -> HttpResponse:
        original = reverse("admin:delivery_delivery_change", args=[row.pk])
        message = format_html(
            '{} is sent to {} only. <a class="inturn-link" href="{}">Delivery {}</a> is unchanged.',
            public_id(copy.message_id),
            row.subscription,
            original,
            row.pk,
        )
        self.message_user(request, message)
        return HttpResponseRedirect(
            reverse("admin:delivery_delivery_change", args=[copy.delivery_id])
        )
