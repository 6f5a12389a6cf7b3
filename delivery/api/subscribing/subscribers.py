"""The resource `subscribers`: applications that receive messages, and their status."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.hashers import make_password
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.authentication import actor_of
from delivery.api.base.resource import Resource
from delivery.api.base.strict import StrictModel, Text, configured_fields
from delivery.api.holding import (
    TOGGLED,
    TOGGLING,
    BacklogField,
    HoldingFields,
    apply_status,
    check_holding,
    split_status,
)
from delivery.api.subscribing.subscription_fields import HeadersField
from subscriptions.checks import subscriber
from subscriptions.models import Subscriber, SubscriberStatus

_PASSWORD = Subscriber._meta.get_field("queue_password")


class SharedHeaders(HeadersField):
    """The headers of a subscriber, null in the row if there are none."""

    def get_attribute(self, instance: Subscriber) -> Any:
        return instance.headers or {}


class SubscriberFields(StrictModel):
    """The fields that a request and an entry of a document set alike."""

    headers = SharedHeaders(
        required=False, validators=Subscriber._meta.get_field("headers").validators
    )

    queue_password = Text(
        write_only=True,
        required=False,
        allow_blank=True,
        max_length=_PASSWORD.max_length,
        # A request without the field keeps the password, as does an empty field of the page.
        help_text=f"{_PASSWORD.help_text} Empty: there is none.",
    )

    class Meta:
        model = Subscriber
        fields = [
            *configured_fields(Subscriber),
            "queue_password",
            "headers",
            "created_at",
            "updated_at",
        ]

    def validate_queue_password(self, value: str) -> str:
        return make_password(value) if value else ""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(subscriber.completed(attrs, stored=self.instance))
        if "headers" in attrs:
            attrs["headers"] = attrs["headers"] or None
        return attrs

    def refusals(self, attrs: Mapping[str, Any]) -> Mapping[str, str]:
        return subscriber.refusals(attrs, stored=self.instance)


class SubscriberSerializer(HoldingFields, SubscriberFields):
    """A subscriber. `refill_level` is a fifth of `max_queued_to_send` unless given.

    SERIAL: one delivery at a time, in the order of publication. CONCURRENT: up to `max_in_flight`
    at a time, in no order, and a failed delivery delays no other. A change takes effect within two
    seconds, after the deliveries under way; deliveries postponed while the subscriber was
    CONCURRENT are sent in order once it is SERIAL. HELD: messages for it are stored, and wait.
    INACTIVE: no subscription of it matches, and waiting deliveries are held; each subscription
    keeps a status for afterwards.

    With `by_priority` a CONCURRENT subscriber gets messages with a higher `Priority` header first,
    a whole number from 9 to 0; any other value, and none, counts as 4. Every fourth delivery is the
    oldest, so none waits for ever.

    `headers` are sent with each delivery of the subscriptions; a subscription's own header of the
    same name is sent instead. Values are masked in answers.

    Clients of the old Event Queue find the mailbox by `queue_id`, or by the subscriber's name.
    """

    status = serializers.ChoiceField(choices=SubscriberStatus.choices, required=False)

    class Meta(SubscriberFields.Meta):
        fields = [*SubscriberFields.Meta.fields, "status", "until", "catch_up_rate"]

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        check_holding(attrs, now=timezone.now(), status="status")
        return super().validate(attrs)

    def create(self, validated_data: dict[str, Any]) -> Subscriber:
        written, toggled = split_status(validated_data)
        row: Subscriber = super().create(written)
        apply_status(row, toggled, actor=actor_of(self.context["request"]))
        return row


class SubscriberChangeSerializer(SubscriberSerializer):
    """A change of a subscriber.

    With `status: ACTIVE`, `backlog` decides whether waiting deliveries are delivered or cancelled.
    """

    backlog = BacklogField()

    class Meta(SubscriberSerializer.Meta):
        fields = [*SubscriberSerializer.Meta.fields, "backlog"]

    def update(self, instance: Subscriber, validated_data: dict[str, Any]) -> Subscriber:
        written, toggled = split_status(validated_data)
        super().update(instance, written)
        apply_status(instance, toggled, actor=actor_of(self.context["request"]))
        instance.refresh_from_db()
        return instance


class SubscriberViews(Resource):
    """Subscribers that can be made ACTIVE, HELD and INACTIVE."""

    queryset = Subscriber.objects.all()
    serializer_class: type[SubscriberSerializer] = SubscriberSerializer

    def partial_update(self, request: Request, **place: str) -> Response:
        """Change the given fields.

        `status: HELD` makes the messages wait; `status: INACTIVE` holds the waiting messages and
        keeps none published meanwhile. `status: ACTIVE` delivers the backlog in order, or cancels
        it: see `backlog`. Subscriptions held by themselves stay held.
        """
        return super().partial_update(request, **place)

    def get_serializer_class(self) -> type[SubscriberSerializer]:
        return (
            SubscriberChangeSerializer if self.action == "partial_update" else self.serializer_class
        )

    def snapshot(self, instance: Subscriber) -> dict[str, Any]:
        values = super().snapshot(instance)
        if self.action == "partial_update":
            return {name: value for name, value in values.items() if name not in TOGGLED}
        return values

    def record(self, action: str, instance: Any, **states: Any) -> None:
        if action != "changed" or set(self.request.data) - TOGGLING:
            super().record(action, instance, **states)
