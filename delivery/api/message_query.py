"""The search for messages: from query parameters to SQL."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import Exists, QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from delivery.api.base.pages import ById
from delivery.api.base.strict import Moment, Text
from delivery.database.queries import TimeUpError, statement_time_limit
from delivery.incoming.problems import Problem
from delivery.models import Delivery, Message
from delivery.models.message import parse_public_id
from delivery.models.published import id_limit, lowest_id
from delivery.states import Status
from delivery.support.search import with_texts
from subscriptions.matching.typed_names import (
    LONGEST_SUBSCRIPTION,
    UnknownNameError,
    subscription_ids,
)
from subscriptions.values.names import MAX_NAME_LENGTH

MAX_TEXT_LENGTH = 500
# A search in headers and bodies reads every message of the range.
TEXT_SEARCH_SECONDS = 10


@extend_schema_field({"type": "string", "pattern": "^(msg_)?[0-9]{1,18}$"})
class MessageIdField(Text):
    """The id of a message, `msg_…`, or the number as text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=None, **options)

    def to_internal_value(self, data: Any) -> int:  # type: ignore[override]
        message_id = parse_public_id(super().to_internal_value(data))
        if message_id is None:
            raise serializers.ValidationError("Give the id of a message, msg_ and a number.")
        return message_id


class SubscriptionText(Text):
    """A subscription: `subscriber/subscription`, the name alone, or the id as text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            max_length=LONGEST_SUBSCRIPTION,
            help_text="An id, a name, or subscriber/subscription.",
            **options,
        )

    def to_internal_value(self, data: Any) -> str:
        text: str = super().to_internal_value(data)
        try:
            subscription_ids(text, reach=None)
        except UnknownNameError as error:
            raise serializers.ValidationError(error.detail) from None
        return text


class MessageQuery(ById):
    """The query parameters of the search for messages."""

    event_type = Text(required=False, max_length=MAX_NAME_LENGTH)
    publisher = Text(required=False, max_length=MAX_NAME_LENGTH)
    destination = Text(
        required=False,
        max_length=2 * MAX_NAME_LENGTH + 1,
        help_text=(
            "Those delivered to it: a subscriber, subscriber/subscription or application, "
            "as the publisher gave it."
        ),
    )
    status = serializers.ChoiceField(
        choices=Status.choices, required=False, help_text="Those with a delivery of this status."
    )
    id_from = MessageIdField(required=False, help_text="The oldest: msg_…")
    id_to = MessageIdField(required=False, help_text="The newest: msg_…")
    since = Moment(required=False, help_text="Published at this time or later.")
    until = Moment(required=False, help_text="Published before this time.")
    header = Text(
        required=False,
        max_length=MAX_TEXT_LENGTH,
        help_text="Text within one header, written `name: value`, in any case.",
    )
    body = Text(
        required=False,
        max_length=MAX_TEXT_LENGTH,
        help_text=(
            "Text within the body, in its upper and lower case; JSON's escapes of it are found too."
        ),
    )


_LOOKUPS = {
    "event_type": "event_type__name",
    "publisher": "publisher__name",
    "destination": "destination",
    "id_from": "id__gte",
    "id_to": "id__lte",
    "since": "published_at__gte",
    "until": "published_at__lt",
}
_TEXTS = ("header", "body")


def page_of_search(
    rows: QuerySet[Message], query: Mapping[str, Any], paginate: Callable[[QuerySet[Message]], Any]
) -> list[Message]:
    """Return the page of the search; a text search times out after TEXT_SEARCH_SECONDS."""
    rows = rows.filter(
        **{lookup: query[name] for name, lookup in _LOOKUPS.items() if name in query}
    )
    if "since" in query:
        rows = rows.filter(pk__gte=lowest_id(query["since"]))
    if "until" in query:
        rows = rows.filter(pk__lt=id_limit(query["until"]))
    if "destination" in query:
        # The condition of the partial index on messages with a destination.
        rows = rows.exclude(destination="")
    if "status" in query:
        rows = rows.filter(
            Exists(Delivery.objects.of_outer_message().filter(status=query["status"]))
        )
    texts = {name: query[name] for name in _TEXTS if name in query}
    if not texts:
        return list(paginate(rows))
    rows = with_texts(rows, **texts)
    return _within_time(lambda: list(paginate(rows)))


def _within_time(search: Callable[[], list[Message]]) -> list[Message]:
    try:
        with statement_time_limit(TEXT_SEARCH_SECONDS):
            return search()
    except TimeUpError:
        raise Problem(
            400,
            "search-too-wide",
            "The search took too long; narrow it by since and until, or by event_type.",
        ) from None
