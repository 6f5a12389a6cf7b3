"""The resource `subscribers`: applications that receive messages."""

from typing import Any

from django.contrib.auth.hashers import make_password

from delivery.api.base.resource import Resource
from delivery.api.base.strict import StrictModel, Text
from delivery.api.subscribing.subscription_fields import HeadersField
from subscriptions.models import Subscriber
from subscriptions.values.names import validate_unreserved

# The ratio of the model's defaults, 100 of 500.
REFILL_SHARE = 5


class SharedHeaders(HeadersField):
    """The headers of a subscriber, which are null in its row if there are none."""

    def get_attribute(self, instance: Subscriber) -> Any:
        return instance.headers or {}


class SubscriberSerializer(StrictModel):
    """A subscriber. `refill_level` is a fifth of `max_queued_to_send` by default.

    SERIAL: one delivery at a time, in the order of publication. CONCURRENT: up to `max_in_flight`
    at a time, in no order, and a failed delivery delays no other. A change takes effect within two
    seconds, after the deliveries under way; deliveries postponed while the subscriber was
    CONCURRENT are sent in order once it is SERIAL.

    With `by_priority` a CONCURRENT subscriber gets messages with a higher `Priority` header first,
    a whole number from 9 to 0; any other value, and none, counts as 4. Every fourth delivery is the
    oldest one, so none waits for ever.

    `headers` are sent with each delivery of its subscriptions; a subscription's own header of that
    name is sent instead. Values are masked in answers.

    Clients of the old Event Queue find its mailbox by `queue_id`, or by its name.
    """

    headers = SharedHeaders(required=False)

    queue_password = Text(
        write_only=True,
        required=False,
        allow_blank=True,
        max_length=200,
        help_text="With it and the subscriber's name clients of the old Event Queue sign in that "
        "cannot be given a fetch key. Only its hash is kept. Empty: there is none.",
    )

    class Meta:
        model = Subscriber
        fields = [
            "name",
            "description",
            "processing",
            "max_in_flight",
            "max_queued_to_send",
            "refill_level",
            "by_priority",
            "match_mode",
            "application",
            "queue_id",
            "queue_password",
            "headers",
            "created_at",
            "updated_at",
        ]
        extra_kwargs = {
            "name": {
                "validators": [*Subscriber._meta.get_field("name").validators, validate_unreserved]
            },
            "queue_id": {"validators": Subscriber._meta.get_field("queue_id").validators},
        }

    def validate_queue_password(self, value: str) -> str:
        return make_password(value) if value else ""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "max_queued_to_send" in attrs and self.instance is None:
            attrs.setdefault("refill_level", attrs["max_queued_to_send"] // REFILL_SHARE)
        if "headers" in attrs:
            attrs["headers"] = attrs["headers"] or None
        return super().validate(attrs)


class SubscriberViews(Resource):
    queryset = Subscriber.objects.all()
    serializer_class = SubscriberSerializer
