"""Rights with more than one permission."""

from urllib.parse import urlencode

from django.contrib.auth.models import AnonymousUser, User
from django.urls import reverse

Person = User | AnonymousUser


def may_toggle(user: Person) -> bool:
    """Return whether the user may change the status of subscriptions and subscribers.

    There is a permission for it; the permission to change subscriptions includes it.
    """
    rights = ("subscriptions.toggle_subscription", "subscriptions.change_subscription")
    return any(user.has_perm(right) for right in rights)


def may_hold_all(user: Person) -> bool:
    """Return whether the user may hold all sending of the installation: administrators only."""
    return user.has_perm("subscriptions.change_installation")


def may_make_reports(user: Person) -> bool:
    return user.is_staff and user.has_perm("delivery.make_report")


def is_rescuer(user: Person) -> bool:
    """Return whether the user may act on deliveries and lanes in trouble."""
    rights = ("delivery.change_delivery", "delivery.change_lane")
    return any(user.has_perm(right) for right in rights)


def may_publish(user: Person) -> bool:
    """Return whether the user may publish messages, in any publisher's name."""
    return user.is_staff and user.has_perm("delivery.add_message")


def may_create_example(user: Person) -> bool:
    """Return whether the user may create each part of the example of the first steps."""
    kinds = ("eventtype", "publisher", "subscriber", "subscription")
    rights = [f"subscriptions.add_{kind}" for kind in kinds]
    return user.is_staff and user.has_perms([*rights, "delivery.add_builtinreceiver"])


def is_developer(user: Person) -> bool:
    """Return whether the user sees messages of given publishers, but not of all."""
    own, every = "delivery.view_ownmessage", "delivery.view_message"
    return user.is_staff and user.has_perm(own) and not user.has_perm(every)


def may_see_overview(user: Person) -> bool:
    """Return whether the user may see the overview.

    It shows deliveries, lanes and subscriptions.
    """
    rights = ("delivery.view_delivery", "delivery.view_lane", "subscriptions.view_subscription")
    return user.is_staff and all(user.has_perm(right) for right in rights)


def may_configure(user: Person) -> bool:
    """Return whether the user may apply a whole configuration.

    This takes the permissions to add, change and delete every kind of object in one.
    """
    kinds = ("eventtype", "policy", "subscriber", "publisher", "subscription")
    return user.is_staff and user.has_perms(
        [f"subscriptions.{verb}_{kind}" for kind in kinds for verb in ("add", "change", "delete")]
    )


def reads_journal(user: Person) -> bool:
    return user.has_perm("delivery.view_journalentry")


def journal_url(user: Person, **filters: object) -> str:
    """Return the address of the journal with these filters; empty for users who may not read it."""
    if not reads_journal(user):
        return ""
    return f"{reverse('admin:delivery_journalentry_changelist')}?{urlencode(filters)}"
