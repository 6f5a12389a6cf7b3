"""What somebody may see and do, where it is more than one right."""

from django.contrib.auth.models import AnonymousUser, User

Person = User | AnonymousUser


def may_toggle(user: Person) -> bool:
    """Whether somebody may make subscriptions and subscribers ACTIVE, HELD and INACTIVE: a right of its own, and part of changing them."""
    rights = ("subscriptions.toggle_subscription", "subscriptions.change_subscription")
    return any(user.has_perm(right) for right in rights)


def may_hold_all(user: Person) -> bool:
    """Whether somebody may hold all sending of the installation: administrators only."""
    return user.has_perm("subscriptions.change_installation")


def may_see_overview(user: Person) -> bool:
    """Whether somebody may see how it goes: the overview tells of deliveries, lanes and subscriptions."""
    rights = ("delivery.view_delivery", "delivery.view_lane", "subscriptions.view_subscription")
    return user.is_staff and all(user.has_perm(right) for right in rights)


def may_configure(user: Person) -> bool:
    """Whether somebody may apply a whole configuration: whoever may add, change and delete all that stands in one."""
    kinds = ("eventtype", "policy", "subscriber", "publisher", "subscription")
    return user.is_staff and user.has_perms(
        [f"subscriptions.{what}_{kind}" for kind in kinds for what in ("add", "change", "delete")]
    )
