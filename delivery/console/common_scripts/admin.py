"""Common scripts in the console.

They are edited with line numbers, and shown with the including subscriptions.
"""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminTextareaWidget

from delivery.console.shared.recorded_admin import RecordedAdmin
from delivery.console.subscriptions.form import EDITOR
from subscriptions.checks import common_script, script
from subscriptions.models import CommonScript, Subscription
from subscriptions.scripts.includes import included_names

SHOWN = 20


class CommonScriptForm(forms.ModelForm[CommonScript]):
    class Meta:
        model = CommonScript
        fields = ["name", "description", "runs_first", "text"]
        widgets = {"text": UnfoldAdminTextareaWidget(EDITOR)}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if isinstance(text := self.fields.get("text"), forms.CharField):
            # Stripped of a first empty line, it would have other line numbers.
            text.strip = False

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if refused := common_script.rename_refusal(self.instance, name):
            raise ValidationError(refused)
        return name

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if "text" in cleaned and "name" in cleaned:
            # As a browser sends lines, they would end in two characters.
            cleaned["text"] = cleaned["text"].replace("\r\n", "\n")
            self._check(cleaned)
        return cleaned

    def _check(self, cleaned: dict[str, Any]) -> None:
        common = script.library()
        values = {name: cleaned.get(name) for name in ("name", "text", "runs_first")}
        if fault := script.fault(cleaned["text"], common=common, own=cleaned["name"]):
            if fault.line is not None and not fault.source:
                self.fields["text"].widget.attrs["data-line"] = str(fault.line)
            self.add_error("text", str(fault))
        elif refused := common_script.refusal_of_script(
            CommonScript(**values), old_name=self.instance.name, before=common
        ):
            self.add_error("text", refused)


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
