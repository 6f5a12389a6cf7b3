"""Signing secrets for an administrator: valid ones with their ends, and an old one ended early."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from subscriptions.models import ConfigurationChange, Mode, SigningSecret, Subscription
from tests.support import factories

ROOT = "/admin/subscriptions/subscription"


@pytest.fixture
def subscription(db: None) -> Subscription:
    """A subscription with a secret that ends tomorrow, the newest one, and one that has ended."""
    row = factories.subscription("orders", subscriber=factories.subscriber("crm"))
    now = timezone.now()
    SigningSecret.objects.filter(subscription=row).update(expires_at=now + timedelta(days=1))
    SigningSecret.objects.create(subscription=row, expires_at=now - timedelta(days=1))
    SigningSecret.objects.create(subscription=row)
    return row


def of(subscription: Subscription) -> list[SigningSecret]:
    """Return the newest, the ended one, and the old one."""
    return list(SigningSecret.objects.filter(subscription=subscription).order_by("-pk"))


def end(client: Client, secret: SigningSecret, *, of: Subscription | None = None) -> str:
    subscription_id = of.pk if of else secret.subscription_id
    return client.post(f"{ROOT}/{subscription_id}/secrets/{secret.pk}/end/", follow=True).text


def test_the_page_shows_valid_secrets_masked(ann: Client, subscription: Subscription) -> None:
    newest, ended, old = of(subscription)
    page = ann.get(f"{ROOT}/{subscription.pk}/").text
    for secret in (newest, old):
        assert f"{secret.secret[:9]}•••" in page
        assert secret.secret[:12] not in page
    assert ended.secret[:9] not in page
    assert f"secrets/{old.pk}/end/" in page
    assert f"secrets/{newest.pk}/end/" not in page


def test_readers_cannot_distinguish_secrets(reader: Client, subscription: Subscription) -> None:
    page = reader.get(f"{ROOT}/{subscription.pk}/").text
    assert ">rotated<" in page
    for secret in of(subscription):
        assert secret.secret[:9] not in page
        assert f"secrets/{secret.pk}/end/" not in page


def test_a_secret_that_cannot_be_deciphered_hides_no_other(
    ann: Client, subscription: Subscription
) -> None:
    newest, _, old = of(subscription)
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE subscriptions_signingsecret SET secret = 'broken' WHERE id = %s", [old.pk]
        )
    page = ann.get(f"{ROOT}/{subscription.pk}/").text
    assert "cannot be deciphered" in page
    assert f"{newest.secret[:9]}•••" in page


def test_an_old_one_is_ended_early_and_the_senders_notice(
    ann: Client, subscription: Subscription
) -> None:
    newest, _, old = of(subscription)
    assert "no longer signs requests" in end(ann, old)
    assert list(
        SigningSecret.objects.filter(subscription=subscription).valid(now=timezone.now())
    ) == [newest]
    assert Subscription.objects.get(pk=subscription.pk).updated_at > subscription.updated_at
    change = ConfigurationChange.objects.get()
    assert (change.actor, change.action) == ("ann", "ended")
    assert change.before is not None
    assert set(change.before) == {"expires_at"}


def test_the_newest_cannot_be_ended(ann: Client, subscription: Subscription) -> None:
    newest = of(subscription)[0]
    assert "Rotate it to replace it" in end(ann, newest)
    newest.refresh_from_db()
    assert newest.expires_at is None
    assert not ConfigurationChange.objects.exists()


def test_an_ended_secret_stays_ended(ann: Client, subscription: Subscription) -> None:
    ended = of(subscription)[1]
    assert "was already revoked" in end(ann, ended)
    assert not ConfigurationChange.objects.exists()


def test_a_secret_is_found_at_its_own_subscription_only(
    ann: Client, subscription: Subscription
) -> None:
    old = of(subscription)[2]
    answer = ann.post(f"{ROOT}/{factories.subscription().pk}/secrets/{old.pk}/end/")
    assert answer.status_code == 404


def test_rotating_needs_the_right_to_change_subscriptions(
    reader: Client, subscription: Subscription
) -> None:
    old = of(subscription)[2]
    assert reader.post(f"{ROOT}/{subscription.pk}/secrets/{old.pk}/end/").status_code == 403


def test_a_mailbox_has_no_secrets(ann: Client) -> None:
    pulled = factories.subscription(mode=Mode.PULL)
    assert "secrets-title" not in ann.get(f"{ROOT}/{pulled.pk}/").text
