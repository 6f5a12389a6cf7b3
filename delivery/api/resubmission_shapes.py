"""The shapes of bulk jobs: filters of deliveries, requests and answers."""

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from delivery.api.base.pages import MAX_ID
from delivery.api.base.strict import Moment, Strict, Switch, Text
from delivery.api.message_query import MessageIdField, SubscriptionText
from delivery.models import BulkVerb, Resubmission, ResubmissionState
from delivery.models.message import public_id
from delivery.support.bulk_jobs import FASTEST_RATE, SLOWEST_RATE
from delivery.support.selection import COUNT_LIMIT, OFFERED
from subscriptions.values.names import MAX_NAME_LENGTH


def _one_or_more(verb: BulkVerb) -> dict[str, Any]:
    status_schema = {"type": "string", "enum": [status.value for status in OFFERED[verb]]}
    return {"oneOf": [status_schema, {"type": "array", "items": status_schema, "minItems": 1}]}


class Statuses(serializers.Field[Any, Any, Any, Any]):
    """A status, or a list of statuses, that the verb accepts."""

    verb: BulkVerb
    others: str

    def to_internal_value(self, data: Any) -> list[str]:
        offered = [status.value for status in OFFERED[self.verb]]
        items = data if isinstance(data, list) else [data]
        if not items or any(item not in offered for item in items):
            raise serializers.ValidationError(
                f"Give one or more of {', '.join(offered)}; {self.others}."
            )
        return list(dict.fromkeys(items))

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(_one_or_more(BulkVerb.RESUBMIT))
class SettledStatuses(Statuses):
    verb = BulkVerb.RESUBMIT
    others = "received deliveries cannot be resubmitted"


@extend_schema_field(_one_or_more(BulkVerb.CANCEL))
class UnsettledStatuses(Statuses):
    verb = BulkVerb.CANCEL
    others = "settled deliveries cannot be cancelled"


class FilterSerializer(Strict):
    """A filter of settled deliveries, with at least one field.

    Without a status: failed deliveries.
    """

    rules = {"minProperties": 1}
    status: Statuses = SettledStatuses(required=False)
    subscriber = Text(required=False, max_length=MAX_NAME_LENGTH)
    subscription = SubscriptionText(required=False)
    event_type = Text(required=False, max_length=MAX_NAME_LENGTH)
    message = MessageIdField(required=False, help_text="msg_…")
    incident = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_ID, help_text="The id of one of failures."
    )
    since = Moment(required=False, help_text="Of messages published at this time or later.")
    until = Moment(required=False, help_text="Of messages published before this time.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError(
                "Give at least one of the fields; all at once is too much."
            )
        moments = {
            name: attrs[name].isoformat().replace("+00:00", "Z")
            for name in ("since", "until")
            if name in attrs
        }
        return attrs | moments

    def to_representation(self, instance: Mapping[str, Any]) -> dict[str, Any]:
        shown = {"message": public_id(instance["message"])} if "message" in instance else {}
        return dict(instance) | shown


class UnsettledFilterSerializer(FilterSerializer):
    """A filter of unsettled deliveries, with at least one field.

    Without a status: open deliveries.
    """

    status = UnsettledStatuses(required=False)


class Rate(serializers.FloatField):
    """A JSON number: neither "5" nor true."""

    def to_internal_value(self, data: Any) -> float:
        if type(data) not in (int, float):
            self.fail("invalid")
        return super().to_internal_value(data)


class NewResubmissionSerializer(Strict):
    """Which deliveries to resubmit, and how fast."""

    filter = FilterSerializer()
    dry_run = Switch(default=False, help_text="true: only count them.")
    rate = Rate(
        required=False,
        allow_null=True,
        min_value=SLOWEST_RATE,
        max_value=FASTEST_RATE,
        help_text="Deliveries per second; null: as fast as possible.",
    )


class NewCancellationSerializer(NewResubmissionSerializer):
    """Which deliveries to cancel, and how fast."""

    filter = UnsettledFilterSerializer()


class PreviewSerializer(serializers.Serializer[Any]):
    """The answer to `dry_run`; nothing is stored."""

    id = serializers.IntegerField(allow_null=True, help_text="null: there is no resubmission.")
    count = serializers.IntegerField()
    statuses = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="How many of each status, the most frequent first.",
    )
    oldest_at = serializers.DateTimeField(
        allow_null=True, help_text="When the oldest was published."
    )
    more = serializers.BooleanField(help_text=f"There are more: counting ends at {COUNT_LIMIT:,}.")
    state = serializers.CharField(allow_null=True, help_text="null")
    done = serializers.IntegerField()
    sample = serializers.ListField(child=serializers.IntegerField(), help_text="Ids of the oldest.")


_FIRST = ["id", "filter", "rate", "count", "more", "state", "done"]
_LAST = ["actor", "created_at", "ended_at"]


class ResubmissionSerializer(serializers.ModelSerializer[Resubmission]):
    """A resubmission.

    `done` deliveries are processed so far; `resubmitted` of them are sent again.
    """

    filter = FilterSerializer()
    state = serializers.ChoiceField(choices=ResubmissionState.choices)
    count = serializers.SerializerMethodField(
        help_text="Number of deliveries selected when it was created."
    )
    more = serializers.SerializerMethodField(
        help_text="It selected more than `count`: counting ended there."
    )
    resubmitted = serializers.IntegerField(source="changed")

    class Meta:
        model = Resubmission
        fields = [*_FIRST, "resubmitted", *_LAST]

    def get_count(self, job: Resubmission) -> int:
        return min(job.count, COUNT_LIMIT)

    def get_more(self, job: Resubmission) -> bool:
        return job.count > COUNT_LIMIT


class CancellationSerializer(ResubmissionSerializer):
    """A cancellation.

    `done` deliveries are processed so far; `cancelled` of them were cancelled.
    """

    filter = UnsettledFilterSerializer()
    resubmitted = None  # type: ignore[assignment]
    cancelled = serializers.IntegerField(source="changed")

    class Meta:
        model = Resubmission
        fields = [*_FIRST, "cancelled", *_LAST]
