"""The console's page of the configuration file: download, upload, compare, plan and apply.

Between the plan and *Apply* the browser keeps the file and the secrets, encrypted with the
installation's key: a typed secret is never shown again.
"""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from unfold.widgets import (
    UnfoldAdminFileFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldBooleanSwitchWidget,
)

from delivery.configuration.applying import (
    apply_document,
    checked_document,
    drift_of,
    plan_document,
)
from delivery.configuration.archive_effect import MOST_DAYS, request_effect
from delivery.configuration.document.apply import PlanChangedError
from delivery.configuration.document.document import RefusedDocumentError, document_refused
from delivery.configuration.document.document_json import document_text, parse_document
from delivery.configuration.document.export import export_configuration
from delivery.configuration.document.plan import ConfigurationRequest, Plan, PlannedObject, Verb
from delivery.configuration.document.secrets import lookup_of_mapping
from delivery.configuration.document.warnings import plan_warnings
from delivery.configuration.effect import effects_of
from delivery.configuration.words import is_set_anew, plan_summary, shown_value
from delivery.console.shared.base import actor_of
from delivery.console.shared.rights import may_configure
from delivery.pipeline import TooManyRunsError
from subscriptions.values.encryption import UndecipherableError, decrypt, encrypt

MAX_FILE_BYTES = 1024 * 1024
SHOWN = 200


class DocumentForm(forms.Form):
    """A file with secrets; only users who may run the pipeline can have the archive tried."""

    file = forms.FileField(
        label="File",
        help_text="Up to 1 MiB; for a longer one use the command or REST.",
        widget=UnfoldAdminFileFieldWidget,
    )
    secrets = forms.CharField(
        required=False,
        help_text=(
            "A line for each, such as env:NAME=value. Values that are not given stay as they are."
        ),
        widget=UnfoldAdminTextareaWidget(
            {"rows": 3, "class": "inturn-code", "spellcheck": "false", "autocomplete": "off"}
        ),
    )
    prune = forms.BooleanField(
        required=False,
        label="Delete objects that the file does not have",
        widget=UnfoldBooleanSwitchWidget,
    )
    days = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_DAYS,
        label="Days of the archive to try",
        help_text=(
            "The preview also requests a run that tries the archived messages of the last days. "
            "Empty: none."
        ),
        widget=UnfoldAdminIntegerFieldWidget,
    )

    def __init__(self, *given: Any, may_run: bool, **options: Any) -> None:
        super().__init__(*given, **options)
        if not may_run:
            del self.fields["days"]

    def clean_file(self) -> str:
        file = self.cleaned_data["file"]
        if file.size > MAX_FILE_BYTES:
            raise forms.ValidationError("The file is longer than 1 MiB; use the command or REST.")
        text: str = file.read().decode(errors="surrogateescape")
        return text

    def clean_secrets(self) -> dict[str, str]:
        lines = [line for line in self.cleaned_data["secrets"].splitlines() if line.strip()]
        if any("=" not in line for line in lines):
            raise forms.ValidationError("Write a line for each secret, such as env:NAME=value.")
        return dict(line.split("=", 1) for line in lines)


@never_cache
@require_http_methods(["GET", "POST"])
def configuration_page(request: HttpRequest) -> HttpResponse:
    if not may_configure(request.user):
        raise PermissionDenied
    if request.method == "GET":
        return _download() if "download" in request.GET else _shown(request, _form(request))
    if "sealed" in request.POST:
        return _apply(request)
    form = _form(request, request.POST, request.FILES)
    if not form.is_valid():
        return _shown(request, form)
    given = form.cleaned_data
    # Not with the file and the secrets, which are planned again if Apply comes too late.
    days = given.pop("days", None)
    return _compared(request, given) if "drift" in request.POST else _planned(request, given, days)


def _download() -> HttpResponse:
    return HttpResponse(
        document_text(export_configuration()),
        content_type="application/json",
        headers={"Content-Disposition": 'attachment; filename="inturn.json"'},
    )


def _compared(request: HttpRequest, given: dict[str, Any]) -> HttpResponse:
    try:
        drift = drift_of(_configuration_request(given))
    except RefusedDocumentError as error:
        return _refused(request, error, given)
    return _shown(request, _emptied(request, given), **_changes(drift), is_drift=True)


def _planned(request: HttpRequest, given: dict[str, Any], days: int | None = None) -> HttpResponse:
    try:
        plan = plan_document(_configuration_request(given))
    except RefusedDocumentError as error:
        return _refused(request, error, given)
    consequences = {
        "warnings": plan_warnings(plan),
        "effects": effects_of(plan),
        "digest": plan.digest,
        "sealed": encrypt(given) if plan.changes else "",
    }
    if days is not None:
        consequences |= _requested_run(request, plan, days)
    return _shown(request, _emptied(request, given), **_changes(plan), **consequences)


def _requested_run(request: HttpRequest, plan: Plan, days: int) -> dict[str, Any]:
    try:
        run = request_effect(plan, days=days, actor=actor_of(request), now=timezone.now())
    except TooManyRunsError as error:
        messages.warning(request, f"The archived messages are not tried: {error}")
        return {}
    return {"days": days, "run": run}


def _refused(
    request: HttpRequest, error: RefusedDocumentError, given: dict[str, Any]
) -> HttpResponse:
    more = max(len(error.faults) - SHOWN, 0)
    return _shown(request, _emptied(request, given), faults=error.faults[:SHOWN], more=more)


def _emptied(request: HttpRequest, given: dict[str, Any]) -> DocumentForm:
    """Return a new form, because the submitted form contains the typed secrets."""
    return _form(request, initial={"prune": given["prune"]})


def _form(request: HttpRequest, *given: Any, **options: Any) -> DocumentForm:
    may_run = request.user.has_perm("delivery.add_pipelinerun")
    return DocumentForm(*given, may_run=may_run, **options)


def _apply(request: HttpRequest) -> HttpResponse:
    try:
        given = decrypt(request.POST["sealed"])
    except UndecipherableError:
        messages.error(
            request, "Nothing was changed: the page was not one of this installation. Plan again."
        )
        return _shown(request, _form(request))
    try:
        plan = apply_document(
            _configuration_request(given),
            digest=request.POST.get("digest", ""),
            actor=actor_of(request),
        )
    except RefusedDocumentError as error:
        return _shown(request, _form(request), faults=error.faults[:SHOWN])
    except PlanChangedError:
        messages.error(
            request, "Nothing was changed: something changed meanwhile. Below is how it is now."
        )
        return _planned(request, given)
    messages.success(request, f"The file was applied: {plan_summary(plan)}.")
    return HttpResponseRedirect(reverse("configuration"))


def _configuration_request(given: dict[str, Any]) -> ConfigurationRequest:
    if not given["file"]:
        raise document_refused("The file is empty.")
    text = given["file"].encode(errors="surrogateescape")
    return checked_document(
        parse_document(text), lookup=lookup_of_mapping(given["secrets"]), prune=given["prune"]
    )


def _changes(plan: Plan) -> dict[str, Any]:
    """Return the changes of a plan or drift for the template."""
    return {
        "rows": [_row(change) for change in plan.changes[:SHOWN]],
        "count": len(plan.changes),
        "summary": plan_summary(plan),
        "kept": plan.kept,
    }


def _shown(request: HttpRequest, form: forms.Form, **context: Any) -> HttpResponse:
    context = {
        **admin.site.each_context(request),
        "title": "Configuration file",
        "form": form,
        **context,
    }
    return TemplateResponse(request, "console/configuration/page.html", context)


def _row(change: PlannedObject) -> dict[str, Any]:
    fields = [
        {
            "name": each.name,
            "before": "" if change.verb == Verb.CREATE else shown_value(each.shown_before),
            "after": shown_value(each.shown_after) + is_set_anew(each),
        }
        for each in change.fields
    ]
    return {"verb": change.verb, "label": change.label, "fields": fields}
