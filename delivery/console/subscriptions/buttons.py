"""The buttons that make a subscription ACTIVE or INACTIVE, wherever it is shown."""

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery.console.shared.counting import Bounded

# Said wherever somebody may make a subscription INACTIVE.
NOT_KEPT = "Messages published while it is INACTIVE will not be kept for it."


def toggle_buttons(subscription_id: int, *, is_active: bool, backlog: Bounded | None) -> SafeString:
    """Return one button, or two when there is a backlog to decide about."""
    if is_active:
        return _button(subscription_id, "deactivate", [], "Make INACTIVE", title=NOT_KEPT)
    if not backlog:
        return _button(subscription_id, "activate", ["deliver"], "Make ACTIVE")
    return format_html(
        '<span class="inturn-cell-buttons">{}{}</span>',
        _button(subscription_id, "activate", ["deliver"], f"Make ACTIVE, deliver {backlog}"),
        _button(subscription_id, "activate", ["cancel"], f"Make ACTIVE, cancel {backlog}"),
    )


def _button(
    subscription_id: int, verb: str, arguments: list[str], text: str, *, title: str = ""
) -> SafeString:
    return format_html(
        '<button type="submit" class="inturn-button" form="console-post" formaction="{}"{}{}>{}</button>',
        reverse(f"admin:subscriptions_subscription_{verb}", args=[subscription_id, *arguments]),
        format_html(' data-confirm="{}"', f"{text}? What is CANCELLED is not sent, unless it is resubmitted.")
        if "cancel" in arguments
        else "",
        format_html(' title="{}"', title) if title else "",
        text,
    )
