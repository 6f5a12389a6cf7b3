"""Admin whose every change stands in the configuration log, committed with the change itself."""

from typing import Any

from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from unfold.admin import ModelAdmin

from subscriptions.admin.forms import ConfigurationForm
from subscriptions.changes import MASKED, record, snapshot
from subscriptions.dependents import first_dependents


def actor_of(request: HttpRequest) -> str:
    return request.user.get_username()


class ConsoleAdmin(ModelAdmin):  # type: ignore[misc]  # Unfold has no types
    """What all pages have in common: no count of everything, and buttons that come back to where they were."""

    list_fullwidth = True
    list_filter_submit = True
    empty_value_display = "–"
    # Counting each choice of each filter would read the whole table for each.
    show_facets = ShowFacets.NEVER
    # Columns of buttons, which only those who may change a row see.
    button_columns: tuple[str, ...] = ()
    # What an empty list says: what would be here, and what comes first.
    empty_text = ""

    def may_change_rows(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}")

    def get_list_display(self, request: HttpRequest) -> Any:
        columns = list(super().get_list_display(request))
        return (
            columns if self.may_change_rows(request) else [c for c in columns if c not in self.button_columns]
        )

    def permitted(self, request: HttpRequest, object_id: int) -> Any:
        """Return the row a button is about; raises PermissionDenied without the right to change it."""
        if not self.may_change_rows(request):
            raise PermissionDenied
        return get_object_or_404(self.model, pk=object_id)

    def back(self, request: HttpRequest, message: str, *, level: int = messages.SUCCESS) -> HttpResponse:
        """Go back to the page the button stood on, and say there what happened."""
        self.message_user(request, message, level)
        target = request.POST.get("next", "")
        if not url_has_allowed_host_and_scheme(target, allowed_hosts=None):
            target = reverse("admin:index")
        return HttpResponseRedirect(target)


class RecordedAdmin(ConsoleAdmin):
    """Records who made, changed or deleted a row, and what was different."""

    form: type[ModelForm[Any]] = ConfigurationForm

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "description" and field is not None:
            field.widget.attrs["rows"] = 2
        return field

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        stored = self.model._base_manager.filter(pk=obj.pk).first() if change else None
        form.state_before = None if stored is None else state_of(stored)
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        before = form.state_before
        # What is masked looks the same before and after, so the form must say that it is not.
        after = state_of(form.instance) | dict.fromkeys(
            getattr(form, "changed_secrets", ()), f"{MASKED}, set anew"
        )
        if before != after:
            record(
                actor=actor_of(request),
                action="changed" if change else "created",
                instance=form.instance,
                before=before,
                after=after,
            )

    def delete_model(self, request: HttpRequest, obj: models.Model) -> None:
        record(actor=actor_of(request), action="deleted", instance=obj, before=state_of(obj), after=None)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> None:
        with transaction.atomic():
            for row in queryset:
                self.delete_model(request, row)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Say what deleting would take along, without Django's loading of everything that depends on it."""
        names = [str(row) for row in objs]
        protected = [
            f"{row} has {dependents}: it stays as long as they do"
            for row in objs
            if (dependents := first_dependents(row))
        ]
        may_delete = self.has_delete_permission(request)
        counts = {str(self.opts.verbose_name_plural): len(names)}
        return names, counts, set() if may_delete else {str(self.opts.verbose_name)}, protected

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the configuration log of the row instead of Django's own."""
        row = self.permitted_to_view(request, object_id)
        query = {"object_type": str(self.opts.verbose_name), "object_name": str(row)}
        return HttpResponseRedirect(
            f"{reverse('admin:subscriptions_configurationchange_changelist')}?{urlencode(query)}"
        )

    def permitted_to_view(self, request: HttpRequest, object_id: str) -> models.Model:
        row: models.Model = get_object_or_404(self.model, pk=object_id)
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        return row


def state_of(row: models.Model) -> dict[str, Any]:
    """Return a row's fields and what it is linked to, for the configuration log."""
    linked = {
        field.name: sorted(str(other) for other in getattr(row, field.name).all())
        for field in row._meta.many_to_many
    }
    return snapshot(row) | linked
