"""Policies in the console: built-in policies can be viewed and copied, copies can be edited."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.forms import model_to_dict
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from delivery.console.policies.form import CONDITIONS, FIELDSETS, PolicyForm
from delivery.console.policies.matrix import action_field
from delivery.console.policies.preview import PolicyPreview
from delivery.console.policies.words import policy_sentences, policy_summary
from delivery.console.shared.base import id_of
from delivery.console.shared.subscription_counts import subscription_count
from subscriptions.checks.policy import ACTION_FIELDS
from subscriptions.models import Policy


@admin.register(Policy)
class PolicyAdmin(PolicyPreview):
    form = PolicyForm
    conditional_fields = CONDITIONS
    empty_text = "A policy decides the action for each outcome of an attempt."
    list_display = ["name", "in_one_line", "subscription_count", "copy"]
    button_columns = ("copy",)
    search_fields = ["name"]
    search_help_text = "Search by name"
    ordering = ["-is_built_in", "name"]
    readonly_fields = ["in_words", "used_by", "preview"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Policy]:
        counted: QuerySet[Policy] = (
            super().get_queryset(request).annotate(n=subscription_count("policy"))
        )
        return counted

    def get_fieldsets(self, request: HttpRequest, obj: Policy | None = None) -> Any:
        """Show the policy in words: below the matrix and following it, if it can be edited."""
        used = ["used_by"] if obj else []
        if obj is not None and not self.has_change_permission(request, obj):
            return [(None, {"fields": ["name", "description", "in_words", *used]}), *FIELDSETS]
        (title, matrix), *others = FIELDSETS
        return [
            (None, {"fields": ["name", "description", *used]}),
            (title, matrix | {"fields": [*matrix["fields"], "preview"]}),
            *others,
        ]

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name in ACTION_FIELDS:
            return action_field(db_field.name)
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def has_change_permission(self, request: HttpRequest, obj: Policy | None = None) -> bool:
        return bool(super().has_change_permission(request, obj)) and not (obj and obj.is_built_in)

    def has_delete_permission(self, request: HttpRequest, obj: Policy | None = None) -> bool:
        return bool(super().has_delete_permission(request, obj)) and not (obj and obj.is_built_in)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Start with the values of `?copy=<id>`; nothing is stored until the form is saved."""
        original = Policy.objects.filter(pk=id_of(request.GET.get("copy", "")) or 0).first()
        if original is None:
            return dict(super().get_changeform_initial_data(request))
        return model_to_dict(original, exclude=["id", "is_built_in", "description"]) | {
            "name": f"{original.name}-copy"
        }

    @admin.display(description="actions")
    def in_one_line(self, row: Policy) -> str:
        return policy_summary(row)

    @admin.display(description="Summary")
    def in_words(self, row: Policy) -> SafeString:
        lines = format_html_join(
            "", "<li>{}</li>", ((sentence,) for sentence in policy_sentences(row))
        )
        return format_html('<ul class="inturn-sentences">{}</ul>', lines)

    @admin.display(description="subscriptions", ordering="n")
    def subscription_count(self, row: Any) -> SafeString:
        url = reverse("admin:subscriptions_subscription_changelist")
        return format_html(
            '<a class="inturn-link" href="{}?policy={}">{}</a>', url, row.name, row.n
        )

    @admin.display(description="Used by")
    def used_by(self, row: Any) -> SafeString | str:
        """Return the number of subscriptions affected by a change, as a link."""
        if not row.n:
            return "No subscription yet. Choose the policy in a subscription's form."
        noun = "subscription" if row.n == 1 else "subscriptions"
        return format_html("{} {}", self.subscription_count(row), noun)

    @admin.display(description="actions")
    def copy(self, row: Policy) -> SafeString:
        url = reverse("admin:subscriptions_policy_add")
        return format_html('<a class="inturn-button" href="{}?copy={}">Copy</a>', url, row.pk)
