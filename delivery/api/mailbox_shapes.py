"""The shapes of mailboxes: parameters and answers of their verbs."""

from typing import Any

from rest_framework import serializers

from delivery.api.base.strict import Strict, Text
from delivery.mailbox import fetch

MAX_WAIT_SECONDS = 20
MAX_SECONDS = 43_200
DEFAULT_VISIBILITY_SECONDS = 30


class NextQuery(Strict):
    is_remembered = True

    max = serializers.IntegerField(
        default=1, min_value=1, max_value=fetch.MOST_AT_ONCE, help_text="How many messages at most."
    )
    wait = serializers.IntegerField(
        default=0,
        min_value=0,
        max_value=MAX_WAIT_SECONDS,
        help_text="Seconds to wait for a message if the mailbox is empty.",
    )
    visibility = serializers.IntegerField(
        default=DEFAULT_VISIBILITY_SECONDS,
        min_value=0,
        max_value=MAX_SECONDS,
        help_text=(
            "Seconds after which a message that was neither acknowledged, "
            "rejected nor released is handed out again."
        ),
    )


class ReceiptQuery(Strict):
    receipt = Text(required=False, allow_blank=True, help_text="One receipt, in place of the body.")


class ReleaseQuery(ReceiptQuery):
    delay = serializers.IntegerField(
        default=0,
        min_value=0,
        max_value=MAX_SECONDS,
        help_text="For how many seconds it is not handed out again.",
    )


class ExtendQuery(ReceiptQuery):
    visibility = serializers.IntegerField(
        default=DEFAULT_VISIBILITY_SECONDS,
        min_value=0,
        max_value=MAX_SECONDS,
        help_text="For how many seconds from now it stays out.",
    )


class ReplyQuery(Strict):
    receipt = Text(help_text="A receipt of the message to reply to; its visibility may have ended.")


class ReceiptsSerializer(Strict):
    """Receipts from `next`."""

    receipts = serializers.ListField(
        child=Text(allow_blank=True), min_length=1, max_length=fetch.MOST_AT_ONCE
    )


class ReceiptResultSerializer(serializers.Serializer[Any]):
    receipt = serializers.CharField()
    ok = serializers.BooleanField(help_text="True if the delivery now has the requested state.")
    error = serializers.CharField(allow_null=True, help_text="Why not, in words.")


class ReceiptResultsSerializer(serializers.Serializer[Any]):
    """The result for each receipt, in the order given."""

    results = ReceiptResultSerializer(many=True)


class FetchedSerializer(serializers.Serializer[Any]):
    """A message leased to the fetching client. Either `body` or `body_base64`."""

    id = serializers.CharField(help_text="msg_…, the same each time it is handed out.")
    event = serializers.CharField(help_text="The event type.")
    published_at = serializers.DateTimeField()
    headers = serializers.DictField(child=serializers.CharField())
    body = serializers.JSONField(
        required=False, help_text="If it is JSON, by its content type and in fact."
    )
    body_base64 = serializers.CharField(required=False, help_text="Any other body.")
    receipt = serializers.CharField(
        help_text="Of this fetch: to acknowledge, release, extend or reject."
    )
    receive_count = serializers.IntegerField(
        help_text="How often it was handed out, with this time."
    )
    replay = serializers.IntegerField(
        allow_null=True,
        help_text="The replay that delivers it once more; null: it is as it was published.",
    )
    ack = serializers.URLField(help_text="POST here to acknowledge it.")
    reply = serializers.URLField(
        allow_null=True, help_text="POST a reply here; null: its publisher wants none."
    )


class FetchedMessagesSerializer(serializers.Serializer[Any]):
    messages = FetchedSerializer(many=True)


class MailboxStatusSerializer(serializers.Serializer[Any]):
    """The current state of a mailbox."""

    available = serializers.IntegerField(
        help_text="Messages that `next` would hand out, except those just expiring."
    )
    in_flight = serializers.IntegerField(help_text="Handed out, and neither settled nor back yet.")
    oldest_seconds = serializers.FloatField(
        allow_null=True, help_text="Since when the oldest that is not acknowledged is published."
    )
    received_per_minute = serializers.IntegerField(help_text="Handed out in the last whole minute.")
    acknowledged_per_minute = serializers.IntegerField()
    is_at_least = serializers.BooleanField(
        required=False,
        help_text="true: there may be more than the counts say, which end at 100,000.",
    )
