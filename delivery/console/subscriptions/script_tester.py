"""The script tester in the form of a subscription: the script is tried as typed, saved or not."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery.console.shared.base import id_of, person
from delivery.console.subscriptions.script_trial import (
    LAST,
    OFFERED,
    SAMPLE,
    ScriptTrial,
    TypedScript,
    mistake_of,
    try_typed,
)
from delivery.models import Message
from delivery.support.payload import log_view, may_see_payload
from subscriptions.checks import script as checks
from subscriptions.models import EventType, Subscription

# As long as a message may be by default.
LONGEST_BODY = 1024 * 1024


class ScriptTester:
    """Mix into the ModelAdmin of subscriptions."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.test_script))  # type: ignore[attr-defined]
        name = "subscriptions_subscription_script_test"
        return [path("script-test/", view, name=name), *super().get_urls()]  # type: ignore[misc]

    def get_fieldsets(self, request: HttpRequest, obj: Subscription | None = None) -> list[Any]:
        """Put the tester below the script for those who may edit it."""
        fieldsets: list[Any] = super().get_fieldsets(request, obj)  # type: ignore[misc]
        if not _may_edit(request, is_new=obj is None):
            return fieldsets
        return [
            (title, options | {"fields": _with_tester(options["fields"])})
            for title, options in fieldsets
        ]

    def get_readonly_fields(
        self, request: HttpRequest, obj: Subscription | None = None
    ) -> list[str]:
        return [*super().get_readonly_fields(request, obj), "script_tester"]  # type: ignore[misc]

    def script_tester(self, row: Subscription) -> SafeString:
        return render_to_string(
            "console/subscriptions/script_tester.html", {"row": row if row.pk else None}
        )

    script_tester.short_description = "Test the script"  # type: ignore[attr-defined]

    @staticmethod
    def test_script(request: HttpRequest) -> HttpResponse:
        """Return the part of the page below the script; with `check`, only the syntax error."""
        subscription_id = id_of(request.POST.get("tried_subscription", ""))
        if not _may_edit(request, is_new=subscription_id is None):
            raise PermissionDenied
        typed = _typed(request)
        if "check" in request.POST:
            fault = checks.fault(typed.text)
            mistake = None if fault is None else mistake_of(fault, typed.text)
            shown = {"mistake": mistake, "fault": fault, "typed": typed}
            return render(request, "console/subscriptions/script_checked.html", shown)
        event_type = _event_type(request, subscription_id)
        trial = _on_message(request, typed, event_type) if typed.on == LAST else None
        trial = trial or try_typed(typed, event_type=event_type, message=None)
        return render(request, "console/subscriptions/script_tested.html", {"trial": trial})


def _with_tester(fields: Sequence[str]) -> list[str]:
    behind = fields.index("script") + 1 if "script" in fields else 0
    return [*fields[:behind], "script_tester", *fields[behind:]] if behind else list(fields)


def _may_edit(request: HttpRequest, *, is_new: bool) -> bool:
    return request.user.has_perm(f"subscriptions.{'add' if is_new else 'change'}_subscription")


def _typed(request: HttpRequest) -> TypedScript:
    given = request.POST
    return TypedScript(
        # Browsers send each line break as two characters.
        text=given.get("script", "").replace("\r\n", "\n"),
        on=given.get("tried_on", SAMPLE),
        headers=given.get("tried_headers", ""),
        body=given.get("tried_body", "").replace("\r\n", "\n")[:LONGEST_BODY],
        message_id=id_of(given.get("tried_message", "")),
    )


def _event_type(request: HttpRequest, subscription_id: int | None) -> EventType | None:
    if subscription_id is not None:
        return EventType.objects.filter(subscriptions=subscription_id).first()
    return EventType.objects.filter(pk=id_of(request.POST.get("event_type", "")) or 0).first()


def _on_message(
    request: HttpRequest, typed: TypedScript, event_type: EventType | None
) -> ScriptTrial | None:
    """Try it on the chosen message, else on the newest; None without an event type."""
    if not (request.user.has_perm("delivery.view_message") and may_see_payload(request.user)):
        return ScriptTrial(
            note="You may not see payloads, so test it on the sample or on your own message."
        )
    if event_type is None:
        return None
    rows = Message.objects.filter(event_type=event_type).order_by("-id")
    offered = list(rows.only("id", "published_at")[:OFFERED])
    chosen = typed.message_id or (offered[0].pk if offered else 0)
    message = rows.filter(pk=chosen).first()
    trial = try_typed(typed, event_type=event_type, message=message)
    if message is not None and trial.before is not None:
        log_view(person(request), message.pk)
    return replace(trial, offered=offered, message=message)
