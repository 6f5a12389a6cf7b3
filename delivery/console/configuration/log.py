"""The configuration log in the console: each change with author, before and after."""

import json
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from delivery.console.shared.export import ExportedAdmin
from delivery.console.shared.input_filters import ExactText, Since, Until
from delivery.console.shared.recorded_admin import RecordedAdmin
from delivery.console.shared.times import marked_up_time
from subscriptions.models import ConfigurationChange

SHOWN_CHARACTERS = 200
# Of more values, such as those of a new subscription, a row shows the number until it is opened.
OPEN_VALUES = 6
ACTIONS = (
    "created",
    "changed",
    "deleted",
    "rotated",
    "revoked",
    "ended",
    "restored",
    "let in",
    "resubmitted",
    "started",
    "cancelled",
    "downloaded",
)


class ActorFilter(ExactText):
    title = "Who"
    parameter_name = lookup = "actor"


class ObjectTypeFilter(ExactText):
    title = "Kind of object"
    parameter_name = lookup = "object_type"

    def suggestions(self) -> list[str]:
        """Return the kinds of objects with a page of recorded changes."""
        recorded = (
            model for model, page in admin.site._registry.items() if isinstance(page, RecordedAdmin)
        )
        return sorted(str(model._meta.verbose_name) for model in recorded)


class ObjectNameFilter(ExactText):
    title = "Name"
    parameter_name = lookup = "object_name"


class ActionFilter(ExactText):
    title = "Action"
    parameter_name = lookup = "action"

    def suggestions(self) -> list[str]:
        return list(ACTIONS)


@admin.register(ConfigurationChange)
class ConfigurationChangeAdmin(ExportedAdmin):
    empty_text = (
        "Every change of the configuration is recorded here: person or key, object, "
        "values before and after."
    )
    list_display = ["when", "who", "what", "difference"]
    list_display_links = None
    list_filter = [ObjectTypeFilter, ObjectNameFilter, ActorFilter, ActionFilter, Since, Until]

    def exported(self, row: ConfigurationChange) -> dict[str, Any]:
        return {
            "id": row.pk,
            "at": row.at,
            "actor": row.actor,
            "action": row.action,
            "object_type": row.object_type,
            "object_name": row.object_name,
            "before": row.before,
            "after": row.after,
        }

    @admin.display(description="actor")
    def who(self, row: ConfigurationChange) -> str:
        return row.actor

    @admin.display(description="change")
    def what(self, row: ConfigurationChange) -> SafeString:
        return format_html(
            "{} {} <strong>{}</strong>", row.action, row.object_type, row.object_name
        )

    @admin.display(description="values before and after")
    def difference(self, row: ConfigurationChange) -> SafeString:
        before, after = row.before or {}, row.after or {}
        lines = (
            (field, marked_up_time(_text(before, field)), marked_up_time(_text(after, field)))
            for field in sorted({*before, *after})
        )
        changed = [line for line in lines if line[1] != line[2]]
        values = format_html(
            '<dl class="inturn-difference">{}</dl>',
            format_html_join("", "<dt>{}</dt><dd><del>{}</del> <ins>{}</ins></dd>", changed),
        )
        if len(changed) <= OPEN_VALUES:
            return values
        return format_html(
            '<details><summary class="inturn-link">{} values</summary>{}</details>',
            len(changed),
            values,
        )

    def has_module_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("subscriptions.view_configurationchange")


def _text(state: dict[str, Any], field: str) -> str:
    value = state.get(field)
    if value is None or value == "":
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
