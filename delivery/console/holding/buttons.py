"""Buttons to change the status of a subscription or subscriber, for all pages."""

from collections.abc import Sequence

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from delivery.console.holding.cost import UNKNOWN_COST
from delivery.standing.bounded_counts import Bounded
from subscriptions.models import Subscriber, Subscription, SubscriptionStatus

Owner = Subscription | Subscriber

RECORDED = "Messages published meanwhile match and are recorded, and never sent, also not later."
KEPT = "Messages published meanwhile are stored, and sent when it is ACTIVE again."


def toggle_buttons(owner: Owner, *, backlog: Bounded | None, cost: str) -> SafeString:
    """Return a button for every other status.

    There are two for ACTIVE when there is a backlog to deliver or cancel.
    """
    buttons = [*_activating(owner, backlog)] if owner.status != SubscriptionStatus.ACTIVE else []
    if owner.status != SubscriptionStatus.HELD:
        buttons.append(_button(owner, "hold", [], "Hold", title=KEPT))
    if isinstance(owner, Subscription) and owner.status != SubscriptionStatus.SHADOW:
        buttons.append(_button(owner, "shadow", [], "Shadow", title=RECORDED))
    if owner.status != SubscriptionStatus.INACTIVE:
        buttons.append(_button(owner, "deactivate", [], "Deactivate", title=cost))
    return _cell(buttons)


def row_buttons(owner: Owner, *, backlog: Bounded | None, cost: str) -> SafeString:
    """Return the buttons of a list's row, few enough for a line.

    The other statuses are on the owner's page, and among the actions for chosen rows.
    """
    return _cell(_stopping_or_releasing(owner, backlog, cost))


def stop_buttons(owner: Owner) -> SafeString:
    """Return buttons to stop the deliveries, or to release them if they are stopped."""
    return _joined(_stopping_or_releasing(owner, None, UNKNOWN_COST))


def _stopping_or_releasing(owner: Owner, backlog: Bounded | None, cost: str) -> list[SafeString]:
    if owner.status != SubscriptionStatus.ACTIVE:
        return _activating(owner, backlog)
    return [
        _button(owner, "hold", [], "Hold", title=KEPT),
        _button(owner, "deactivate", [], "Deactivate", title=cost),
    ]


def _cell(buttons: Sequence[SafeString]) -> SafeString:
    return format_html('<span class="inturn-cell-buttons">{}</span>', _joined(buttons))


def _joined(buttons: Sequence[SafeString]) -> SafeString:
    return format_html_join("", "{}", ((button,) for button in buttons))


def _activating(owner: Owner, backlog: Bounded | None) -> list[SafeString]:
    if not backlog:
        return [_button(owner, "activate", ["deliver"], "Activate")]
    return [
        _button(owner, "activate", ["deliver"], f"Activate and deliver {backlog}"),
        _button(owner, "activate", ["cancel"], f"Activate and cancel {backlog}"),
    ]


def _button(
    owner: Owner, verb: str, arguments: list[str], text: str, *, title: str = ""
) -> SafeString:
    return format_html(
        (
            '<button type="submit" class="inturn-button" form="console-post" '
            'formaction="{}"{}{}>{}</button>'
        ),
        reverse(
            f"admin:subscriptions_{owner._meta.model_name}_{verb}", args=[owner.pk, *arguments]
        ),
        format_html(
            ' data-confirm="{}"',
            f"{text}? CANCELLED deliveries are sent only if you resubmit them.",
        )
        if "cancel" in arguments
        else "",
        format_html(' title="{}"', title) if title else "",
        text,
    )
