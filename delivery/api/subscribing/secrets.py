"""Rotation of a subscription's signing secret: the old secrets sign alongside it for a while."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.authentication import actor_of
from delivery.api.base.strict import Strict, WholeNumber
from delivery.api.base.views import ApiView
from delivery.incoming.problems import Problem
from subscriptions import changes
from subscriptions.checks.subscription import UNSIGNED
from subscriptions.models import Mode, SigningSecret, Subscription
from subscriptions.rotation import DEFAULT_OVERLAP, MAX_VALID, TooManySecretsError, rotate_secret

MAX_OVERLAP = timedelta(days=30)


class RotationSerializer(Strict):
    """How long the old secrets go on signing: 24 hours by default, in either unit."""

    rules = {"maxProperties": 1}
    overlap_hours = WholeNumber(
        required=False, min_value=0, max_value=MAX_OVERLAP // timedelta(hours=1)
    )
    overlap_seconds = WholeNumber(
        required=False, min_value=0, max_value=MAX_OVERLAP // timedelta(seconds=1)
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs) > 1:
            raise serializers.ValidationError("Give overlap_hours or overlap_seconds, not both.")
        return attrs

    @property
    def overlap(self) -> timedelta:
        durations = {
            name.removeprefix("overlap_"): value for name, value in self.validated_data.items()
        }
        return timedelta(**durations) if durations else DEFAULT_OVERLAP


class RotatedSerializer(serializers.Serializer[Any]):
    """The new secret, which is shown only once."""

    secret = serializers.CharField()
    previous_expire_at = serializers.DateTimeField(
        help_text="When the secrets before it stop signing."
    )


class SecretViews(ApiView):
    @extend_schema(
        request=RotationSerializer,
        responses={201: RotatedSerializer},
        operation_id="subscriptions_rotate_secret",
    )
    def post(self, request: Request, pk: str) -> Response:
        """Create a new signing secret; the old secrets stay valid for a while."""
        rotation = RotationSerializer(data=request.data)
        rotation.is_valid(raise_exception=True)
        now = timezone.now()
        with transaction.atomic():
            subscription = get_object_or_404(
                Subscription.objects.select_for_update(no_key=True), pk=pk
            )
            if subscription.mode == Mode.PULL:
                raise Problem(409, "unsigned", UNSIGNED)
            secret = _rotate(subscription, now=now, overlap=rotation.overlap)
            changes.record_change(
                actor=actor_of(request),
                action="rotated",
                instance=secret,
                before=None,
                after=changes.snapshot(secret),
            )
        return Response(
            {"secret": secret.secret, "previous_expire_at": now + rotation.overlap}, status=201
        )


def _rotate(subscription: Subscription, *, now: datetime, overlap: timedelta) -> SigningSecret:
    try:
        return rotate_secret(subscription, now=now, overlap=overlap)
    except TooManySecretsError:
        raise Problem(
            409,
            "too-many-secrets",
            f"{MAX_VALID} secrets are valid already; wait, or give overlap_seconds: 0.",
        ) from None
