"""Encryption at rest: the database's content, and the rotation of keys."""

from dataclasses import replace

import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django import Settings

from subscriptions.models import SigningSecret, Subscription
from subscriptions.values.encryption import UndecipherableError
from tests.support import factories

AUTH = {"type": "bearer", "token": "very-secret-token"}


def use_keys(settings: Settings, *keys: str) -> None:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, encryption_keys=list(keys))


def stored() -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(auth || headers || secret, ' ') FROM subscriptions_subscription s "
            "JOIN subscriptions_signingsecret ON subscription_id = s.id"
        )
        return str(cursor.fetchone())


def test_the_database_never_sees_a_secret(db: None) -> None:
    row = factories.subscription(auth=AUTH, headers={"X-Api-Key": "another-secret"})
    secret = SigningSecret.objects.get(subscription=row).secret
    assert not any(word in stored() for word in ("very-secret-token", "another-secret", secret))
    row.refresh_from_db()
    assert (row.auth, row.headers) == (AUTH, {"X-Api-Key": "another-secret"})


def test_a_new_key_in_front_reads_the_old_and_after_rotation_the_old_is_not_needed(
    db: None, settings: Settings
) -> None:
    old = settings.ENVIRONMENT.encryption_keys[0]
    row = factories.subscription(auth=AUTH)
    use_keys(settings, "new", old)
    assert Subscription.objects.get(pk=row.pk).auth == AUTH
    call_command("rotate_keys")
    use_keys(settings, "new")
    assert Subscription.objects.get(pk=row.pk).auth == AUTH


def test_a_secret_without_its_key_names_the_next_step(db: None, settings: Settings) -> None:
    factories.subscription(auth=AUTH)
    use_keys(settings, "another")
    with pytest.raises(UndecipherableError, match="INTURN_ENCRYPTION_KEYS"):
        Subscription.objects.get()
