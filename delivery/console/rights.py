"""What somebody may see and do, where it is more than one right."""

from django.contrib.auth.models import AnonymousUser, User

Person = User | AnonymousUser


def may_toggle(user: Person) -> bool:
    """Whether somebody may make subscriptions ACTIVE and INACTIVE: a right of its own, and part of changing them."""
    rights = ("subscriptions.toggle_subscription", "subscriptions.change_subscription")
    return any(user.has_perm(right) for right in rights)


def may_see_overview(user: Person) -> bool:
    """Whether somebody may see how it goes: the overview tells of deliveries, lanes and subscriptions."""
    rights = ("delivery.view_delivery", "delivery.view_lane", "subscriptions.view_subscription")
    return user.is_staff and all(user.has_perm(right) for right in rights)
