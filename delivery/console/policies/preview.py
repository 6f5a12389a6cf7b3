"""The effect of a policy in a form: the sentences, and the times of the tries as a line."""

from dataclasses import dataclass
from itertools import accumulate
from math import log1p
from typing import Any

from django.core.exceptions import PermissionDenied
from django.forms import model_to_dict
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from delivery.console.policies.schedule_words import offset, retries
from delivery.console.policies.words import policy_sentences
from delivery.console.shared.recorded_admin import RecordedAdmin
from subscriptions.checks.policy import RETRYING, actions_in_effect
from subscriptions.models import Action, Policy
from subscriptions.values.schedules import doubling_pause
from subscriptions.values.times import rounded_duration

# Of a policy without an end as many tries are shown; of any other at most as many.
ENDLESS, MOST = 8, 60
WIDTH = 1_000
# Labels closer than this would overlap.
_APART = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """A try at `x` of WIDTH, `words` after the first failure; `is_labelled` if there is room."""

    x: int
    words: str
    is_labelled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLine:
    title: str
    tries: list[Try]
    is_endless: bool


def time_lines(policy: Policy) -> list[TimeLine]:
    """Return the lines of a policy's retries and of a blocked lane, as far as present."""
    actions = set(actions_in_effect(model_to_dict(policy)).values())
    lines = []
    if not actions.isdisjoint(RETRYING):
        count = retries(policy)
        shown = min(MOST, ENDLESS if count is None else count)
        offsets = [offset(policy, number) for number in range(1, shown + 1)]
        is_endless = count is None or count > shown
        lines.append(_line("Retries of a delivery", offsets, is_endless=is_endless))
    if Action.BLOCK in actions:
        lines.append(_line("Tries of a blocked lane", _pauses(policy), is_endless=True))
    return lines


def _pauses(policy: Policy) -> list[float]:
    first, longest = float(policy.pause_seconds), float(policy.pause_max_seconds)
    pauses = [doubling_pause(first, failures=n, longest=longest) for n in range(1, ENDLESS + 1)]
    return list(accumulate(pauses))


def _line(title: str, offsets: list[float], *, is_endless: bool) -> TimeLine:
    """Place the tries by the logarithm of their times: waits differ by orders of magnitude."""
    last = log1p(offsets[-1]) if offsets else 1.0
    places = [round(WIDTH * log1p(seconds) / last) for seconds in offsets]
    tries, labelled = [], -_APART
    for place, seconds in zip(places, offsets, strict=True):
        is_last = seconds == offsets[-1]
        is_labelled = is_last or (place - labelled >= _APART and WIDTH - place >= _APART)
        labelled = place if is_labelled else labelled
        tries.append(Try(x=place, words=rounded_duration(seconds), is_labelled=is_labelled))
    return TimeLine(title=title, tries=tries, is_endless=is_endless)


class PolicyPreview(RecordedAdmin):
    """Mixin for the admin of policies: the readonly field `preview` follows the form."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.show_preview))
        return [
            path("preview/", view, name="subscriptions_policy_preview"),
            *super().get_urls(),
        ]

    def preview(self, row: Policy) -> SafeString:
        return render_to_string("console/policies/preview.html", {})

    preview.short_description = "In words"  # type: ignore[attr-defined]

    def show_preview(self, request: HttpRequest) -> HttpResponse:
        """Return the sentences and time lines of the values in the form, or the mistakes."""
        if not (self.has_add_permission(request) or self.has_change_permission(request)):
            raise PermissionDenied
        typed = request.POST.copy()
        # A form without a name is not checked as a whole.
        typed["name"] = typed.get("name") or "preview"
        form: Any = self.get_form(request)(typed)
        form.is_valid()
        wrong = {name: form.errors[name] for name in form.errors if name not in _IRRELEVANT}
        context: dict[str, Any] = (
            {"wrong": [(_label(form, name), found[0]) for name, found in wrong.items()]}
            if wrong
            else {"sentences": policy_sentences(form.instance), "lines": time_lines(form.instance)}
        )
        return render(request, "console/policies/previewed.html", context)


_IRRELEVANT = ("name", "description")


def _label(form: Any, name: str) -> str:
    """Return the label of a field; empty for an error about several."""
    return str(form[name].label) if name in form.fields else ""
