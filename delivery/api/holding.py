"""Status changes of subscriptions, subscribers and all sending, and their effect on the backlog."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from delivery.api.base.authentication import actor_of
from delivery.api.base.strict import Moment, Number, Strict
from delivery.api.base.views import MANAGE, READ, ApiView
from delivery.support import held_objects, toggle
from delivery.support.toggle import Release
from subscriptions.models import Installation, Sending, Subscriber, Subscription, SubscriptionStatus
from subscriptions.models.holding import FASTEST_RATE, SLOWEST_RATE

_ACTIVE, _HELD = SubscriptionStatus.ACTIVE.value, SubscriptionStatus.HELD.value
# The toggle records these, with the reason.
TOGGLED = frozenset({"status", "held_until", "catch_up_rate"})
# The names of these fields in a body.
TOGGLING = frozenset({"status", "until", "catch_up_rate", "backlog"})


class HoldingFields(serializers.Serializer[Any]):
    """The end of a hold."""

    until = Moment(
        source="held_until",
        required=False,
        allow_null=True,
        help_text="With HELD: when it is released by itself. Null: by a person.",
    )
    catch_up_rate = Number(
        required=False,
        allow_null=True,
        min_value=SLOWEST_RATE,
        max_value=FASTEST_RATE,
        help_text=(
            "Deliveries per second and subscriber from the backlog, once it is ACTIVE again. "
            "Null: as fast as possible. Given with HELD, or with ACTIVE."
        ),
    )


class BacklogField(serializers.ChoiceField):
    """With ACTIVE: whether to deliver or to cancel the backlog."""

    def __init__(self) -> None:
        super().__init__(["deliver", "cancel"], required=False, write_only=True)


def check_holding(values: Mapping[str, Any], *, now: datetime, status: str) -> None:
    """Raise ValidationError for fields that contradict the status, whose field is named `status`.

    Null is valid with every status, so an answer can be sent back.
    """
    wanted, until = values.get(status), values.get("held_until")
    wrong = {}
    if "backlog" in values and wanted != _ACTIVE:
        wrong["backlog"] = f"Give it together with {status}: ACTIVE."
    if until is not None and wanted != _HELD:
        wrong["until"] = f"Give it together with {status}: HELD."
    elif until is not None and until <= now:
        wrong["until"] = "That moment has passed; give one that is to come, or leave it out."
    if values.get("catch_up_rate") is not None and wanted not in (_ACTIVE, _HELD):
        wrong["catch_up_rate"] = f"Give it together with {status}: HELD, or with {status}: ACTIVE."
    if wrong:
        raise serializers.ValidationError(wrong)


def release_of(
    owner: Subscription | Subscriber | Installation, values: Mapping[str, Any]
) -> Release | None:
    """Return the end of the hold with the fields given; None if none of them is given."""
    if not {"held_until", "catch_up_rate"} & set(values):
        return None
    return Release(
        values.get("held_until", owner.held_until), values.get("catch_up_rate", owner.catch_up_rate)
    )


def apply_status(
    owner: Subscription | Subscriber, values: Mapping[str, Any], *, actor: str
) -> None:
    """Set the status if it is given, and the end of a hold if given."""
    match values.get("status"):
        case SubscriptionStatus.INACTIVE:
            toggle.deactivate_owner(owner, actor=actor)
        case SubscriptionStatus.SHADOW if isinstance(owner, Subscription):
            toggle.shadow_subscription(owner, actor=actor)
        case SubscriptionStatus.HELD:
            toggle.hold_owner(owner, actor=actor, release=release_of(owner, values))
        case None if owner.status == SubscriptionStatus.HELD and (
            release := release_of(owner, values)
        ):
            toggle.hold_owner(owner, actor=actor, release=release)
        case SubscriptionStatus.ACTIVE:
            backlog, rate = values.get("backlog", "deliver"), values.get("catch_up_rate")
            toggle.activate_owner(owner, actor=actor, backlog=backlog, catch_up_rate=rate)


def split_status(values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values for the serializer, and those for the toggle."""
    toggled = {name: values.pop(name) for name in (*TOGGLED, "backlog") if name in values}
    return values, toggled


class InstallationSerializer(HoldingFields, Strict):
    """All sending. HELD: messages are stored, and no subscriber is sent or can fetch any."""

    sending = serializers.ChoiceField(choices=Sending.choices, required=False)
    updated_at = serializers.DateTimeField(
        read_only=True, allow_null=True, help_text="Null: it was never changed."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        check_holding(attrs, now=timezone.now(), status="sending")
        return attrs


class InstallationViews(ApiView, GenericViewSet[Installation]):
    queryset = Installation.objects.all()
    serializer_class = InstallationSerializer
    pagination_class = None

    @property
    def required_scopes(self) -> frozenset[str]:  # type: ignore[override]
        return MANAGE if self.action == "partial_update" else READ

    @extend_schema(responses=InstallationSerializer)
    def retrieve(self, request: Request) -> Response:
        """Read whether all sending is HELD."""
        installation = Installation.objects.first() or Installation(pk=1)
        return Response(InstallationSerializer(installation).data)

    @extend_schema(request=InstallationSerializer, responses=InstallationSerializer)
    def partial_update(self, request: Request) -> Response:
        """Hold or release all sending of the installation.

        All machines follow within two seconds.
        """
        serializer = InstallationSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values, owner = serializer.validated_data, held_objects.installation()
        match values.get("sending", owner.sending):
            case Sending.HELD:
                toggle.hold_owner(owner, actor=actor_of(request), release=release_of(owner, values))
            case Sending.ACTIVE:
                toggle.activate_owner(
                    owner, actor=actor_of(request), catch_up_rate=values.get("catch_up_rate")
                )
        return Response(InstallationSerializer(held_objects.installation()).data)
