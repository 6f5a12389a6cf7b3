"""Replays in the console: requested by a form, previewed before anything is sent, followed live."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminSelectWidget

from delivery.console.replays import page as replay_page
from delivery.console.replays.form import ReplayForm
from delivery.console.shared.base import actor_of
from delivery.console.shared.input_filters import choice_filter
from delivery.console.shared.job_page import WatchedAdmin
from delivery.console.shared.labels import label
from delivery.console.shared.list_filters import SubscriptionFilter
from delivery.console.shared.times import ago, minute
from delivery.models import Archived, Replay, ReplayState
from delivery.support.replays import replays
from subscriptions.models import Kind, Subscription
from subscriptions.values.times import duration

_TONES = {
    ReplayState.SELECTING: "open",
    ReplayState.READY: "warning",
    ReplayState.RUNNING: "open",
    ReplayState.DONE: "good",
    ReplayState.FAILED: "bad",
}


def _replayable() -> QuerySet[Subscription]:
    """Return the subscriptions except those of SYNC, whose publishers wait for the answer."""
    return Subscription.objects.exclude(event_type__kind=Kind.SYNC)


class ChosenSubscription(forms.Form):
    subscription = forms.ModelChoiceField(
        _replayable()
        .select_related("subscriber", "event_type")
        .order_by("subscriber__name", "name"),
        widget=UnfoldAdminSelectWidget,
    )


@admin.register(Replay)
class ReplayAdmin(WatchedAdmin):
    empty_text = (
        "A replay delivers archived messages to a subscription: earlier messages to a new one, "
        "or messages that a receiver has lost. You see the count first."
    )
    list_display = [
        "number",
        "shown_state",
        "subscribed",
        "progress",
        "span",
        "who",
        "requested",
        "ended",
    ]
    list_filter = [choice_filter("State", "state", ReplayState.values), SubscriptionFilter]
    list_select_related = ["subscription__subscriber"]
    page_template = "console/replays/page.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("delivery.add_replay")

    def get_urls(self) -> list[URLPattern]:
        def posted(view: Any) -> Any:
            return self.admin_site.admin_view(require_POST(view))

        return [
            path("<int:object_id>/start/", posted(self.start), name="delivery_replay_start"),
            path("<int:object_id>/cancel/", posted(self.cancel), name="delivery_replay_cancel"),
            path("<int:object_id>/again/", posted(self.select_again), name="delivery_replay_again"),
            *super().get_urls(),
        ]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the form for the subscription, then for the rest; on POST, start the selection."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        chosen = ChosenSubscription(request.GET if "subscription" in request.GET else None)
        subscription = chosen.cleaned_data["subscription"] if chosen.is_valid() else None
        form = (
            None
            if subscription is None
            else ReplayForm(request.POST or None, subscription=subscription)
        )
        if request.method == "POST" and form is not None and form.is_valid():
            replay = _requested(form, actor=actor_of(request))
            if replay is not None:
                return self._to(request, replay, "Nothing is sent until you start the replay.")
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Replay archived messages",
            "chosen": chosen,
            "subscription": subscription,
            "has_subscription": _replayable().exists(),
            "form": form,
            "archived_until": Archived.objects.values_list("until", flat=True).first(),
            "may_run": request.user.has_perm("delivery.add_pipelinerun"),
        }
        return TemplateResponse(request, "console/replays/add.html", context)

    def start(self, request: HttpRequest, object_id: int) -> HttpResponse:
        replay: Replay = self.permitted(request, object_id)
        if not replays.start_replay(replay, actor=actor_of(request)):
            return self._too_late(request, replay)
        return self._to(
            request, replay, "The deliveries are being created; you may leave this page."
        )

    def cancel(self, request: HttpRequest, object_id: int) -> HttpResponse:
        replay: Replay = self.permitted(request, object_id)
        if not replays.cancel_replay(replay, actor=actor_of(request)):
            return self._too_late(request, replay)
        return self._to(
            request, replay, f"Cancelled; the {replay.made:,} deliveries that were created stay."
        )

    def select_again(self, request: HttpRequest, object_id: int) -> HttpResponse:
        replay: Replay = self.permitted(request, object_id)
        if not replays.select_again(replay, actor=actor_of(request)):
            return self._too_late(request, replay)
        return self._to(request, replay, "Selecting messages again.")

    def _too_late(self, request: HttpRequest, replay: Replay) -> HttpResponse:
        text = f"Nothing was done: it is {replay.state}."
        return self._to(request, replay, text, level=messages.WARNING)

    def _to(
        self, request: HttpRequest, replay: Replay, text: str, *, level: int = messages.SUCCESS
    ) -> HttpResponse:
        self.message_user(request, text, level)
        return HttpResponseRedirect(reverse("admin:delivery_replay_change", args=[replay.pk]))

    def found(self, object_id: int) -> Replay:
        rows = Replay.objects.select_related("subscription__subscriber")
        return get_object_or_404(rows, pk=object_id)

    def shown(self, request: HttpRequest, row: Replay) -> dict[str, Any]:
        page = replay_page.read_replay_page(row)
        left = page.seconds_left
        return {
            "replay": row,
            "page": page,
            "state": self.shown_state(row),
            "may_change": self.may_change_rows(request),
            "takes": "" if left is None else duration(timedelta(seconds=left)),
        }

    @admin.display(description="replay")
    def number(self, row: Replay) -> str:
        return str(row)

    @admin.display(description="state")
    def shown_state(self, row: Replay) -> SafeString:
        return label(row.state, tone=_TONES.get(ReplayState(row.state)))

    @admin.display(description="subscription")
    def subscribed(self, row: Replay) -> str:
        return str(row.subscription)

    @admin.display(description="progress")
    def progress(self, row: Replay) -> str:
        if row.state == ReplayState.SELECTING:
            return "counting"
        return f"{row.done:,} of {row.count:,}"

    @admin.display(description="published")
    def span(self, row: Replay) -> SafeString:
        return format_html("{} to {}", minute(row.since), minute(row.until))

    @admin.display(description="requested by")
    def who(self, row: Replay) -> str:
        return row.asked_by

    @admin.display(description="requested")
    def requested(self, row: Replay) -> SafeString | str:
        return ago(row.asked_at, now=timezone.now())

    @admin.display(description="ended")
    def ended(self, row: Replay) -> SafeString | str:
        return ago(row.ended_at, now=timezone.now())


def _requested(form: ReplayForm, *, actor: str) -> Replay | None:
    """Request the replay; if it is refused, put the reason into the form and return None."""
    try:
        return replays.request_replay(
            form.subscription, actor=actor, now=timezone.now(), **form.replay_request()
        )
    except replays.ReplayRefusedError as refused:
        form.add_error(refused.field if refused.field in form.fields else None, refused.detail)
        return None
