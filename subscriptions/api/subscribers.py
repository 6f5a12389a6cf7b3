"""The resource `subscribers`: applications that receive."""

from typing import Any

from subscriptions.api.resource import Resource
from subscriptions.api.strict import StrictModel
from subscriptions.models import Subscriber
from subscriptions.values.names import validate_unreserved

# What the model's defaults amount to, 100 of 500.
REFILL_SHARE = 5


class SubscriberSerializer(StrictModel):
    """A subscriber. `refill_level` is a fifth of `max_queued_to_send` unless given.

    SERIAL: one delivery at a time, in the order of publication. CONCURRENT: up to `max_in_flight` at a time, in no order, and none
    waits for another that failed. What is changed here takes effect within two seconds, after what is under way; what was put off
    while the subscriber was CONCURRENT is sent in order once it is SERIAL.
    """

    class Meta:
        model = Subscriber
        fields = [
            "name",
            "description",
            "processing",
            "max_in_flight",
            "max_queued_to_send",
            "refill_level",
            "match_mode",
            "created_at",
            "updated_at",
        ]
        extra_kwargs = {
            "name": {"validators": [*Subscriber._meta.get_field("name").validators, validate_unreserved]}
        }

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "max_queued_to_send" in attrs and self.instance is None:
            attrs.setdefault("refill_level", attrs["max_queued_to_send"] // REFILL_SHARE)
        return super().validate(attrs)


class SubscriberViews(Resource):
    queryset = Subscriber.objects.all()
    serializer_class = SubscriberSerializer
