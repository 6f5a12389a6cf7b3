"""The signing secrets of a subscription in the console: the valid ones, rotation, and early end."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.db.models import TextField
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from delivery.console.shared.base import actor_of
from delivery.console.shared.one_time_secret import show_once
from subscriptions.changes import MASKED, record_change, snapshot
from subscriptions.checks.subscription import UNSIGNED
from subscriptions.models import Mode, SigningSecret, Subscription
from subscriptions.rotation import (
    DEFAULT_OVERLAP,
    MAX_VALID,
    OnlySecretError,
    TooManySecretsError,
    end_old_secret,
    rotate_secret,
)
from subscriptions.values.encryption import UndecipherableError, decrypt

VERIFYING = "The receiver verifies webhook-signature with it, as Standard Webhooks describes."
# Enough to recognize the secret in the receiver's configuration, useless to anybody else: the rest
# has 238 bits.
_SHOWN_CHARACTERS = len("whsec_") + 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSecret:
    """A valid secret; the newest has no `expires_at`, and stays."""

    id: int
    masked: str
    created_at: datetime
    expires_at: datetime | None


def valid_secrets(
    subscription_id: int, *, now: datetime, shows_characters: bool
) -> list[ShownSecret]:
    """Return the secrets that sign now, the newest first."""
    valid = SigningSecret.objects.filter(subscription=subscription_id).valid(now=now)
    # Read in stored form, because a secret that cannot be decrypted must not hide the others.
    rows = valid.annotate(stored=Cast("secret", TextField()))
    return [
        ShownSecret(
            id=pk,
            masked=_masked(stored) if shows_characters else MASKED,
            created_at=created_at,
            expires_at=expires_at,
        )
        for pk, stored, created_at, expires_at in rows.values_list(
            "pk", "stored", "created_at", "expires_at"
        )
    ]


def _masked(stored: str) -> str:
    try:
        secret: str = decrypt(stored)
    except UndecipherableError:
        return "cannot be deciphered"
    return f"{secret[:_SHOWN_CHARACTERS]}{MASKED}"


class SecretsOfSubscription:
    """Mix into the ModelAdmin of subscriptions."""

    def get_urls(self) -> list[URLPattern]:
        def posted(view: Any) -> Any:
            return self.admin_site.admin_view(require_POST(view))  # type: ignore[attr-defined]

        name = "subscriptions_subscription"
        return [
            path("<int:object_id>/rotate/", posted(self.rotate), name=f"{name}_rotate"),
            path(
                "<int:object_id>/secrets/<int:secret_id>/end/",
                posted(self.end_secret),
                name=f"{name}_end_secret",
            ),
            *super().get_urls(),  # type: ignore[misc]
        ]

    def rotate(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Create a new secret; the old secrets sign alongside it for a day."""
        subscription: Subscription = self.permitted(  # type: ignore[attr-defined]
            request, object_id
        )
        if subscription.mode == Mode.PULL:
            return self._back(request, UNSIGNED, level=messages.WARNING)
        now = timezone.now()
        try:
            made = _rotated(subscription, now=now, actor=actor_of(request))
        except TooManySecretsError:
            text = (
                f"{MAX_VALID} secrets of {subscription} are active already; "
                "revoke an old one first."
            )
            return self._back(request, text, level=messages.ERROR)
        until = f"{now + DEFAULT_OVERLAP:%Y-%m-%d %H:%M} UTC"
        advice = (
            f"{VERIFYING} Until {until} requests are also signed with the old one; revoke it "
            "earlier on the subscription's page."
        )
        title = f"New signing secret of {subscription}"
        return show_once(
            request, made.secret, what=title, advice=advice, next_url=page_of(subscription.pk)
        )

    def end_secret(self, request: HttpRequest, object_id: int, secret_id: int) -> HttpResponse:
        """End an old secret before the overlap is over."""
        subscription: Subscription = self.permitted(  # type: ignore[attr-defined]
            request, object_id
        )
        try:
            has_ended = _ended(subscription, secret_id, now=timezone.now(), actor=actor_of(request))
        except OnlySecretError:
            text = "Not revoked: it is the newest secret. Rotate it to replace it."
            return self._back(request, text, level=messages.ERROR)
        if not has_ended:
            return self._back(request, "This secret was already revoked.", level=messages.WARNING)
        return self._back(request, f"The old secret no longer signs requests of {subscription}.")

    def _back(
        self, request: HttpRequest, text: str, *, level: int = messages.SUCCESS
    ) -> HttpResponse:
        page: HttpResponse = self.back(request, text, level=level)  # type: ignore[attr-defined]
        return page


def page_of(subscription_id: int) -> str:
    return reverse("admin:subscriptions_subscription_status", args=[subscription_id])


@transaction.atomic
def _rotated(subscription: Subscription, *, now: datetime, actor: str) -> SigningSecret:
    made = rotate_secret(_locked(subscription), now=now, overlap=DEFAULT_OVERLAP)
    record_change(actor=actor, action="rotated", instance=made, before=None, after=snapshot(made))
    return made


@transaction.atomic
def _ended(subscription: Subscription, secret_id: int, *, now: datetime, actor: str) -> bool:
    locked = _locked(subscription)
    secret = get_object_or_404(SigningSecret.objects.filter(subscription=locked), pk=secret_id)
    before = snapshot(secret)
    if not end_old_secret(secret, now=now):
        return False
    record_change(
        actor=actor, action="ended", instance=secret, before=before, after=snapshot(secret)
    )
    return True


def _locked(subscription: Subscription) -> Subscription:
    return Subscription.objects.select_for_update(of=("self",), no_key=True).get(pk=subscription.pk)
