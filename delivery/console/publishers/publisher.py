"""Publishers in the console, with their keys and publish addresses."""

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from delivery.console.publishers.key_list import KeyList
from delivery.console.publishers.publish_address import PublishAddresses, PublishIdList
from delivery.console.shared.recorded_admin import RecordedAdmin
from subscriptions.matching.destinations import UnknownDestinationError
from subscriptions.matching.errors_to import check_errors_to
from subscriptions.models import Publisher


class PublisherForm(forms.ModelForm[Publisher]):
    def clean_errors_to(self) -> str:
        errors_to: str = self.cleaned_data["errors_to"]
        try:
            check_errors_to(errors_to)
        except UnknownDestinationError as unknown:
            raise ValidationError(unknown.detail) from None
        return errors_to


@admin.register(Publisher)
class PublisherAdmin(PublishAddresses, RecordedAdmin):
    empty_text = "A publisher is an application that publishes messages with its own key."
    list_display = ["name", "may_publish", "usable_keys", "description"]
    search_fields = ["name"]
    search_help_text = "Search by name"
    ordering = ["name"]
    fields = ["name", "description", "all_event_types", "event_types", "errors_to"]
    form = PublisherForm
    autocomplete_fields = ["event_types"]
    inlines = [KeyList, PublishIdList]
    change_form_outer_after_template = "console/publishers/after.html"
    conditional_fields = {"event_types": "all_event_types == false"}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Publisher]:
        rows: QuerySet[Publisher] = (
            super().get_queryset(request).prefetch_related("event_types", "keys")
        )
        return rows

    @admin.display(description="allowed event types")
    def may_publish(self, row: Publisher) -> str:
        if row.all_event_types:
            return "all"
        return ", ".join(event_type.name for event_type in row.event_types.all()) or "none"

    @admin.display(description="keys")
    def usable_keys(self, row: Publisher) -> str:
        count = sum(key.revoked_at is None for key in row.keys.all())
        return str(count) if count else "none"
