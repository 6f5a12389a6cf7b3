"""Outputs of fetched messages: it prints them, or posts them to a local URL."""

import base64
import time
from collections.abc import Callable
from typing import Any

import orjson
from django.conf import settings
from django.utils import timezone

from delivery.management.client.http import NoAnswerError, bare_session, call_trusted
from delivery.management.client.mailbox import FetchedMessage
from delivery.management.client.terminal_text import visible_json, visible_text
from delivery.support.payload import payload_of

# Headers about the publishing request rather than the message.
_NOT_FORWARDED = frozenset(
    {
        "accept",
        "accept-encoding",
        "accept-language",
        "destination",
        "forwarded",
        "user-agent",
        "via",
    }
)
_NOT_FORWARDED_PREFIXES = ("x-forwarded-", "webhook-", "inturn-")


class Printer:
    """Prints each message: a line about it and the body, or a JSON object a line.

    Both are safe for a terminal.
    """

    def __init__(self, write: Callable[[str], object], *, as_json: bool) -> None:
        self._write = write
        self._text = message_line if as_json else message_text

    def __call__(self, message: FetchedMessage) -> str:
        self._write(f"{self._text(message)}\n")
        return ""


class Forwarder:
    """Posts each message to a URL as a PUSH subscription would, but unsigned.

    The listener has no signing secret.
    """

    def __init__(self, url: str, *, say: Callable[[str], object]) -> None:
        self._url = url
        self._say = say
        self._session = bare_session()
        # Ignore the user's environment, such as a proxy, and the library's default headers.
        self._session.trust_env = False
        self._session.headers.clear()

    def __call__(self, message: FetchedMessage) -> str:
        start = time.perf_counter()
        try:
            answer = call_trusted(
                self._session, "POST", self._url, body=message.body, headers=forwarded(message)
            )
        except NoAnswerError as error:
            return f"{self._url}: {error}"
        if answer.status_code // 100 != 2:
            return f"{self._url} answered {answer.status_code}"
        took = (time.perf_counter() - start) * 1000
        self._say(
            visible_text(f"{message.id}  {message.event}  {answer.status_code}  {took:.0f} ms\n")
        )
        return ""


def forwarded(message: FetchedMessage) -> dict[str, str | bytes]:
    """Return a forwarded message's own headers with those of `senders.http.request`, unsigned."""
    stored = {
        name: value
        for name, value in message.headers.items()
        if name not in _NOT_FORWARDED and not name.startswith(_NOT_FORWARDED_PREFIXES)
    }
    headers = {
        "content-type": "application/json" if message.is_json else "application/octet-stream",
        **stored,
        "user-agent": settings.USER_AGENT,
        "webhook-id": message.id,
        "webhook-timestamp": f"{timezone.now().timestamp():.0f}",
        "inturn-event": message.event,
        "inturn-attempt": str(message.receive_count),
    }
    # Published values may have characters beyond Latin-1, which a str value cannot have here.
    return {name: value if value.isascii() else value.encode() for name, value in headers.items()}


def message_text(message: FetchedMessage) -> str:
    receives = f"  fetched {message.receive_count} times" if message.receive_count > 1 else ""
    shown = payload_of(message.body)
    cut = f"\n… {shown.size:,} bytes in all" if shown.is_cut else ""
    return visible_text(
        f"{message.id}  {message.event}  {message.published_at}{receives}\n{shown.text}{cut}\n"
    )


def message_line(message: FetchedMessage) -> str:
    """Return the message as `next` shows it, without the fields for the acknowledgement.

    The body is as published, but on a single line and with control characters escaped.
    """
    fields = {
        "id": message.id,
        "event": message.event,
        "published_at": message.published_at,
        "receive_count": message.receive_count,
        "headers": dict(message.headers),
    }
    if message.is_json:
        # JSON strings contain no raw line breaks, so these are only between values.
        body = message.body.replace(b"\r", b" ").replace(b"\n", b" ").strip()
        content: dict[str, Any] = {"body": orjson.Fragment(body)}
    else:
        content = {"body_base64": base64.b64encode(message.body).decode()}
    return visible_json(orjson.dumps(fields | content).decode())
