"""`POST messages:batch`: publish many messages in order, in one transaction or one by one."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.db import Error
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from delivery.api.base.authentication import publisher_of
from delivery.api.base.schema import ProblemSerializer
from delivery.api.base.strict import NAME, Strict
from delivery.api.base.views import PUBLISH, ApiView
from delivery.incoming.batch_items import Item, item_of, split_batch
from delivery.incoming.bodies import read_body
from delivery.incoming.drafting import (
    allowed_event_type,
    describe_accepted,
    draft_of_item,
    problem_of_refusal,
)
from delivery.incoming.headers import IDEMPOTENCY_KEY
from delivery.incoming.problems import Problem, invalid_field, problem_of_database
from delivery.incoming.rate_limit import limit_rate
from delivery.publishing.drafts import Draft, PublishRefusedError
from delivery.publishing.publish import publish
from subscriptions.models import EventType, Kind, Publisher
from subscriptions.values.names import is_name

# A batch may be as long as this many messages of the maximum size.
MAX_BATCH_MESSAGES = 20


@extend_schema_field(
    {"type": "string", "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"}
)
class Base64(serializers.CharField):
    """Any bytes, encoded as text."""


@extend_schema_field(NAME)
class Name(serializers.CharField):
    """A valid name."""


@extend_schema_field(IDEMPOTENCY_KEY)
class IdempotencyKeyField(serializers.CharField):
    """An idempotency key, as in the header of the same name."""


class ItemSerializer(Strict):
    """A message of a batch."""

    rules = {"oneOf": [{"required": ["body"]}, {"required": ["body_base64"]}]}
    event = Name(help_text="The event type's name.")
    headers = serializers.DictField(child=serializers.CharField(), required=False)
    body = serializers.JSONField(
        required=False, help_text="Any JSON; stored as the bytes it is sent as."
    )
    body_base64 = Base64(required=False, help_text="Instead of body: any bytes.")
    idempotency_key = IdempotencyKeyField(required=False, allow_null=True)


class ResultSerializer(serializers.Serializer[Any]):
    """The result of an item: the message, or with `partial=true` an error."""

    id = serializers.CharField(required=False)
    deliveries = serializers.IntegerField(required=False)
    error = ProblemSerializer(required=False)


class ResultsSerializer(serializers.Serializer[Any]):
    """One result an item, in the order of the items."""

    results = ResultSerializer(many=True)


class BatchQuery(Strict):
    """The query parameters of a batch."""

    partial = serializers.ChoiceField(  # type: ignore[assignment]
        choices=["true", "false"],
        default="false",
        help_text="true: a bad item does not keep the others back.",
    )


class BatchView(ApiView):
    required_scopes = PUBLISH
    query_classes: ClassVar[Mapping[str, type[Strict]]] = {"post": BatchQuery}

    @extend_schema(
        operation_id="publish_batch",
        request={
            "application/json": ItemSerializer(many=True),
            "application/x-ndjson": {"type": "string", "description": "One item a line."},
        },
        responses={202: ResultsSerializer},
    )
    def post(self, request: Request) -> Response:
        """Publish many messages in the order given; one transaction unless `partial=true`.

        An invalid item fails the whole batch: the problem document has the item's `index`, from 0.
        """
        publisher = publisher_of(request)
        body = read_body(
            request._request, max_bytes=settings.ENVIRONMENT.max_message_bytes * MAX_BATCH_MESSAGES
        )
        texts = split_batch(body, content_type=request.META.get("CONTENT_TYPE", ""))
        limit_rate(publisher, request.META, messages=len(texts))
        batch = MessageBatch(publisher)
        published = batch.each(texts) if self.query["partial"] == "true" else batch.together(texts)
        return Response({"results": published}, status=202)


class MessageBatch:
    """The batch of a publisher; each event type is loaded once."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._event_types: dict[str, EventType] = {}

    def together(self, texts: list[str]) -> list[dict[str, Any]]:
        """Publish all in one transaction; raise the Problem of the first invalid item."""
        drafts = [self._draft_at(index, text) for index, text in enumerate(texts)]
        try:
            return [describe_accepted(accepted) for accepted in publish(self._publisher, drafts)]
        except PublishRefusedError as refused:
            raise problem_of_refusal(refused, index=refused.index) from None

    def each(self, texts: list[str]) -> list[dict[str, Any]]:
        """Publish the items in turn, each in a separate transaction."""
        results: list[dict[str, Any]] = []
        for text in texts:
            try:
                results.append(self._result(text))
            except Error as error:
                problem = problem_of_database(error)
                if problem is None:
                    raise
                # The items before this item are published, so the answer must still list their
                # results.
                return results + [{"error": problem.document}] * (len(texts) - len(results))
        return results

    def _result(self, text: str) -> dict[str, Any]:
        try:
            (accepted,) = publish(self._publisher, [self._draft(item_of(text))])
        except Problem as problem:
            return {"error": problem.document}
        except PublishRefusedError as refused:
            return {"error": problem_of_refusal(refused).document}
        return describe_accepted(accepted)

    def _draft_at(self, index: int, text: str) -> Draft:
        try:
            return self._draft(item_of(text))
        except Problem as problem:
            problem.members["index"] = index
            raise

    def _draft(self, item: Item) -> Draft:
        return draft_of_item(item, self._event_type)

    def _event_type(self, name: str) -> EventType:
        if not is_name(name):
            raise invalid_field("event", "This is not the name of an event type.")
        if name not in self._event_types:
            self._event_types[name] = _not_sync(allowed_event_type(self._publisher, name))
        return self._event_types[name]


def _not_sync(event_type: EventType) -> EventType:
    if event_type.kind == Kind.SYNC:
        path = f"POST events/{event_type.name}/messages"
        detail = (
            f"{event_type.name} is SYNC, and a batch has no place for the endpoint's answer; "
            f"publish it by {path}."
        )
        raise Problem(400, "not-with-sync", detail)
    return event_type
