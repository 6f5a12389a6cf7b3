"""Rotation of a signing secret: a new secret is added; the old sign as well for a while."""

from datetime import datetime, timedelta

from django.db.models import Q

from subscriptions.models import SigningSecret, Subscription

DEFAULT_OVERLAP = timedelta(hours=24)
# Every valid secret adds a signature to every request.
MAX_VALID = 5


class TooManySecretsError(Exception):
    """MAX_VALID secrets are valid already; an older secret has to end first."""


def rotate_secret(
    subscription: Subscription, *, now: datetime, overlap: timedelta
) -> SigningSecret:
    """Add a secret, end the others after `overlap`; call it with the subscription's row locked.

    Raises TooManySecretsError if too many would be valid at once.
    """
    valid = SigningSecret.objects.filter(subscription=subscription).valid(now=now)
    if overlap and valid.count() >= MAX_VALID:
        raise TooManySecretsError
    valid.filter(Q(expires_at=None) | Q(expires_at__gt=now + overlap)).update(
        expires_at=now + overlap
    )
    subscription.save(update_fields=["updated_at"])
    return SigningSecret.objects.create(subscription=subscription)


class OnlySecretError(Exception):
    """The secret is the newest, which signs from now on; rotate first."""


def end_old_secret(secret: SigningSecret, *, now: datetime) -> bool:
    """End an old secret before the overlap is over; call it with the subscription's row locked.

    Returns False if it had ended already. Raises OnlySecretError for the newest secret, without
    which requests would be unsigned.
    """
    of_same = SigningSecret.objects.filter(subscription=secret.subscription_id)
    if not of_same.filter(pk__gt=secret.pk).exists():
        raise OnlySecretError
    if not of_same.valid(now=now).filter(pk=secret.pk).update(expires_at=now):
        return False
    secret.subscription.save(update_fields=["updated_at"])
    secret.refresh_from_db()
    return True
