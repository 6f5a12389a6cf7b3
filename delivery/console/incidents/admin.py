"""Incidents in the console: Support's inbox, a page for each, and the buttons of both."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery.console.incidents import rows
from delivery.console.incidents.status import ShownIncident, read_incident
from delivery.console.shared.base import ReadOnly, actor_of, id_of
from delivery.console.shared.input_filters import ExactText, choice_filter
from delivery.console.shared.labels import two_lines
from delivery.console.shared.refresh import is_refresh
from delivery.console.shared.rights import may_toggle
from delivery.console.shared.row_extras import CompletedList
from delivery.console.shared.status_page import StatusAdmin
from delivery.console.shared.times import ago
from delivery.incidents import actions
from delivery.incidents.actions import IncidentError
from delivery.incidents.facts import read_facts
from delivery.models import Incident, IncidentKind, IncidentState
from subscriptions.values.counts import counted

# Choices of *Mute*, in hours.
MUTE_HOURS = (1, 8, 72)
MOST_ASSIGNEES = 100


class AssigneeFilter(ExactText):
    title = "Assigned to"
    parameter_name = lookup = "assignee"


@admin.register(Incident)
class IncidentAdmin(ReadOnly, CompletedList, StatusAdmin):
    empty_text = (
        "Nothing is wrong. An incident opens when a lane stops, deliveries fail, "
        "or a rule's bound is exceeded, and closes by itself."
    )
    list_display = ["what", "state_of", "cause_in_short", "seen", "number", "head", "buttons"]
    button_columns = ("buttons",)
    list_filter = [
        choice_filter("State", "state", [IncidentState.OPEN.value, IncidentState.CLOSED.value]),
        choice_filter("Kind", "kind", IncidentKind.values),
        AssigneeFilter,
    ]
    search_fields = ["subject", "cause"]
    search_help_text = "Search by name or cause"
    sortable_by = ()
    status_template = "console/incidents/page.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Incident]:
        found: QuerySet[Incident] = super().get_queryset(request)
        return found.exclude(state=IncidentState.WATCHED)

    def get_ordering(self, request: HttpRequest) -> Any:
        return [rows.open_first(), "-id"]

    def get_urls(self) -> list[URLPattern]:
        buttons: dict[str, Callable[..., HttpResponse]] = {
            "acknowledge": self.acknowledge,
            "assign": self.assign,
            "close": self.close,
            "resubmit": self.resubmit,
        }
        return [
            *(
                path(
                    f"<int:object_id>/{name}/",
                    self.admin_site.admin_view(require_POST(view)),
                    name=f"delivery_incident_{name}",
                )
                for name, view in buttons.items()
            ),
            path(
                "<int:object_id>/mute/<int:hours>/",
                self.admin_site.admin_view(require_POST(self.mute)),
                name="delivery_incident_mute",
            ),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the status page: an incident has no form."""
        return self.status(request, id_of(object_id) or 0)

    def complete(self, shown: Sequence[Any]) -> None:
        facts = read_facts(shown)
        for row in shown:
            row.facts = facts[row.pk]

    def status_rows(self) -> QuerySet[Incident]:
        return Incident.objects.exclude(state=IncidentState.WATCHED)

    def seen_message(self, values: Mapping[str, Any]) -> int | None:
        shown: ShownIncident = values["shown"]
        has_answer = shown.sample is not None and shown.sample.answer is not None
        return shown.facts.message_id if has_answer else None

    def status_values(self, row: Incident, request: HttpRequest) -> dict[str, Any]:
        user = request.user
        may_act = self.may_change_rows(request)
        return {
            "title": row.subject,
            # An answer is not read again with the refreshed part, for each view of it is logged.
            "shown": read_incident(
                row,
                user=user,
                now=timezone.now(),
                with_sample=not is_refresh(request),
            ),
            "state_label": rows.state_label(row),
            "is_open": row.state == IncidentState.OPEN,
            "may_act": may_act,
            "may_resubmit": may_act and user.has_perm("delivery.add_resubmission"),
            "may_toggle": may_toggle(user),
            "may_unblock": user.has_perm("delivery.change_lane"),
            "mute_hours": MUTE_HOURS,
            "assignees": _assignees() if may_act else [],
        }

    def acknowledge(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return self._acted(
            request, object_id, actions.acknowledge_incident, "You have acknowledged it."
        )

    def close(self, request: HttpRequest, object_id: int) -> HttpResponse:
        return self._acted(request, object_id, actions.close_incident, "It is closed.")

    def assign(self, request: HttpRequest, object_id: int) -> HttpResponse:
        name = request.POST.get("assignee", "")
        if name and name not in _assignees():
            return self.back(request, f"There is no user {name!r}.", level=messages.WARNING)
        text = f"It is assigned to {name}." if name else "It is assigned to nobody."
        return self._acted(request, object_id, actions.assign_incident, text, assignee=name)

    def mute(self, request: HttpRequest, object_id: int, hours: int) -> HttpResponse:
        """Mute it for so many hours; 0 ends the muting."""
        if hours not in (0, *MUTE_HOURS):
            return self.back(request, "Choose one of the times.", level=messages.WARNING)
        until = timezone.now() + timedelta(hours=hours) if hours else None
        text = f"No mail and no chat for {counted(hours, 'hour')}." if hours else "Not muted."
        return self._acted(request, object_id, actions.mute_incident, text, until=until)

    def resubmit(self, request: HttpRequest, object_id: int) -> HttpResponse:
        row: Incident = self.permitted(request, object_id)
        if not request.user.has_perm("delivery.add_resubmission"):
            raise PermissionDenied
        try:
            job = actions.resubmit_failures(row.pk, rate=None, actor=actor_of(request))
        except IncidentError as error:
            return self.back(request, f"Nothing was done: {error}", level=messages.WARNING)
        text = f"{counted(job.count, 'delivery')} to be sent again, in {job}."
        self.message_user(request, text)
        return HttpResponseRedirect(self._status_url(row))

    def _acted(
        self,
        request: HttpRequest,
        object_id: int,
        act: Callable[..., Incident],
        text: str,
        **options: Any,
    ) -> HttpResponse:
        row: Incident = self.permitted(request, object_id)
        try:
            act(row.pk, actor=actor_of(request), now=timezone.now(), **options)
        except IncidentError as error:
            return self.back(request, f"Nothing was done: {error}", level=messages.WARNING)
        return self.back(request, text)

    def permitted(self, request: HttpRequest, object_id: int) -> Any:
        if not self.may_change_rows(request):
            raise PermissionDenied
        return get_object_or_404(self.status_rows(), pk=object_id)

    @admin.display(description="incident")
    def what(self, row: Incident) -> SafeString:
        return two_lines(self.status_link(row, row.subject), row.get_kind_display())

    @admin.display(description="state")
    def state_of(self, row: Incident) -> SafeString:
        return two_lines(rows.state_label(row), rows.notes_of(row))

    @admin.display(description="cause")
    def cause_in_short(self, row: Any) -> SafeString | str:
        sample = row.facts.reason or ""
        if rows.is_of_failures(row) and sample:
            return two_lines(row.cause, sample[:120])
        return str(row.cause)[:160]

    @admin.display(description="since")
    def seen(self, row: Incident) -> SafeString:
        now = timezone.now()
        last = row.closed_at or row.absent_since
        return two_lines(
            ago(row.first_at, now=now), ago(last, now=now) if last else "still the case"
        )

    @admin.display(description="waiting")
    def number(self, row: Any) -> SafeString:
        failed = f"{counted(row.count, 'failure')}" if row.count else ""
        return two_lines(rows.waiting_of(row.facts), failed)

    @admin.display(description="message")
    def head(self, row: Any) -> SafeString | str:
        return rows.head_of(row.facts)

    @admin.display(description="actions")
    def buttons(self, row: Incident) -> SafeString | str:
        return rows.buttons_of(row)


def _assignees() -> list[str]:
    """Return the users to whom an incident may be assigned."""
    users = User.objects.filter(is_active=True, is_staff=True).order_by("username")
    return list(users.values_list("username", flat=True)[:MOST_ASSIGNEES])
