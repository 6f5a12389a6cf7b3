"""Bulk jobs in the console: created from a filter after a count, with a page of their progress."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.request import QueryDict
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery.console.bulk_jobs.form import ResubmissionForm, selection_in_words
from delivery.console.shared.base import actor_of
from delivery.console.shared.form_fields import open_names
from delivery.console.shared.input_filters import choice_filter
from delivery.console.shared.job_page import WatchedAdmin
from delivery.console.shared.labels import label
from delivery.console.shared.times import ago, with_times
from delivery.models import BulkVerb, Delivery, Resubmission, ResubmissionState
from delivery.standing.bounded_counts import Bounded
from delivery.support import bulk_jobs
from delivery.support.selection import COUNT_LIMIT, preview_selection

_TONES = {ResubmissionState.RUNNING: "open", ResubmissionState.DONE: "good"}


def bulk_url(filters: QueryDict, verb: BulkVerb) -> str:
    """Return the URL of the counting page for the deliveries within the list's filters."""
    parameters = [("verb", verb.value)] if verb == BulkVerb.CANCEL else []
    parameters += [
        (name, str(filters[name])) for name in ResubmissionForm.base_fields if filters.get(name)
    ]
    return f"{reverse('admin:delivery_resubmission_add')}?{urlencode(parameters)}"


@admin.register(Resubmission)
class ResubmissionAdmin(WatchedAdmin):
    empty_text = (
        "Bulk resubmissions and cancellations appear here. "
        "You see the count before anything is sent or cancelled."
    )
    list_display = ["number", "shown_state", "progress", "what", "who", "began", "ended"]
    list_filter = [
        choice_filter("Action", "verb", BulkVerb.values),
        choice_filter("State", "state", ResubmissionState.values),
    ]
    page_template = "console/bulk_jobs/page.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("delivery.add_resubmission")

    def get_urls(self) -> list[URLPattern]:
        cancel = self.admin_site.admin_view(require_POST(self.cancel))
        return [
            path("<int:object_id>/cancel/", cancel, name="delivery_resubmission_cancel"),
            *super().get_urls(),
        ]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Count the deliveries within a filter; on POST, start the bulk job."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        data = request.POST if request.method == "POST" else request.GET
        verb = BulkVerb.CANCEL if request.GET.get("verb") == BulkVerb.CANCEL else BulkVerb.RESUBMIT
        form = ResubmissionForm(
            {name: data[name] for name in data if name != "verb"} or None, verb=verb
        )
        open_names(form, request.user)
        if request.method == "POST" and form.is_valid():
            return self._start(request, form, verb)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"{verb.label.capitalize()} in bulk",
            "form": form,
            "verb": verb,
            **(_previewed(form.chosen(), verb) if form.is_countable else {}),
        }
        return TemplateResponse(request, "console/bulk_jobs/add.html", context)

    def _start(self, request: HttpRequest, form: ResubmissionForm, verb: BulkVerb) -> HttpResponse:
        rate = form.cleaned_data["rate"]
        job = bulk_jobs.start_job(form.chosen(), rate=rate, actor=actor_of(request), verb=verb)
        done = bulk_jobs.done_to(job)
        self.message_user(request, f"The deliveries are being {done}; you may leave this page.")
        return HttpResponseRedirect(reverse("admin:delivery_resubmission_change", args=[job.pk]))

    def cancel(self, request: HttpRequest, object_id: int) -> HttpResponse:
        job: Resubmission = self.permitted(request, object_id)
        try:
            is_stopped = bulk_jobs.cancel_job(job, actor=actor_of(request), now=timezone.now())
        except bulk_jobs.BacklogError:
            text = (
                "Not stopped: its subscription becomes ACTIVE after it. "
                "Deactivate the subscription instead."
            )
            return self.back(request, text, level=messages.WARNING)
        if not is_stopped:
            return self.back(
                request, f"Nothing was done: it is {job.state}.", level=messages.WARNING
            )
        return self.back(
            request,
            f"Stopped after {job.done:,}; deliveries already {bulk_jobs.done_to(job)} stay so.",
        )

    def shown(self, request: HttpRequest, row: Resubmission) -> dict[str, Any]:
        return {
            "job": row,
            "state": self.shown_state(row),
            "what": selection_in_words(row.filter, row.verb),
            "done_to": bulk_jobs.done_to(row),
            "counted": Bounded(row.count, COUNT_LIMIT),
            # If counting stopped at the limit, the remaining number is unknown.
            "most": row.count if row.count <= COUNT_LIMIT else None,
            "is_running": row.state == ResubmissionState.RUNNING,
            "may_stop": self.may_change_rows(request) and not row.is_backlog,
            "left_alone": row.done - row.changed,
        }

    @admin.display(description="job")
    def number(self, row: Resubmission) -> str:
        return str(row)

    @admin.display(description="state")
    def shown_state(self, row: Resubmission) -> SafeString:
        return label(row.state, tone=_TONES.get(ResubmissionState(row.state)))

    @admin.display(description="progress")
    def progress(self, row: Resubmission) -> str:
        if row.state == ResubmissionState.DONE:
            return f"{row.done:,}"
        return f"{row.done:,} of {Bounded(row.count, COUNT_LIMIT)}"

    @admin.display(description="action")
    def what(self, row: Resubmission) -> SafeString:
        return with_times(selection_in_words(row.filter, row.verb))

    @admin.display(description="requested by")
    def who(self, row: Resubmission) -> str:
        return row.actor

    @admin.display(description="started")
    def began(self, row: Resubmission) -> SafeString | str:
        return ago(row.created_at, now=timezone.now())

    @admin.display(description="ended")
    def ended(self, row: Resubmission) -> SafeString | str:
        return ago(row.ended_at, now=timezone.now())


def _previewed(chosen: dict[str, Any], verb: BulkVerb) -> dict[str, Any]:
    preview = preview_selection(chosen, verb)
    rows = Delivery.objects.filter(pk__in=preview.sample).select_related(
        "message__event_type", "subscription__subscriber"
    )
    return {
        "chosen": selection_in_words(chosen, verb),
        "count": Bounded(preview.count, COUNT_LIMIT),
        "statuses": preview.statuses.items(),
        "oldest_at": preview.oldest_at,
        "sample": rows.defer("message__body", "message__headers").order_by("id"),
    }
