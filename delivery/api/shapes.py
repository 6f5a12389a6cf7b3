"""The shapes of messages, deliveries and attempts in answers."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, get_args

import orjson
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from delivery.models import Attempt, Callback, Delivery, Message, Reply
from delivery.models.delivery import Redelivery
from delivery.models.message import public_id
from delivery.publishing.callbacks import State, callback_state
from delivery.states import OutcomeClass, Status
from subscriptions.models import Mode

# Relations that the answers show with a delivery: select them along with it.
DELIVERY_RELATIONS = ("subscription__subscriber", "subscription__policy", "lane")


class ReplySerializer(serializers.ModelSerializer[Reply]):
    """The reply to a delivery of a message published with `ReplyTo`."""

    delivery = serializers.IntegerField(source="delivery_id")
    reply = serializers.SerializerMethodField(help_text="msg_…")

    class Meta:
        model = Reply
        fields = ["delivery", "reply", "replied_at"]

    def get_reply(self, reply: Reply) -> str | None:
        return None if reply.reply_id is None else public_id(reply.reply_id)


class CallbackSerializer(serializers.ModelSerializer[Callback]):
    """The callback of a group of a QUEUE message: `answer` goes to `url`.

    `hop` is the length of the chain of callbacks, this callback included.
    """

    queue_group = serializers.IntegerField()
    state = serializers.SerializerMethodField()
    hop = serializers.IntegerField()
    answer = serializers.SerializerMethodField(help_text="msg_…")

    class Meta:
        model = Callback
        fields = ["queue_group", "state", "url", "hop", "expires_at", "answered_at", "answer"]

    @extend_schema_field({"type": "string", "enum": list(get_args(State))})
    def get_state(self, callback: Callback) -> str:
        return callback_state(callback, now=timezone.now())

    def get_answer(self, callback: Callback) -> str | None:
        return None if callback.answer_id is None else public_id(callback.answer_id)


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    """An attempt. `excerpt` is the first 4 KiB of the answer to a failed attempt, as text."""

    outcome = serializers.ChoiceField(choices=OutcomeClass.choices)
    excerpt = serializers.SerializerMethodField()

    class Meta:
        model = Attempt
        fields = [
            "number",
            "started_at",
            "duration_ms",
            "outcome",
            "status_code",
            "error",
            "excerpt",
        ]

    def get_excerpt(self, attempt: Attempt) -> str:
        return bytes(attempt.excerpt).decode(errors="replace")


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """A delivery. `held`: PENDING, while the subscription or subscriber is not ACTIVE.

    `lane` is where it waits: `retry:0` after a failure under the action RETRY_LANE, null for SYNC,
    where nothing waits. A delivery of a PULL subscription waits in the subscriber's mailbox, has
    been fetched `receive_count` times, and is leased to the client of the last fetch until
    `lease_expires_at`: then it can be fetched again.
    """

    message = serializers.SerializerMethodField()
    event_type = serializers.CharField(source="message.event_type.name")
    subscription = serializers.IntegerField(source="subscription_id")
    subscription_name = serializers.CharField(source="subscription.name")
    subscriber = serializers.CharField(source="subscription.subscriber.name")
    status = serializers.ChoiceField(choices=Status.choices)
    redelivery = serializers.ChoiceField(choices=Redelivery.choices)
    held = serializers.SerializerMethodField()
    lane = serializers.SerializerMethodField()
    attempt_count = serializers.IntegerField(source="attempts")
    attempts_before = serializers.IntegerField(
        help_text="Attempts before the last resubmission, which do not count against max_attempts."
    )
    max_attempts = serializers.SerializerMethodField(
        help_text=(
            "The policy's limit for retried deliveries; max_receives for a PULL subscription. "
            "Null: until it succeeds."
        )
    )
    mode = serializers.ChoiceField(choices=Mode.choices, source="subscription.mode")
    lease_expires_at = serializers.DateTimeField(
        allow_null=True, help_text="Time until which the client that fetched it holds it."
    )
    expires_at = serializers.DateTimeField(
        allow_null=True, help_text="When it is EXPIRED, unless it is settled by then; null: never."
    )
    next_attempt_at = serializers.DateTimeField(
        allow_null=True, help_text="Time of the next attempt, if a policy postponed it."
    )
    published_at = serializers.DateTimeField(source="message.published_at")
    replay = serializers.IntegerField(
        source="replay_id",
        allow_null=True,
        help_text="The replay that created it; null if the publication did.",
    )

    class Meta:
        model = Delivery
        fields = [
            "id",
            "message",
            "event_type",
            "subscription",
            "subscription_name",
            "subscriber",
            "status",
            "held",
            "reason",
            "redelivery",
            "mode",
            "lane",
            "attempt_count",
            "attempts_before",
            "max_attempts",
            "next_attempt_at",
            "receive_count",
            "lease_expires_at",
            "expires_at",
            "published_at",
            "settled_at",
            "replay",
        ]

    def get_message(self, delivery: Delivery) -> str:
        return public_id(delivery.message_id)

    def get_lane(self, delivery: Delivery) -> str | None:
        lane = delivery.lane
        if lane is None:
            return None
        return delivery.subscription.subscriber.name if lane.subscriber_id else str(lane)

    def get_max_attempts(self, delivery: Delivery) -> int | None:
        subscription = delivery.subscription
        is_fetched = subscription.mode == Mode.PULL
        return subscription.max_receives if is_fetched else subscription.policy.max_attempts

    def get_held(self, delivery: Delivery) -> bool:
        return delivery.subscription.held_by is not None and delivery.status == Status.PENDING


class DeliveryDetailSerializer(DeliverySerializer):
    """A delivery with the attempts in order: only the newest, if `attempt_count` is larger."""

    attempts = AttemptSerializer(source="history", many=True)

    class Meta(DeliverySerializer.Meta):
        fields = [*DeliverySerializer.Meta.fields, "attempts"]


class DestinationField(serializers.CharField):
    """Null rather than empty for a message published to all subscriptions."""

    def __init__(self) -> None:
        super().__init__(read_only=True, allow_null=True)

    def to_representation(self, value: str) -> str | None:  # type: ignore[override]
        return value or None


class MessageSerializer(serializers.ModelSerializer[Message]):
    """A message in a list: without the body. `deliveries` counts them by status.

    `destination` is a subscriber, subscriber/subscription or application to which the message was
    delivered; null for a message published to all matching subscriptions.
    """

    id = serializers.CharField(source="public_id", help_text="msg_…")
    event_type = serializers.CharField(source="event_type.name")
    publisher = serializers.CharField(source="publisher.name", default=None, allow_null=True)
    destination = DestinationField()
    size = serializers.IntegerField(help_text="Bytes of the body.")
    deliveries = serializers.SerializerMethodField()

    class Meta:
        model = Message
        fields = [
            "id",
            "event_type",
            "publisher",
            "published_at",
            "destination",
            "content_type",
            "size",
            "deliveries",
        ]

    def get_deliveries(self, message: Message) -> dict[str, int]:
        counts: Mapping[int, dict[str, int]] = self.context.get("counts", {})
        return counts.get(message.pk, {})


class MessageDetailSerializer(serializers.ModelSerializer[Message]):
    """A message, with `body` if it is JSON, otherwise `body_base64`.

    For the publisher every `reason`, `error` and `excerpt` is empty: publishers do not see details
    of receivers and people. If `delivery_count` is larger than the number of deliveries here, page
    through all with `GET deliveries?message=…`.
    """

    id = serializers.CharField(source="public_id", help_text="msg_…")
    event_type = serializers.CharField(source="event_type.name")
    publisher = serializers.CharField(source="publisher.name", default=None, allow_null=True)
    destination = DestinationField()
    edited_from = serializers.SerializerMethodField(
        help_text="msg_…, if a person edited that and sent this."
    )
    headers = serializers.DictField(child=serializers.CharField())
    size = serializers.SerializerMethodField()
    body = serializers.JSONField(required=False)
    body_base64 = serializers.CharField(required=False)
    delivery_count = serializers.SerializerMethodField()
    deliveries = serializers.SerializerMethodField()
    callbacks = CallbackSerializer(source="shown_callbacks", many=True)
    answer_to = serializers.SerializerMethodField(help_text="msg_…, if it answers one by callback.")
    replies = serializers.SerializerMethodField()
    reply_to = serializers.SerializerMethodField(
        help_text="msg_…, if it is the reply to that message's delivery in its headers."
    )

    class Meta:
        model = Message
        fields = [
            "id",
            "event_type",
            "publisher",
            "published_at",
            "destination",
            "content_type",
            "size",
            "headers",
            "body",
            "body_base64",
            "delivery_count",
            "deliveries",
            "callbacks",
            "answer_to",
            "replies",
            "reply_to",
            "edited_from",
        ]

    def get_size(self, message: Message) -> int:
        return len(message.body)

    def get_delivery_count(self, message: Message) -> int:
        count: int = self.context["delivery_count"]
        return count

    @extend_schema_field(DeliveryDetailSerializer(many=True))
    def get_deliveries(self, message: Message) -> list[dict[str, Any]]:
        return list(DeliveryDetailSerializer(self.context["deliveries"], many=True).data)

    def get_edited_from(self, message: Message) -> str | None:
        return None if message.edited_from_id is None else public_id(message.edited_from_id)

    def get_answer_to(self, message: Message) -> str | None:
        answered: Callback | None = getattr(message, "answers", None)
        return None if answered is None else public_id(answered.message_id)

    @extend_schema_field(ReplySerializer(many=True))
    def get_replies(self, message: Message) -> list[dict[str, Any]]:
        return list(ReplySerializer(self.context["replies"], many=True).data)

    def get_reply_to(self, message: Message) -> str | None:
        replied: Reply | None = getattr(message, "replied", None)
        return None if replied is None else public_id(replied.message_id)

    def to_representation(self, instance: Message) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)
        body = bytes(shown.pop("body"))
        if _is_json(body):
            shown["body"] = orjson.Fragment(body)
        else:
            shown["body_base64"] = b64encode(body).decode()
        if self.context.get("for_publisher"):
            leave_out_receivers(shown["deliveries"])
        return shown


def leave_out_receivers(deliveries: list[dict[str, Any]]) -> None:
    """Empty the fields hidden from publishers: details of receivers, and names of people."""
    for delivery in deliveries:
        delivery["reason"] = ""
        for attempt in delivery.get("attempts", ()):
            attempt["error"] = attempt["excerpt"] = ""


def _is_json(body: bytes) -> bool:
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return True
