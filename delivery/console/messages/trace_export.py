"""The whole trace of a message as a JSON document, in parts of deliveries, failures first.

Secrets are left out as everywhere in the console; without the right to see payloads, so are bodies,
the values of headers, answers, and callback URLs.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from delivery.console.messages.page import MessagePage, WantedPage, read_message_page
from delivery.console.messages.reasons import MatchReason
from delivery.console.messages.shown_deliveries import ShownAttempt, ShownDelivery
from delivery.console.messages.trace_event import Event
from delivery.models import Message
from delivery.models.message import public_id
from subscriptions.changes import MASKED

AT_ONCE = 100
ATTEMPTS = 200
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceReader:
    """Who exports, and when; `may_see` is the right to see payloads."""

    name: str
    may_see: bool
    reads_journal: bool
    now: datetime


def pages_of(message: Message, reader: TraceReader) -> Iterator[MessagePage]:
    """Yield the message's page again and again, each time with the next deliveries."""
    start: int | None = 0
    while start is not None:
        wanted = WantedPage(
            may_see=reader.may_see,
            reads_journal=reader.reads_journal,
            start=start,
            count=AT_ONCE,
            attempts=ATTEMPTS,
        )
        page = read_message_page(message, wanted)
        yield page
        start = page.part.next if page.deliveries else None


def json_parts(message: Message, reader: TraceReader) -> Iterator[bytes]:
    """Yield the document in parts, so thousands of deliveries are never in memory at once."""
    events: dict[tuple[Any, ...], Json] = {}
    for number, page in enumerate(pages_of(message, reader)):
        if number == 0:
            yield orjson.dumps(_head(page, reader), option=_OPTIONS).removesuffix(b"\n}\n")
            yield b',\n  "deliveries": ['
        for shown in page.deliveries:
            is_first = number == 0 and shown is page.deliveries[0]
            yield (b"\n" if is_first else b",\n") + _dumped(delivery_in(shown, reader))
        for event in page.trace.events:
            shape = event_in(event)
            events.setdefault(tuple(shape.values()), shape)
    # Each part has the events of the message itself.
    ordered = sorted(events.values(), key=lambda shape: shape["at"])
    yield b'\n  ],\n  "events": [' + b",".join(b"\n" + _dumped(shape) for shape in ordered)
    yield b"\n  ]\n}\n"


_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE


def _dumped(value: Json) -> bytes:
    return b"    " + orjson.dumps(value, option=orjson.OPT_UTC_Z)


def _head(page: MessagePage, reader: TraceReader) -> Json:
    return {
        "exported_at": reader.now,
        "exported_by": reader.name,
        "payloads": reader.may_see,
        "message": _message(page, reader),
        "statuses": dict(page.part.statuses),
        "matching": {
            "as_configured": "now" if page.reasons.as_now else "at publication",
            "note": page.reasons.as_now,
            "too_many": page.reasons.too_many,
            "subscriptions": [_reason(row) for row in page.reasons.rows],
        },
        "callbacks": [
            {
                "group": shown.callback.queue_group,
                "state": shown.state,
                "url": shown.callback.url if reader.may_see else MASKED,
                "answer": shown.answer or None,
                "answered_at": shown.callback.answered_at,
            }
            for shown in page.branches.callbacks
        ],
        "replies": [
            {"delivery": reply.delivery_id, "reply": public_id(reply.reply_id)}
            for reply in page.branches.replies
            if reply.reply_id is not None
        ],
        "edited_copies": [copy.public_id for copy in page.copies],
    }


def _message(page: MessagePage, reader: TraceReader) -> Json:
    message = page.message
    return {
        "id": message.public_id,
        "event_type": message.event_type.name,
        "publisher": None if message.publisher is None else message.publisher.name,
        "published_at": message.published_at,
        "destination": message.destination or None,
        "edited_from": public_id(message.edited_from_id) if message.edited_from_id else None,
        "joins": page.joined,
        "answers": public_id(page.branches.answered.message_id) if page.branches.answered else None,
        "content_type": message.content_type or message.event_type.content_type,
        "bytes": page.body.size,
        "headers": {name: value if reader.may_see else MASKED for name, value in page.headers},
        **(_body(bytes(message.body)) if reader.may_see else {}),
    }


def _body(body: bytes) -> Json:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def _reason(row: MatchReason) -> Json:
    return {
        "subscription": str(row.subscription),
        "matched": row.matched,
        "reason": row.reason,
        "now": row.now or None,
        "changed_at": row.change.at if row.change else None,
    }


def delivery_in(shown: ShownDelivery, reader: TraceReader) -> Json:
    row = shown.delivery
    return {
        "id": row.pk,
        "subscription": str(row.subscription),
        "status": row.status,
        "reason": row.reason,
        "settled_at": row.settled_at,
        "settled_before": row.settled_before,
        "attempt_count": row.attempts,
        "next_try": shown.next_try.words if shown.next_try else None,
        "next_try_at": shown.next_try.at if shown.next_try else None,
        "replay": row.replay_id,
        **({"sent_body": shown.sent.text} if shown.sent else {}),
        "attempts": [_attempt(item, shown, reader) for item in reversed(shown.attempts)],
    }


def _attempt(item: ShownAttempt, shown: ShownDelivery, reader: TraceReader) -> Json:
    attempt = item.attempt
    return {
        "number": attempt.number,
        "started_at": attempt.started_at,
        "duration_ms": attempt.duration_ms,
        "outcome": attempt.outcome,
        "status_code": attempt.status_code,
        "error": attempt.error,
        "request": request_in(item, shown, reader).splitlines(),
        **({"response": item.answer.text} if item.answer and reader.may_see else {}),
    }


def request_in(item: ShownAttempt, shown: ShownDelivery, reader: TraceReader) -> str:
    """Return the head of the request, without secrets; empty for a fetch."""
    if item.request is None or (shown.delivery.callback is not None and not reader.may_see):
        return ""
    return item.request.head if reader.may_see else item.request.masked_head


def event_in(event: Event) -> Json:
    return {
        "at": event.at,
        "name": event.name,
        "words": event.text,
        "delivery": event.delivery.pk if event.delivery else None,
        "subscription": str(event.delivery.subscription) if event.delivery else None,
    }
