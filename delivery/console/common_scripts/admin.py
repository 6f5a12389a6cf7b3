"""Common scripts in the console.

They are edited with line numbers, and shown with the including subscriptions.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminTextareaWidget

from delivery.console.shared.checked_form import CheckedForm
from delivery.console.shared.recorded_admin import RecordedAdmin
from delivery.console.subscriptions.form import EDITOR
from subscriptions.checks import common_script
from subscriptions.models import CommonScript, Subscription
from subscriptions.scripts.includes import included_names

SHOWN = 20


class CommonScriptForm(CheckedForm[CommonScript]):
    class Meta:
        model = CommonScript
        fields = ("name", "description", "runs_first", "text")
        widgets: ClassVar[dict[str, forms.Widget]] = {"text": UnfoldAdminTextareaWidget(EDITOR)}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if isinstance(text := self.fields.get("text"), forms.CharField):
            # Stripped of a first empty line, it would have other line numbers.
            text.strip = False

    def clean_text(self) -> str:
        # As a browser sends lines, they would end in two characters.
        text: str = self.cleaned_data["text"]
        return text.replace("\r\n", "\n")

    def refusals(self, values: Mapping[str, Any]) -> Mapping[str, str]:
        return common_script.refusals(values, stored=self.stored)


@admin.register(CommonScript)
class CommonScriptAdmin(RecordedAdmin):
    form = CommonScriptForm
    empty_text = (
        "A common script is included by scripts of subscriptions, "
        "or is executed before all of them."
    )
    list_display = ["name", "description", "runs_first"]
    search_fields = ["name"]
    search_help_text = "Search by name"
    ordering = ["name"]
    readonly_fields = ["included_by"]

    class Media:
        js = ["console/script_editor.js"]

    def get_fieldsets(self, request: HttpRequest, obj: CommonScript | None = None) -> Any:
        fields = ["name", "description", *(["included_by"] if obj else []), "runs_first", "text"]
        return [(None, {"fields": fields})]

    @admin.display(description="Included by")
    def included_by(self, row: CommonScript) -> SafeString | str:
        mark = f"$include${row.name}"
        rows = Subscription.objects.filter(script__contains=mark).select_related("subscriber")
        rows = rows.defer("headers", "auth").order_by("subscriber__name", "name")[: SHOWN + 1]
        found = [
            subscription
            for subscription in rows
            if row.name in dict(included_names(subscription.script))
        ]
        links: list[tuple[str, Subscription | CommonScript]] = [
            (
                reverse("admin:subscriptions_subscription_status", args=[subscription.pk]),
                subscription,
            )
            for subscription in found[:SHOWN]
        ]
        others = CommonScript.objects.filter(text__contains=mark).exclude(pk=row.pk)
        links += [
            (reverse("admin:subscriptions_commonscript_change", args=[script.pk]), script)
            for script in others
            if row.name in dict(included_names(script.text))
        ]
        if not links:
            return f"No script yet: write a line $include${row.name} in one."
        said = format_html_join(", ", '<a class="inturn-link" href="{}">{}</a>', links)
        return format_html("{}{}", said, " and others" if len(found) > SHOWN else "")
