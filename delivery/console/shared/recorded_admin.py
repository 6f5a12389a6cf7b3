"""Admin pages with a record of every change in the configuration log, in the same transaction."""

from typing import Any

from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import connection, models
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode

from delivery.console.shared.base import ConsoleAdmin, actor_of
from subscriptions.changes import MASKED, record_change, snapshot
from subscriptions.dependents import first_dependents


class RecordedAdmin(ConsoleAdmin):
    """Records who created, changed or deleted a row, and the differences."""

    form: type[ModelForm[Any]] = ModelForm

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if db_field.name == "description" and field is not None:
            field.widget.attrs["rows"] = 2
        return field

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        """Return the lists of other rows, which only a stored row has."""
        return [] if obj is None else super().get_inlines(request, obj)

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Return the row; on a POST it is locked, because saving writes all fields.

        Publishing refers to the row and goes on meanwhile, unless it is about to be deleted.
        """
        row = super().get_object(request, object_id, from_field)
        if row is None or request.method != "POST" or not connection.in_atomic_block:
            return row
        rows = self.model._base_manager.select_for_update(no_key=not _is_deleting(request))
        rows.only("pk").filter(pk=row.pk).first()
        return super().get_object(request, object_id, from_field)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        stored = self.model._base_manager.filter(pk=obj.pk).first() if change else None
        form.state_before = None if stored is None else self.recorded_state(stored)
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        before = form.state_before
        # Masked secrets look the same before and after, so the form reports the changed ones.
        after = self.recorded_state(form.instance) | dict.fromkeys(
            getattr(form, "changed_secrets", ()), f"{MASKED}, new value"
        )
        if before != after:
            record_change(
                actor=actor_of(request),
                action="changed" if change else "created",
                instance=form.instance,
                before=before,
                after=after,
            )

    def recorded_state(self, row: Any) -> dict[str, Any]:
        """Return the values compared by the configuration log."""
        return state_of_row(row)

    def delete_model(self, request: HttpRequest, obj: models.Model) -> None:
        record_change(
            actor=actor_of(request),
            action="deleted",
            instance=obj,
            before=self.recorded_state(obj),
            after=None,
        )
        super().delete_model(request, obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Return the objects affected by a deletion.

        Django's own version would load all dependents.
        """
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
        """Redirect to the row's configuration log instead of showing Django's history."""
        row = self.get_object(request, unquote(object_id))
        if row is None:
            raise Http404
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        query = {"object_type": str(self.model._meta.verbose_name), "object_name": str(row)}
        return HttpResponseRedirect(
            f"{reverse('admin:subscriptions_configurationchange_changelist')}?{urlencode(query)}"
        )


def _is_deleting(request: HttpRequest) -> bool:
    match = request.resolver_match
    return match is not None and (match.url_name or "").endswith("_delete")


def state_of_row(row: models.Model) -> dict[str, Any]:
    """Return a row's fields and many-to-many links, for the configuration log."""
    linked = {
        field.name: sorted(str(other) for other in getattr(row, field.name).all())
        for field in row._meta.many_to_many
    }
    return snapshot(row) | linked
