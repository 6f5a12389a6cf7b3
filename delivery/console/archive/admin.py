"""The archive in the console: contents, current files, and a lookup by id or time."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.defaultfilters import filesizeformat
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_GET

from delivery.console.archive import page as archive
from delivery.console.shared.form_fields import name_field
from delivery.console.shared.input_filters import ExactText, choice_filter
from delivery.console.shared.keyset import KeysetAdmin
from delivery.console.shared.moment_field import moment_field
from delivery.models import ArchiveFile, ChunkState
from delivery.models.message import parse_public_id
from delivery.support.payload import log_view, may_see_payload
from subscriptions.values.times import parse_time


class DayFilter(ExactText):
    """Filter by a day. An invalid day matches nothing."""

    title = "Day (UTC)"
    parameter_name = "day"
    input_attributes = {"type": "date"}

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not self.typed():
            return queryset
        try:
            return queryset.filter(day=parse_time(self.typed()).date())
        except ValueError:
            return queryset.none()


class TimeForm(forms.Form):
    since = moment_field("Published since (UTC)")
    until = moment_field("Published before (UTC)")
    event_type = name_field("Event type")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and not since < until <= since + archive.LONGEST_SEARCH:
            raise ValidationError(
                'Give at most one day, with "since" before "until". '
                "For a longer time, create a report."
            )
        return cleaned


@admin.register(ArchiveFile)
class ArchiveFileAdmin(KeysetAdmin):
    empty_text = (
        "Nothing is archived yet: the step export archives settled deliveries, "
        "on its schedule or with Run now."
    )
    list_display = ["file", "table", "of_day", "shown_rows", "size", "ids"]
    list_display_links = None
    list_filter = [
        choice_filter("Table", "table", ("messages", "deliveries", "attempts", "journal")),
        DayFilter,
    ]
    list_before_template = "console/archive/page.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[ArchiveFile]:
        rows: QuerySet[ArchiveFile] = super().get_queryset(request)
        counts = Q(replaced_by=None) | ~Q(replaced_by__state=ChunkState.DONE)
        return rows.filter(counts, chunk__state=ChunkState.DONE)

    def get_urls(self) -> list[URLPattern]:
        def viewed(view: Any) -> Any:
            return self.admin_site.admin_view(require_GET(view))

        return [
            path("lookup/", viewed(self.look_up), name="delivery_archivefile_lookup"),
            path(
                "message/<int:message_id>/",
                viewed(self.message),
                name="delivery_archivefile_message",
            ),
            path(
                "message/<int:message_id>/raw/", viewed(self.raw), name="delivery_archivefile_raw"
            ),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show the list of files below the archive's contents and the lookup form."""
        shown = {
            **(extra_context or {}),
            "archive": archive.read_archive_page(),
            "may_run": request.user.has_perm("delivery.add_pipelinerun"),
            "may_look_up": self._may_look_up(request),
        }
        page: HttpResponse = super().changelist_view(request, shown)
        return page

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Redirect to the list: a file has no page."""
        return HttpResponseRedirect(reverse("admin:delivery_archivefile_changelist"))

    def look_up(self, request: HttpRequest) -> HttpResponse:
        """Redirect to a message by id, or list the messages published in an interval."""
        self._refuse_unless_may_look_up(request)
        if typed := request.GET.get("id", "").strip():
            if (message_id := parse_public_id(typed)) is not None:
                return HttpResponseRedirect(
                    reverse("admin:delivery_archivefile_message", args=[message_id])
                )
            self.message_user(
                request,
                f"{typed[:100]} is not the id of a message (msg_ and a number).",
                messages.WARNING,
            )
        form = TimeForm(request.GET if "since" in request.GET else None)
        found, error = _published(form)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "Find messages in the archive",
            "form": form,
            "found": found,
            "limit": archive.SHOWN,
            "error": error,
        }
        return TemplateResponse(request, "console/archive/lookup.html", context)

    def message(self, request: HttpRequest, message_id: int) -> HttpResponse:
        """Show a message from the archive, with the payload for users who may see payloads.

        Each view of a payload is logged.
        """
        shown = self._found(request, message_id)
        may_see = may_see_payload(request.user)
        if may_see:
            log_view(request.user, message_id)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": shown.message.public_id,
            "title": f"{shown.message.public_id} from the archive",
            "shown_message": shown,
            "may_see_payload": may_see,
        }
        return TemplateResponse(request, "console/archive/message.html", context)

    def raw(self, request: HttpRequest, message_id: int) -> HttpResponse:
        """Return the exact bytes, as a plain-text download.

        Otherwise a browser could run a script sent by a publisher.
        """
        self._refuse_unless_may_look_up(request)
        if not may_see_payload(request.user):
            raise PermissionDenied
        message = self._found(request, message_id).message
        log_view(request.user, message_id)
        return HttpResponse(
            message.body,
            content_type="text/plain; charset=utf-8",
            headers={"Content-Disposition": f'attachment; filename="{message.public_id}.txt"'},
        )

    def _found(self, request: HttpRequest, message_id: int) -> archive.ShownMessage:
        from delivery.history.archive.small_files import ArchiveError

        self._refuse_unless_may_look_up(request)
        try:
            shown = archive.archived_message(message_id) if message_id < 10**18 else None
        except ArchiveError as error:
            raise Http404(str(error)) from error
        if shown is None:
            raise Http404(f"msg_{message_id} is not in the archive.")
        return shown

    def _may_look_up(self, request: HttpRequest) -> bool:
        return bool(self.has_view_permission(request)) and request.user.has_perm(
            "delivery.view_message"
        )

    def _refuse_unless_may_look_up(self, request: HttpRequest) -> None:
        if not self._may_look_up(request):
            raise PermissionDenied

    @admin.display(description="file")
    def file(self, row: ArchiveFile) -> str:
        return row.path

    @admin.display(description="day")
    def of_day(self, row: ArchiveFile) -> str:
        return f"{row.day:%Y-%m-%d}"

    @admin.display(description="rows")
    def shown_rows(self, row: ArchiveFile) -> str:
        return f"{row.rows:,}"

    @admin.display(description="size")
    def size(self, row: ArchiveFile) -> str:
        return filesizeformat(row.bytes)

    @admin.display(description="ids")
    def ids(self, row: ArchiveFile) -> str:
        return f"{row.first_id} to {row.last_id}"


def _published(form: TimeForm) -> tuple[list[Any] | None, str]:
    """Return the messages published in the interval, or None and the reason for the failure.

    An invalid form gives None without a reason: the fields have the errors.
    """
    from delivery.history.archive.small_files import ArchiveError

    if not form.is_valid():
        return None, ""
    try:
        return archive.published_messages(**form.cleaned_data), ""
    except ArchiveError as error:
        return None, str(error)
