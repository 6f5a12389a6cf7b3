"""The actions of a policy as a matrix: a row for each outcome, a column for each action."""

from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from subscriptions.models import Action, Policy

_COLUMNS = {
    Action.BLOCK: "Block",
    Action.SKIP: "Skip",
    Action.REJECT: "Reject",
    Action.UNSUPPORTED: "Unsupported",
    Action.RETRY_LANE: "Retry lane",
    Action.IN_PLACE: "Retry in place",
}


class ActionRow(forms.RadioSelect):
    """A row: radio buttons in the columns of the outcome's possible actions."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        context = self.get_context(name, value, attrs)
        shown: dict[str, Any] = context["widget"]
        options = [option for _, group, _ in shown["optgroups"] for option in group]
        for option in options:
            option["column"] = _COLUMNS[Action(option["value"])]
            option["title"] = Action(option["value"]).label
        return render_to_string(
            "console/policies/action_row.html", {"widget": shown, "options": options}
        )


def action_field(name: str) -> forms.ChoiceField:
    """Return the row of an outcome; only redirects can be unsupported."""
    field: Any = Policy._meta.get_field(name)
    choices = [
        (action.value, action.label)
        for action in Action
        if action != Action.UNSUPPORTED or name == "on_redirect"
    ]
    return forms.ChoiceField(
        label=_ROWS[name],
        choices=choices,
        help_text=str(field.help_text),
        widget=ActionRow,
        initial=field.default,
    )


_ROWS = {
    "on_unreachable": "Unreachable",
    "on_unavailable": "503",
    "on_server_error": "Other 5xx",
    "on_rate_limited": "429",
    "on_client_error": "Other 4xx",
    "on_redirect": "3xx",
}
