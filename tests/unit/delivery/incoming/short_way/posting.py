"""Posts as the web server processes them: by the short way, or otherwise by the view."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import orjson
from django.conf import settings

from config.web.short_way import Publishing
from config.wsgi import application
from delivery.incoming.problems import Problem
from delivery.models import Delivery, JournalEntry, Message
from delivery.models.message import parse_public_id
from tests.unit.delivery.senders.running import elsewhere

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class PostAnswer:
    """`is_short`: the view was not called."""

    status: int
    content: Any
    headers: Mapping[str, str] = field(repr=False)
    is_short: bool


@dataclass(frozen=True, slots=True)
class Posting:
    """One event loop's posts by one short way."""

    short_way: Publishing

    async def post(
        self,
        event_type: str,
        body: bytes = b"{}",
        *,
        key: str,
        headers: Mapping[str, str] | None = None,
    ) -> PostAnswer:
        return await self.answer(environ_of(event_type, body, key=key, headers=headers or {}), body)

    async def batch(self, items: Any, *, key: str, query: str = "") -> PostAnswer:
        body = orjson.dumps(items)
        return await self.answer(environ_of_batch(body, key=key, query=query), body)

    async def answer(self, environ: dict[str, Any], body: bytes) -> PostAnswer:
        try:
            published = await self.short_way.answer(environ, body)
        except Problem as problem:
            return PostAnswer(problem.status_code, problem.document, problem.headers, is_short=True)
        if published is None:
            answer: PostAnswer = await elsewhere(by_view, environ, body)
            return answer
        status, headers, content = published
        return PostAnswer(status, orjson.loads(content), dict(headers), is_short=True)


def stored(public_id: str) -> dict[str, Any]:
    """Return everything about a message except its publisher, ids and times."""
    id = parse_public_id(public_id)
    assert id is not None
    message = Message.objects.get(pk=id)
    deliveries = Delivery.objects.filter(message=message).order_by("id")
    return {
        "message": (
            message.event_type_id,
            message.headers,
            message.content_type,
            message.destination,
        ),
        "body": bytes(message.body),
        "owed": message.owed,
        "deliveries": [
            # The number of the queue lane follows from the message's id.
            (
                delivery.subscription_id,
                delivery.lane and delivery.lane.subscriber_id,
                delivery.queue_group,
                delivery.expires_at is None,
            )
            for delivery in deliveries
        ],
        "unmatched": JournalEntry.objects.filter(kind="UNMATCHED", message_id=message.pk).count(),
    }


def with_intake(scenario: Callable[[Posting], Coroutine[Any, Any, None]]) -> None:
    """Run the scenario with a short way, which is closed after it."""

    async def run() -> None:
        posting = Posting(Publishing())
        try:
            await scenario(posting)
        finally:
            await asyncio.to_thread(posting.short_way.close)

    asyncio.run(run())


def by_view(environ: Mapping[str, Any], body: bytes) -> PostAnswer:
    """Answer as Django does; not for a test's own thread, whose connection it would close."""
    status = 0
    headers: dict[str, str] = {}

    def start(line: str, given: list[tuple[str, str]], *_: Any) -> Callable[[bytes], object]:
        nonlocal status
        status = int(line[:3])
        headers.update(given)
        return bytes

    answered = application({**environ, "wsgi.input": BytesIO(body)}, start)
    try:
        content = b"".join(answered)
    finally:
        answered.close()
    return PostAnswer(status, orjson.loads(content) if content else None, headers, is_short=False)


def environ_of_batch(
    body: bytes, *, key: str, content_type: str = "application/json", query: str = ""
) -> dict[str, Any]:
    environ = environ_of("", body, key=key, headers={"Content-Type": content_type})
    return environ | {"PATH_INFO": "/api/v1/messages:batch", "QUERY_STRING": query}


def environ_of(
    event_type: str, body: bytes, *, key: str, headers: Mapping[str, str]
) -> dict[str, Any]:
    sent = {"Host": settings.ALLOWED_HOSTS[0], "Authorization": f"Bearer {key}", **headers}
    environ = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in sent.items()}
    if "HTTP_CONTENT_TYPE" in environ:
        environ["CONTENT_TYPE"] = environ.pop("HTTP_CONTENT_TYPE")
    return environ | {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": f"/api/v1/events/{event_type}/messages",
        "QUERY_STRING": "",
        "CONTENT_LENGTH": str(len(body)),
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.url_scheme": "http",
    }
