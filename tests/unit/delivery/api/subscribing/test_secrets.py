"""Rotating a signing secret: the old ones stay valid for a while."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from subscriptions.models import SigningSecret, Subscription
from tests.support import factories
from tests.unit.delivery.api.client import Caller, created, refused


@pytest.fixture
def subscription(db: None) -> Subscription:
    return factories.subscription()


@pytest.mark.parametrize(
    ("body", "overlap"),
    [
        (None, timedelta(hours=24)),
        ({}, timedelta(hours=24)),
        ({"overlap_hours": 2}, timedelta(hours=2)),
        ({"overlap_seconds": 90}, timedelta(seconds=90)),
        ({"overlap_seconds": 0}, timedelta(0)),
    ],
)
def test_the_old_secret_signs_together_with_the_new_one_during_the_overlap(
    manager: Caller, subscription: Subscription, body: object, overlap: timedelta
) -> None:
    old = SigningSecret.objects.get()
    made = created(manager.post(f"subscriptions/{subscription.pk}/secrets", body))
    old.refresh_from_db()
    assert old.expires_at is not None
    assert abs(old.expires_at - timezone.now() - overlap) < timedelta(seconds=10)
    assert datetime.fromisoformat(made["previous_expire_at"]) == old.expires_at
    new = SigningSecret.objects.exclude(pk=old.pk).get()
    assert (new.secret, new.expires_at) == (made["secret"], None)


def test_the_senders_see_that_something_changed(
    manager: Caller, subscription: Subscription
) -> None:
    created(manager.post(f"subscriptions/{subscription.pk}/secrets"))
    assert Subscription.objects.get().updated_at > subscription.updated_at


def test_an_overlap_never_prolongs_a_secret(manager: Caller, subscription: Subscription) -> None:
    manager.post(f"subscriptions/{subscription.pk}/secrets", {"overlap_hours": 1})
    manager.post(f"subscriptions/{subscription.pk}/secrets", {"overlap_hours": 48})
    oldest = SigningSecret.objects.order_by("id").first()
    assert oldest is not None
    assert oldest.expires_at is not None
    assert oldest.expires_at < timezone.now() + timedelta(hours=2)


def test_secrets_do_not_pile_up(manager: Caller, subscription: Subscription) -> None:
    path = f"subscriptions/{subscription.pk}/secrets"
    for _ in range(4):
        created(manager.post(path))
    refused(manager.post(path), 409, "too-many-secrets")
    created(manager.post(path, {"overlap_seconds": 0}))
    assert SigningSecret.objects.valid(now=timezone.now()).count() == 1


@pytest.mark.parametrize(
    "body",
    [
        {"overlap_hours": -1},
        {"overlap_hours": 1.5},
        {"overlap_hours": "2"},
        {"overlap_hours": 2**62},
        {"overlap_seconds": True},
        {"overlap_hours": 1, "overlap_seconds": 1},
        {"secret": "whsec_x"},
        [],
    ],
)
def test_a_wrong_overlap_is_refused(
    manager: Caller, subscription: Subscription, body: object
) -> None:
    refused(manager.post(f"subscriptions/{subscription.pk}/secrets", body), 400)
    assert SigningSecret.objects.count() == 1


def test_a_subscription_that_is_not_there_is_404(manager: Caller) -> None:
    refused(manager.post("subscriptions/1/secrets"), 404)
