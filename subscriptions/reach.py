"""Whose messages and deliveries a caller may read: everybody's, or those of given publishers.

This module has the limit of each caller; `delivery.models.reach` restricts the rows, and
`subscriptions.matching.typed_names` the names. Nothing else may decide any of these.
"""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Model

from subscriptions.models import ApiKey, Publisher, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The messages and deliveries of some publishers, and the deliveries to some subscribers.

    A subscriber does not reach messages: it may have received less than was published, by forwarded
    headers and scripts.
    """

    publishers: frozenset[int] = frozenset()
    subscribers: frozenset[int] = frozenset()


def reach_of_key(key: ApiKey) -> Reach | None:
    """Return the reach of a key; None means everything.

    A publish key reaches the messages of the publisher. A fetch key reads the mailbox only.
    """
    if key.scope in (Scope.READ, Scope.MANAGE) and not is_limited(key):
        return None
    if key.scope == Scope.FETCH:
        return Reach()
    return Reach(
        publishers=frozenset(filter(None, [key.publisher_id])),
        subscribers=frozenset(filter(None, [key.subscriber_id])),
    )


def is_limited(key: ApiKey) -> bool:
    """Return whether the key reads, but only for a publisher or subscriber."""
    return key.scope == Scope.READ and bool(key.publisher_id or key.subscriber_id)


def reach_of_names(user: User | AnonymousUser, model: type[Model]) -> Reach | None:
    """Return None if the user may view all objects of the model, whose names may be suggested."""
    may_view = user.has_perm(f"{model._meta.app_label}.view_{model._meta.model_name}")
    return None if may_view else Reach()


def reach_of_user(user: User | AnonymousUser) -> Reach:
    """Return the reach of a user as a developer of publishers, without other rights."""
    ids = Publisher.objects.filter(developers=user.pk).values_list("pk", flat=True)
    return Reach(publishers=frozenset(ids) if user.pk else frozenset())
