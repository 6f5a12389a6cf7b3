"""Buttons and actions to hold, deactivate and activate subscriptions and subscribers.

They work on a row or on many.
"""

import re
from collections.abc import Callable, Container, Mapping
from typing import Any, cast

from django.contrib import admin, messages
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery.console.holding import cost
from delivery.console.holding.form import HoldForm, ReleaseForm
from delivery.console.shared.base import ConsoleAdmin, actor_of
from delivery.console.shared.rights import may_toggle
from delivery.console.shared.times import with_times
from delivery.models import Resubmission
from delivery.support import bulk_jobs, toggle
from delivery.support.toggle import Backlog
from subscriptions.models import Mode, Subscriber, Subscription, SubscriptionStatus

Owner = Subscription | Subscriber

# An id and a status, in the value of an Undo button.
_ROW = re.compile(r"([0-9]{1,18})-([A-Z]+)")


class HoldingAdmin(ConsoleAdmin):
    """The admin of subscriptions and of subscribers: a single permission covers both."""

    actions = ["hold_chosen", "deactivate_chosen", "activate_chosen"]

    def get_urls(self) -> list[URLPattern]:
        def posted(view: Any) -> Any:
            return self.admin_site.admin_view(require_POST(view))

        name = f"subscriptions_{self.opts.model_name}"
        return [
            path("<int:object_id>/hold/", posted(self.hold), name=f"{name}_hold"),
            path("<int:object_id>/deactivate/", posted(self.deactivate), name=f"{name}_deactivate"),
            path(
                "<int:object_id>/activate/<str:backlog>/",
                posted(self.activate),
                name=f"{name}_activate",
            ),
            path(
                "<int:object_id>/restore/<str:made>/<str:to>/",
                posted(self.restore),
                name=f"{name}_restore",
            ),
            path("restore/<str:made>/", posted(self.restore_chosen), name=f"{name}_restore_chosen"),
            *super().get_urls(),
        ]

    def may_press(self, request: HttpRequest) -> bool:
        return may_toggle(request.user)

    def has_toggle_permission(self, request: HttpRequest) -> bool:
        return may_toggle(request.user)

    def toggled(self, request: HttpRequest, object_id: int) -> Any:
        if not may_toggle(request.user):
            raise PermissionDenied
        return get_object_or_404(self.model, pk=object_id)

    def hold(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Hold it, with the end and the rate from the form beside the button, if any."""
        owner = self.toggled(request, object_id)
        form = HoldForm(request.POST, now=timezone.now())
        if not form.is_valid():
            return self.back(request, f"Nothing was done. {form.mistakes}", level=messages.ERROR)
        before = owner.status
        if not toggle.hold_owner(owner, actor=actor_of(request), release=form.release):
            return self.back(request, f"{owner} was HELD already.", level=messages.WARNING)
        text = f"{owner} is HELD{form.words}: its messages are stored, but not sent or handed out."
        return self.back(request, self.with_undo(owner, text, to=before))

    def deactivate(self, request: HttpRequest, object_id: int) -> HttpResponse:
        owner = self.toggled(request, object_id)
        before = owner.status
        if not toggle.deactivate_owner(owner, actor=actor_of(request)):
            return self.back(request, f"{owner} was INACTIVE already.", level=messages.WARNING)
        others = " Other subscriptions continue." if isinstance(owner, Subscription) else ""
        text = (
            f"{owner} is INACTIVE: its deliveries are held, and messages published from now on are "
            f"not kept for it.{others}"
        )
        return self.back(request, self.with_undo(owner, text, to=before))

    def activate(self, request: HttpRequest, object_id: int, backlog: str) -> HttpResponse:
        owner = self.toggled(request, object_id)
        if backlog not in ("deliver", "cancel"):
            raise BadRequest("Choose to deliver or to cancel the backlog.")
        form = ReleaseForm(request.POST)
        if not form.is_valid():
            return self.back(request, f"Nothing was done. {form.mistakes}", level=messages.ERROR)
        jobs = toggle.activate_owner(
            owner,
            backlog=cast("Backlog", backlog),
            actor=actor_of(request),
            catch_up_rate=form.cleaned_data["catch_up_rate"],
        )
        return self.back(request, _cancelling(owner, jobs) if jobs else _delivering(owner))

    def restore(self, request: HttpRequest, object_id: int, made: str, to: str) -> HttpResponse:
        """Undo the change, unless somebody has changed the status since."""
        owner = self.toggled(request, object_id)
        if not {made, to} <= set(SubscriptionStatus.values):
            raise BadRequest("Unknown status.")
        if not toggle.restore_status(owner, made=made, to=to, actor=actor_of(request)):
            return self.back(
                request,
                f"Nothing was done: {owner} is not {made} any more.",
                level=messages.WARNING,
            )
        return self.back(
            request,
            _delivering(owner) if to == SubscriptionStatus.ACTIVE else f"{owner} is {to} again.",
        )

    def restore_chosen(self, request: HttpRequest, made: str) -> HttpResponse:
        """Undo a change of several rows, except those whose status somebody has changed since."""
        if not may_toggle(request.user):
            raise PermissionDenied
        statuses = dict(self.model._meta.get_field("status").choices)
        before = _statuses_in(request.POST.get("before", ""), known=statuses)
        if made not in statuses:
            raise BadRequest("Unknown status.")
        restored = sum(
            toggle.restore_status(owner, made=made, to=before[owner.pk], actor=actor_of(request))
            for owner in self.model._default_manager.filter(pk__in=before).order_by("pk")
        )
        left = len(before) - restored
        others = f" Not {made} any more, and left as they are: {left}." if left else ""
        if restored and SubscriptionStatus.HELD in before.values():
            others += " A hold that had an end or a rate has none now: set it again."
        return self.back(
            request,
            f"{restored} of {len(before)} have their earlier status again.{others}",
            level=messages.SUCCESS if restored else messages.WARNING,
        )

    def with_undo(self, owner: Owner, text: str, *, to: str) -> SafeString:
        undo = reverse(
            f"admin:subscriptions_{self.opts.model_name}_restore", args=[owner.pk, owner.status, to]
        )
        return format_html(
            (
                '{} <button type="submit" id="undo" class="inturn-undo" form="console-post" '
                'formaction="{}">Undo</button>'
            ),
            with_times(text),
            undo,
        )

    @admin.action(description="Hold: store messages, send nothing", permissions=["toggle"])
    def hold_chosen(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.change_each(
            request,
            queryset,
            lambda owner: toggle.hold_owner(owner, actor=actor_of(request)),
            "HELD",
        )

    @admin.action(description="Deactivate: keep no messages, send nothing", permissions=["toggle"])
    def deactivate_chosen(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.change_each(
            request,
            queryset,
            lambda owner: toggle.deactivate_owner(owner, actor=actor_of(request)),
            "INACTIVE",
            words_for=cost.cost_of_all,
        )

    @admin.action(description="Activate: deliver held messages", permissions=["toggle"])
    def activate_chosen(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        def activate(owner: Owner) -> bool:
            was_held = owner.status != SubscriptionStatus.ACTIVE
            toggle.activate_owner(owner, actor=actor_of(request))
            return was_held

        self.change_each(request, queryset, activate, "ACTIVE")

    def change_each(
        self,
        request: HttpRequest,
        queryset: QuerySet[Any],
        verb: Callable[[Any], bool],
        status: str,
        *,
        words_for: Callable[[list[Any]], str] = lambda _: "",
    ) -> None:
        """Change each row in a separate transaction, in the common order of locks.

        `words_for` returns a sentence about the changed rows, or an empty text.
        """
        rows = list(queryset.order_by("pk"))
        before: dict[int, str] = {}
        changed: list[Any] = []
        for row in rows:
            # Somebody may have changed it since the list was read.
            row.refresh_from_db(fields=["status"])
            earlier = row.status
            if verb(row):
                before[row.pk] = earlier
                changed.append(row)
        left = len(rows) - len(before)
        others = f" {left} had that status already." if left else ""
        text: str = f"{len(before)} of {len(rows)} are {status} now.{others}"
        if changed:
            text = f"{text} {words_for(changed)}".rstrip()
        if before and status != SubscriptionStatus.ACTIVE:
            text = self._with_undo_of_many(text, status, before)
        self.message_user(request, text, messages.SUCCESS if before else messages.WARNING)

    def _with_undo_of_many(self, text: str, made: str, before: Mapping[int, str]) -> SafeString:
        return format_html(
            (
                '{} <button type="submit" class="inturn-undo" form="console-post" '
                'formaction="{}" name="before" value="{}">Undo</button>'
            ),
            text,
            reverse(f"admin:subscriptions_{self.opts.model_name}_restore_chosen", args=[made]),
            " ".join(f"{pk}-{status}" for pk, status in before.items()),
        )


def _statuses_in(text: str, *, known: Container[str]) -> dict[int, str]:
    """Return the statuses by id of a text such as `4-ACTIVE 7-HELD`; raise BadRequest."""
    pairs = [_ROW.fullmatch(word) for word in text.split()]
    statuses = {int(pair[1]): pair[2] for pair in pairs if pair and pair[2] in known}
    if len(statuses) < len(pairs):
        raise BadRequest("Unknown rows or status.")
    return statuses


def _delivering(owner: Owner) -> str:
    kept = (
        "can be fetched"
        if isinstance(owner, Subscription) and owner.mode == Mode.PULL
        else "are sent in order"
    )
    return f"{owner} is ACTIVE again; its held deliveries {kept}."


def _cancelling(owner: Owner, jobs: list[Resubmission]) -> SafeString:
    job = jobs[0]
    more = f" and {len(jobs) - 1} more" if jobs[1:] else ""
    return format_html(
        (
            "{} is ACTIVE again: CANCELLED from now on: {} "
            '(<a href="{}">{}</a>{}). New messages are sent after that.'
        ),
        owner,
        "its held deliveries" if more else bulk_jobs.deliveries_text(job, "held"),
        reverse("admin:delivery_resubmission_change", args=[job.pk]),
        job,
        more,
    )
