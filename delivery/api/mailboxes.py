"""Mailboxes: their subscriber fetches and acknowledges messages, with a key of scope fetch.

A view never waits. If the mailbox is empty and the client accepts a wait, the view requests it by
a header of the answer; `config.web.bridge` then waits, without a thread or a database connection,
and repeats the request.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, cast

import orjson
from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from delivery.api import mailbox_shapes as shapes
from delivery.api import replies
from delivery.api.base.authentication import key_of_request
from delivery.api.base.strict import MAX_TEXT_LENGTH, Strict
from delivery.api.base.views import FETCH, ApiView
from delivery.incoming.problems import Problem, invalid_field
from delivery.mailbox import counts, fetch
from delivery.mailbox.fetch import LeasedMessage, ReceiptResult
from delivery.mailbox.json_bodies import json_of
from delivery.mailbox.waiters import WAIT_HEADER
from delivery.models.message import public_id
from delivery.publishing.reply_headers import may_be_replied_to
from subscriptions.matching.reply_to import REPLY_TO

# Figures are exact up to this number; counting takes a millisecond for some thousands.
COUNT_LIMIT = 100_000

_VERB: dict[str, Any] = {
    "request": shapes.ReceiptsSerializer,
    "responses": {200: shapes.ReceiptResultsSerializer},
}


class MailboxViews(ApiView, ViewSet):
    """The mailbox of the key's own subscriber; any other mailbox is answered with 404."""

    required_scopes = FETCH
    query_classes: ClassVar[Mapping[str, type[Strict]]] = {
        "next": shapes.NextQuery,
        "ack": shapes.ReceiptQuery,
        "reject": shapes.ReceiptQuery,
        "release": shapes.ReleaseQuery,
        "extend": shapes.ExtendQuery,
        "reply": shapes.ReplyQuery,
    }

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.subscriber_id = _own_mailbox(request, kwargs["subscriber"])

    @extend_schema(request=None, responses={200: shapes.FetchedMessagesSerializer, 204: None})
    def next(self, request: Request, subscriber: str) -> HttpResponse:
        """Fetch the oldest messages; each is leased to you alone for `visibility` seconds.

        Acknowledge each stored message: the others are handed out again, with a new receipt. 204
        when the mailbox is empty, or no message came within `wait` seconds. An answer holds up to 4
        MiB of bodies, or a single message. A message may come again, and not always in order:
        remember the message's `id`.
        """
        if request.data:
            raise invalid_field(
                "max", "Give max, wait and visibility in the address; there is no body here."
            )
        fetched = fetch.fetch_messages(
            self.subscriber_id, most=self.query["max"], visibility=self.query["visibility"]
        )
        if fetched:
            return _json({"messages": [_shown(message, subscriber) for message in fetched]})
        nothing = HttpResponse(status=204)
        del nothing["Content-Type"]
        if self.query["wait"]:
            nothing[WAIT_HEADER] = str(self.subscriber_id)
        return nothing

    @extend_schema(**_VERB)
    def ack(self, request: Request, subscriber: str) -> HttpResponse:
        """Acknowledge messages by their receipts: they are DELIVERED. It is safe to repeat.

        A late acknowledgement counts if nobody has fetched the message since. An invalid receipt
        has the reason in the result; 409 if it was the only receipt.
        """
        return self._ended(fetch.acknowledge_receipts)

    @extend_schema(**_VERB)
    def reject(self, request: Request, subscriber: str) -> HttpResponse:
        """Reject messages for good, by their receipts: they are REJECTED. Results as for `ack`."""
        return self._ended(fetch.reject_receipts)

    @extend_schema(**_VERB)
    def release(self, request: Request, subscriber: str) -> HttpResponse:
        """Put messages back by their receipts, to be handed out again after `delay` seconds.

        Results as for `ack`. A message handed out `max_receives` times (of the subscription), or is
        VOLATILE, becomes FAILED instead.
        """
        return self._ended(fetch.release_receipts, delay=self.query["delay"])

    @extend_schema(**_VERB)
    def extend(self, request: Request, subscriber: str) -> HttpResponse:
        """Keep messages for `visibility` more seconds from now, by their receipts.

        Results as for `ack`.
        """
        return self._ended(fetch.extend_receipts, visibility=self.query["visibility"])

    @extend_schema(**replies.SCHEMA)
    def reply(self, request: Request, subscriber: str) -> Response:
        """Reply to a fetched message whose publisher wants a reply; the body is the reply.

        It is published as a message of the event type that the publisher named by `ReplyTo`, and
        has to fit the event type. The receipt may be acknowledged before or after. Repeating the
        same body returns the same answer; a different body gets 409, a removed message 410.
        """
        delivery_id = fetch.fetched_delivery(self.subscriber_id, self.query["receipt"])
        if delivery_id is None:
            raise Problem(409, "receipt-does-not-count", fetch.UNKNOWN)
        return replies.answer_reply(request, delivery_id)

    @extend_schema(responses=shapes.MailboxStatusSerializer)
    def status(self, request: Request, subscriber: str) -> Response:
        """Read the mailbox's backlog and the rates of the last whole minute."""
        return Response(_figures(self.subscriber_id, now=timezone.now()))

    def _ended(self, verb: Callable[..., list[ReceiptResult]], **options: int) -> HttpResponse:
        results = verb(self.subscriber_id, self._receipts(), **options)
        shown = [_result(result) for result in results]
        if len(results) == 1 and results[0].error:
            raise Problem(409, "receipt-does-not-count", results[0].error, results=shown)
        return _json({"results": shown})

    def _receipts(self) -> Sequence[str]:
        content = self.request.data
        if "receipt" not in self.query:
            if _are_receipts(content):
                return cast("Sequence[str]", content["receipts"])
            serializer = shapes.ReceiptsSerializer(data=content)
            serializer.is_valid(raise_exception=True)
            receipts: list[str] = serializer.validated_data["receipts"]
            return receipts
        if content:
            raise invalid_field(
                "receipt", "Give one receipt in the address or several in the body, not both."
            )
        return [self.query["receipt"]]


def _are_receipts(content: Any) -> bool:
    """Return whether the receipts are valid without calling the serializer.

    The serializer takes longer than the acknowledgement; it is needed only to report mistakes.
    """
    if not isinstance(content, dict) or content.keys() != {"receipts"}:
        return False
    receipts = content["receipts"]
    is_list = isinstance(receipts, list) and 1 <= len(receipts) <= fetch.MOST_AT_ONCE
    return is_list and all(
        isinstance(receipt, str)
        and len(receipt) <= MAX_TEXT_LENGTH
        and receipt.isascii()
        and "\0" not in receipt
        for receipt in receipts
    )


def _own_mailbox(request: Request, name: str) -> int:
    subscriber = key_of_request(request).subscriber
    if subscriber is None or subscriber.name != name:
        detail = (
            f"This key has no mailbox {name}: a fetch key opens that of its own subscriber only."
        )
        raise Problem(404, "no-such-mailbox", detail)
    return subscriber.pk


def _shown(fetched: LeasedMessage, subscriber: str) -> dict[str, Any]:
    mailbox = f"{settings.ENVIRONMENT.base_url}/api/v1/mailboxes/{subscriber}"
    return {
        "id": public_id(fetched.message_id),
        "event": fetched.event,
        "published_at": fetched.published_at,
        "headers": orjson.Fragment(fetched.headers),
        **_body(fetched),
        "receipt": fetched.receipt,
        "receive_count": fetched.receive_count,
        "replay": fetched.replay_id,
        "ack": f"{mailbox}/ack?receipt={fetched.receipt}",
        "reply": f"{mailbox}/reply?receipt={fetched.receipt}"
        if _may_be_replied_to(fetched)
        else None,
    }


def _may_be_replied_to(fetched: LeasedMessage) -> bool:
    # The headers are parsed only if they may have the name.
    if f'"{REPLY_TO}"' not in fetched.headers:
        return False
    headers = orjson.loads(fetched.headers)
    return may_be_replied_to(headers, event=fetched.event, replay_id=fetched.replay_id)


def _body(fetched: LeasedMessage) -> dict[str, Any]:
    json = json_of(fetched)
    return (
        {"body_base64": base64.b64encode(fetched.body).decode()} if json is None else {"body": json}
    )


def _result(result: ReceiptResult) -> dict[str, Any]:
    return {"receipt": result.receipt, "ok": not result.error, "error": result.error or None}


def _figures(subscriber_id: int, *, now: datetime) -> dict[str, Any]:
    figures = counts.figures_of_subscribers([subscriber_id], now=now, limit=COUNT_LIMIT).get(
        subscriber_id
    )
    if figures is None:
        names = ("available", "in_flight", "received_per_minute", "acknowledged_per_minute")
        return dict.fromkeys(names, 0) | {"oldest_seconds": None}
    shown = {
        "available": min(figures.available, COUNT_LIMIT),
        "in_flight": min(figures.in_flight, COUNT_LIMIT),
        "oldest_seconds": figures.oldest_seconds(now=now),
        "received_per_minute": figures.received_per_minute,
        "acknowledged_per_minute": figures.acknowledged_per_minute,
    }
    is_more = max(figures.available, figures.in_flight) > COUNT_LIMIT
    return shown | ({"is_at_least": True} if is_more else {})


def _json(content: Any) -> HttpResponse:
    return HttpResponse(
        orjson.dumps(content, option=orjson.OPT_UTC_Z), content_type="application/json"
    )
