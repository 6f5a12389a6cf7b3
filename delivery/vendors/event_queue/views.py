"""The API of the Event Queue, with which clients fetch and acknowledge unchanged.

A queue is a subscriber's mailbox. Both APIs serve it at the same time, with the same statements: a
message is handed out by only one of the two, and a receipt is valid in both. States, races and
crash windows are those of `delivery.mailbox.fetch`.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

import orjson
from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.viewsets import ViewSet

from delivery.api.base.authentication import key_of_request
from delivery.api.base.strict import Strict, Text
from delivery.api.base.views import FETCH, ApiView
from delivery.incoming.problems import Problem
from delivery.mailbox import counts, fetch
from delivery.mailbox.fetch import LeasedMessage
from delivery.mailbox.json_bodies import json_of
from delivery.models.message import public_id
from delivery.vendors.event_queue.authentication import QueueAuthentication
from subscriptions.models import Subscriber
from subscriptions.values.media_types import JSON

# From the Event Queue's manual.
VISIBILITY_SECONDS = 30
COUNT_LIMIT = 100_000
_VENDOR_JSON = re.compile(r"application/vnd\.comoyo\.[\w.-]{1,100}\+json", re.ASCII)


class AckQuery(Strict):
    receiptId = Text()  # noqa: N815 - the Event Queue's name for it


@extend_schema(exclude=True)
class QueueViews(ApiView, ViewSet):
    """The queue of the authenticated subscriber; any other queue is answered with 404.

    There is no HEAD: the framework would answer it by fetching a message for nobody.
    """

    required_scopes = FETCH
    authentication_classes = [QueueAuthentication]
    http_method_names = ["get", "post"]
    ignores_unknown_query = True
    query_classes: ClassVar[Mapping[str, type[Strict]]] = {"ack": AckQuery}
    subscriber: Subscriber

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.subscriber = _own_queue(request, kwargs["queue"])

    def next(self, request: Request, queue: str) -> HttpResponse:
        """Hand out the oldest message, for 30 seconds; 204 when there is none. It never waits."""
        fetched = fetch.fetch_messages(self.subscriber.pk, most=1, visibility=VISIBILITY_SECONDS)
        if not fetched:
            nothing = HttpResponse(status=204, headers={"Cache-Control": "no-store"})
            del nothing["Content-Type"]
            return nothing
        return _answer(
            request, _shown(fetched[0], folder="../" if request.path.endswith("/") else "")
        )

    def ack(self, request: Request, queue: str) -> HttpResponse:
        """Settle the message as DELIVERED. It is safe to repeat.

        A late acknowledgement counts unless the message was fetched since.
        """
        (result,) = fetch.acknowledge_receipts(self.subscriber.pk, [self.query["receiptId"]])
        if result.is_unknown:
            raise Problem(404, "no-such-receipt", result.error)
        if result.error:
            raise Problem(409, "receipt-does-not-count", result.error)
        return _answer(request, {})

    def status(self, request: Request, queue: str) -> HttpResponse:
        """Return the numbers of messages in the queue; counts end at 100,000."""
        now = timezone.now()
        found = counts.figures_of_subscribers([self.subscriber.pk], now=now, limit=COUNT_LIMIT)
        figures = found.get(self.subscriber.pk)
        shown = {
            "available": min(figures.available, COUNT_LIMIT) if figures else 0,
            "inFlight": min(figures.in_flight, COUNT_LIMIT) if figures else 0,
            "oldestSeconds": figures.oldest_seconds(now=now) if figures else None,
        }
        return _answer(request, shown)


def _own_queue(request: Request, name: str) -> Subscriber:
    signed_in = key_of_request(request).subscriber
    subscriber = None if signed_in is None else Subscriber.objects.filter(pk=signed_in.pk).first()
    if subscriber is None or name not in (subscriber.name, subscriber.queue_id):
        detail = (
            f"There is no queue {name} of yours: "
            "give the name or the queue id of the subscriber that signs in."
        )
        raise Problem(404, "no-such-queue", detail)
    return subscriber


def _shown(fetched: LeasedMessage, *, folder: str) -> dict[str, Any]:
    """Return the message; `folder` is the way from the called address to the queue's."""
    event = json_of(fetched)
    return {
        "messageId": public_id(fetched.message_id),
        "receiptId": fetched.receipt,
        "event": {"body_base64": base64.b64encode(fetched.body).decode()}
        if event is None
        else event,
        "link": [
            {"rel": "ack", "href": f"{folder}ack?receiptId={quote(fetched.receipt, safe='')}"}
        ],
    }


def _answer(request: Request, content: Mapping[str, Any]) -> HttpResponse:
    """Answer in the requested media type: the Event Queue's, of any version, or plain JSON."""
    wanted = _VENDOR_JSON.search(request.META.get("HTTP_ACCEPT", ""))
    return HttpResponse(
        orjson.dumps(content),
        # Without a charset: a known client accepts as JSON only types with the end json.
        content_type=wanted.group() if wanted else JSON,
        headers={"Cache-Control": "no-store"},
    )
