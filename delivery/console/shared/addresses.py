"""Addresses of receivers on pages: whole only for people who may change them.

Every page, list and search of the console shows an endpoint or URL by this module, or by the
template tag `receiver_address`.
"""

from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import CharField, F, Func, QuerySet

from subscriptions.values.shown_addresses import masked_addresses


def sees_addresses(user: User | AnonymousUser) -> bool:
    """Return whether the user may change endpoints, and so sees all of them."""
    return user.has_perm("subscriptions.change_subscription")


def address_for(user: User | AnonymousUser, text: str) -> str:
    """Return an address, or a text with addresses, as this user may see it."""
    return text if sees_addresses(user) else masked_addresses(text)


def with_shown_addresses(
    rows: QuerySet[Any], column: str, *, user: User | AnonymousUser
) -> QuerySet[Any]:
    """Add `shown_address`, for searching: a search in a secret would reveal it bit by bit."""
    shown = Func(F(column), function="subscriptions_masked_url", output_field=CharField())
    annotated: QuerySet[Any] = rows.annotate(
        shown_address=F(column) if sees_addresses(user) else shown
    )
    return annotated
