"""Comparison of rights: nobody grants rights that they lack, or takes over an account with more."""

from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Q, QuerySet

from delivery.console.people.role_words import OF_OWN, OUR_APPS
from subscriptions.models import Installation, Scope
from subscriptions.reach import reach_of_user


def with_a_page() -> QuerySet[Permission]:
    """Return the rights for the installation and for objects with a page, sorted by kind.

    Others have no effect.
    """
    pages = [model._meta.model_name for model in admin.site._registry]
    pages.append(Installation._meta.model_name)
    rights = Permission.objects.filter(
        content_type__app_label__in=OUR_APPS, content_type__model__in=pages
    )
    return rights.order_by("content_type__app_label", "content_type__model", "codename")


def rights_of(user: User) -> QuerySet[Permission]:
    """Return the rights of a user, even of a user who may not sign in at the moment."""
    if user.is_superuser:
        return with_a_page()
    own = Permission.objects.filter(Q(group__user=user) | Q(user=user))
    return with_a_page().filter(pk__in=own.values("pk"))


def roles_within(user: User) -> QuerySet[Group]:
    """Return the roles whose rights the user has as well."""
    return Group.objects.exclude(permissions__in=_beyond(user))


def sees_all_messages(user: User) -> bool:
    """Return whether the user sees the messages of all publishers, with their payloads."""
    return user.has_perms(["delivery.view_message", "delivery.view_payload"])


def has_more(row: User | Group, *, than: User) -> bool:
    """Return whether a person or a role has a right missing in the other."""
    if than.is_superuser:
        return False
    if isinstance(row, User):
        if row.is_superuser or _overlap(rights_of(row), _beyond(than)):
            return True
        return not sees_all_messages(than) and not (
            reach_of_user(row).publishers <= reach_of_user(than).publishers
        )
    return _overlap(with_a_page().filter(group=row), _beyond(than))


def scopes_within(user: User) -> list[Scope]:
    """Return the scopes of keys without a right beyond the user's.

    A read key shows every message and delivery with the payload; a manage key configures
    everything, and creates other keys.
    """
    beyond = _beyond(user)
    scopes = [Scope.PUBLISH, Scope.FETCH]
    if not beyond.filter(codename__startswith="view_").exclude(codename__in=OF_OWN).exists():
        scopes.append(Scope.READ)
    if not beyond.exists():
        scopes.append(Scope.MANAGE)
    return scopes


def _beyond(user: User) -> QuerySet[Permission]:
    own = OF_OWN if sees_all_messages(user) else ()
    return with_a_page().exclude(codename__in=own).exclude(pk__in=rights_of(user).values("pk"))


def _overlap(permissions: QuerySet[Permission], others: QuerySet[Permission]) -> bool:
    return permissions.filter(pk__in=others.values("pk")).exists()
